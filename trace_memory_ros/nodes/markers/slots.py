"""A memory's entries, write routing, gate and read weights as markers."""

from __future__ import annotations

import math

from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes.markers import colours, entries
from trace_memory_ros.nodes.markers.layout import GATE, POLICY, ROUTE_HEIGHT, SLOTS, columns, entry, nice_ceiling, share
from trace_memory_ros.nodes.markers.painter import Painter, text_width

DEPTH = 0.06
LABELLED_SLOTS = 12
"""With more entries than this only every n-th and the last written is labelled, and shares are not written out."""
NAME_HEIGHT = 0.062


def labelled(count: int, written: int) -> list[int]:
    """Entries whose names are shown: all of a few, else every n-th, giving way to the last `written` one (-1: none)."""
    every = max(1, math.ceil(count / LABELLED_SLOTS))
    if every == 1 or written < 0:
        return list(range(0, count, every))
    return sorted({written, *(slot for slot in range(0, count, every) if abs(slot - written) >= every)})


def draw_slots(painter: Painter, message: MemoryDiagnostics, greatest_norm: float, alpha: float) -> None:
    """Bars: height = content norm on an axis that fits the episode, colour = last write strength, grey if refused."""
    count = len(message.slot_norms)
    centres, pitch = columns(count, SLOTS)
    full = nice_ceiling(greatest_norm)
    _axis(painter, full)
    refused = entries.refused(message)
    for slot, u in enumerate(centres):
        norm, strength = float(message.slot_norms[slot]), entry(message.write_strength, slot)
        known = math.isfinite(norm) and math.isfinite(strength)
        height = SLOTS.height * share(norm, full) if math.isfinite(norm) else SLOTS.height
        colour = colours.strength_colour(strength) if known else colours.WARNING
        colour = colours.FAINT if refused and known else colour
        centre = (u, SLOTS.bottom + height / 2, DEPTH / 2)
        painter.box("slots", centre, (0.62 * pitch, height, DEPTH), colours.faded(colour, alpha))
        plate = (u, SLOTS.bottom - 0.03, DEPTH / 2)
        painter.box("slot_plates", plate, (0.74 * pitch, 0.035, DEPTH), colours.slot_colour(slot))
        if count <= LABELLED_SLOTS:
            label = (u, SLOTS.bottom + 0.05, DEPTH + 0.01)
            words = f"{norm:.2f}" if known else "not a number"
            # Bars are light from the middle of the scale on.
            dark = not known or strength > 0.5
            painter.text("slot_norms", label, words, 0.055, colours.PANEL if dark else colours.TEXT)
    _names(painter, message, centres, pitch)
    if not count and message.status == MemoryCondition.OK:
        spot = (SLOTS.middle, SLOTS.bottom + SLOTS.height / 2, 0.02)
        painter.text(
            "no_slots", spot, f"'{message.mechanism}' keeps nothing: {entries.how_many(message)}", 0.09, colours.CAPTION
        )


def _names(painter: Painter, message: MemoryDiagnostics, centres: list[float], pitch: float) -> None:
    """Names under the plates, or numbers alone where names would not fit; the last written one stands out."""
    written = entries.written(message)
    shown = {slot: entries.name(message, slot) for slot in labelled(len(centres), written)}
    if any(text_width(words, NAME_HEIGHT) > 0.95 * pitch for words in shown.values()):
        shown = {slot: f"{slot}" for slot in shown}
    for slot, words in shown.items():
        colour = colours.TEXT if slot == written else colours.CAPTION
        painter.text("slot_names", (centres[slot], SLOTS.bottom - 0.1, DEPTH), words, NAME_HEIGHT, colour)


def _axis(painter: Painter, full: float) -> None:
    for level, label in ((0.0, "0"), (1.0, f"{full:g}")):
        height = SLOTS.bottom + level * SLOTS.height
        painter.box("slot_axis", (SLOTS.middle, height, 0.005), (SLOTS.width, 0.006, 0.006), colours.FAINT)
        painter.text("slot_axis_labels", (SLOTS.right + 0.07, height, 0.02), label, 0.055, colours.CAPTION)


def draw_routing(painter: Painter, message: MemoryDiagnostics) -> None:
    """A row of discs under the bars: area = share of the last write that each entry got, empty if it was refused."""
    count = len(message.slot_norms)
    centres, pitch = columns(count, SLOTS)
    size = min(0.19, 0.9 * pitch)
    refused = entries.refused(message)
    for slot, u in enumerate(centres):
        part = 0.0 if refused else entry(message.route, slot)
        known = math.isfinite(part)
        painter.disc("routing_rings", (u, ROUTE_HEIGHT, 0.0), size, colours.TRACK)
        colour = colours.slot_colour(slot) if known else colours.WARNING
        painter.disc("routing", (u, ROUTE_HEIGHT, 0.01), size * math.sqrt(share(part) if known else 1.0), colour)
        if count <= LABELLED_SLOTS and known:
            label = (u, ROUTE_HEIGHT - 0.135, 0.02)
            painter.text("routing_shares", label, f"{100 * part:.0f}%", 0.055, colours.CAPTION)


def draw_gate(painter: Painter, message: MemoryDiagnostics) -> None:
    """A column that fills up: how far the gate was open when a write was last due; below the line it refused."""
    middle = GATE.bottom + GATE.height / 2
    painter.box("gate_track", (GATE.middle, middle, 0.0), (GATE.width, GATE.height, 0.03), colours.TRACK)
    known = math.isfinite(message.gate)
    height = GATE.height * (share(message.gate) if known else 1.0)
    refused = entries.refused(message)
    colour = (colours.FAINT if refused else colours.TEXT) if known else colours.WARNING
    painter.box("gate", (GATE.middle, GATE.bottom + height / 2, 0.01), (0.8 * GATE.width, height, 0.03), colour)
    painter.box(
        "gate_threshold",
        (GATE.middle, GATE.bottom + entries.OPEN * GATE.height, 0.03),
        (GATE.width, 0.006, 0.01),
        colours.CAPTION,
    )
    label = f"{message.gate:.2f}{': refused' if refused else ''}" if known else "not a number"
    painter.text("gate_label", (GATE.middle, GATE.bottom - 0.06, 0.02), "write gate", 0.06, colours.CAPTION)
    painter.text("gate_label", (GATE.middle, GATE.bottom - 0.14, 0.02), label, 0.06, colours.TEXT)


def _mostly(painter: Painter, message: MemoryDiagnostics, alpha: float) -> None:
    most = entries.greatest(message.read_weights)
    if len(message.slot_norms) > LABELLED_SLOTS and most >= 0:
        words = f"mostly {entries.name(message, most)}: {100 * message.read_weights[most]:.0f}%"
        spot = (POLICY.right + 0.05, POLICY.top - 0.02, 0.06)
        painter.block("read_most", spot, [words], 0.062, colours.faded(colours.READ, alpha))


def draw_reads(painter: Painter, message: MemoryDiagnostics, alpha: float) -> None:
    """An arrow from the policy to each entry; width and opacity = weight in this tick's read; the greatest in words."""
    middle = POLICY.bottom + POLICY.height / 2
    painter.box("policy", (POLICY.middle, middle, 0.03), (POLICY.width, POLICY.height, 0.03), colours.TRACK)
    painter.text("policy_label", (POLICY.middle, middle, 0.06), "policy reads", 0.085, colours.READ)
    _mostly(painter, message, alpha)
    centres, pitch = columns(len(message.slot_norms), SLOTS)
    spread = POLICY.width / max(len(centres), 1)
    for slot, u in enumerate(centres):
        weight = entry(message.read_weights, slot)
        if not math.isfinite(weight):
            continue
        level = share(weight)
        tail_u = POLICY.middle + (slot - (len(centres) - 1) / 2) * spread
        width = min(0.006, 0.08 * pitch) + 0.05 * level
        colour = colours.faded(colours.READ, alpha * (0.25 + 0.75 * level))
        painter.arrow("reads", (tail_u, POLICY.bottom - 0.01, 0.05), (u, SLOTS.top + 0.03, 0.05), width, colour)
        if len(centres) <= LABELLED_SLOTS:
            # On the side that the arrow does not come from.
            aside = -0.36 if u < POLICY.middle else 0.36
            label = (u + aside * pitch, SLOTS.top + 0.06, 0.06)
            shown = colours.faded(colours.READ, 0.7 + 0.3 * level)
            painter.text("read_weights", label, f"{100 * weight:.0f}%", 0.06, shown)
