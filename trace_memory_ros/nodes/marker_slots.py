"""Slots, write routing, gate and read weights as markers."""

from __future__ import annotations

import math

from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import marker_colours as colours
from trace_memory_ros.nodes.marker_layout import GATE, POLICY, ROUTE_HEIGHT, SLOTS, columns, entry, nice_ceiling, share
from trace_memory_ros.nodes.marker_painter import Painter

DEPTH = 0.06
LABELLED_SLOTS = 12
"""With more slots than this only every n-th is labelled, and shares are not written out."""


def draw_slots(painter: Painter, message: MemoryDiagnostics, greatest_norm: float, alpha: float) -> None:
    """Bars: height = content norm on an axis that fits the episode, colour = last write strength."""
    count = len(message.slot_norms)
    centres, pitch = columns(count, SLOTS)
    full = nice_ceiling(greatest_norm)
    _axis(painter, full)
    every = math.ceil(count / LABELLED_SLOTS)
    for slot, u in enumerate(centres):
        norm, strength = float(message.slot_norms[slot]), entry(message.write_strength, slot)
        known = math.isfinite(norm) and math.isfinite(strength)
        height = SLOTS.height * share(norm, full) if math.isfinite(norm) else SLOTS.height
        colour = colours.strength_colour(strength) if known else colours.WARNING
        centre = (u, SLOTS.bottom + height / 2, DEPTH / 2)
        painter.box("slots", centre, (0.62 * pitch, height, DEPTH), colours.faded(colour, alpha))
        plate = (u, SLOTS.bottom - 0.03, DEPTH / 2)
        painter.box("slot_plates", plate, (0.74 * pitch, 0.035, DEPTH), colours.slot_colour(slot))
        if slot % every == 0:
            name = (u, SLOTS.bottom - 0.1, DEPTH)
            painter.text("slot_names", name, f"{slot}" if every > 1 else f"slot {slot}", 0.062, colours.CAPTION)
        if every == 1:
            label = (u, SLOTS.bottom + 0.05, DEPTH + 0.01)
            words = f"{norm:.2f}" if known else "not a number"
            # Bars are light from the middle of the scale on.
            dark = not known or strength > 0.5
            painter.text("slot_norms", label, words, 0.055, colours.PANEL if dark else colours.TEXT)
    if not count and message.status == MemoryCondition.OK:
        spot = (SLOTS.middle, SLOTS.bottom + SLOTS.height / 2, 0.02)
        painter.text("no_slots", spot, f"'{message.mechanism}' keeps nothing: no slots", 0.09, colours.CAPTION)


def _axis(painter: Painter, full: float) -> None:
    for level, label in ((0.0, "0"), (1.0, f"{full:g}")):
        height = SLOTS.bottom + level * SLOTS.height
        painter.box("slot_axis", (SLOTS.middle, height, 0.005), (SLOTS.width, 0.006, 0.006), colours.FAINT)
        painter.text("slot_axis_labels", (SLOTS.right + 0.07, height, 0.02), label, 0.055, colours.CAPTION)


def draw_routing(painter: Painter, message: MemoryDiagnostics) -> None:
    """A row of discs under the bars: area = share of the last write that each slot got."""
    count = len(message.slot_norms)
    centres, pitch = columns(count, SLOTS)
    size = min(0.19, 0.9 * pitch)
    for slot, u in enumerate(centres):
        part = entry(message.route, slot)
        known = math.isfinite(part)
        painter.disc("routing_rings", (u, ROUTE_HEIGHT, 0.0), size, colours.TRACK)
        colour = colours.slot_colour(slot) if known else colours.WARNING
        painter.disc("routing", (u, ROUTE_HEIGHT, 0.01), size * math.sqrt(share(part) if known else 1.0), colour)
        if count <= LABELLED_SLOTS and known:
            label = (u, ROUTE_HEIGHT - 0.135, 0.02)
            painter.text("routing_shares", label, f"{100 * part:.0f}%", 0.055, colours.CAPTION)


def draw_gate(painter: Painter, message: MemoryDiagnostics) -> None:
    """A column that fills up: how far the write gate was open at the last write."""
    middle = GATE.bottom + GATE.height / 2
    painter.box("gate_track", (GATE.middle, middle, 0.0), (GATE.width, GATE.height, 0.03), colours.TRACK)
    known = math.isfinite(message.gate)
    height = GATE.height * (share(message.gate) if known else 1.0)
    colour = colours.TEXT if known else colours.WARNING
    painter.box("gate", (GATE.middle, GATE.bottom + height / 2, 0.01), (0.8 * GATE.width, height, 0.03), colour)
    label = f"{message.gate:.2f}" if known else "not a number"
    painter.text("gate_label", (GATE.middle, GATE.bottom - 0.06, 0.02), "write gate", 0.06, colours.CAPTION)
    painter.text("gate_label", (GATE.middle, GATE.bottom - 0.14, 0.02), label, 0.06, colours.TEXT)


def draw_reads(painter: Painter, message: MemoryDiagnostics, alpha: float) -> None:
    """An arrow from the policy to each slot; width and opacity = weight in this tick's read."""
    middle = POLICY.bottom + POLICY.height / 2
    painter.box("policy", (POLICY.middle, middle, 0.03), (POLICY.width, POLICY.height, 0.03), colours.TRACK)
    painter.text("policy_label", (POLICY.middle, middle, 0.06), "policy reads", 0.085, colours.READ)
    centres, pitch = columns(len(message.slot_norms), SLOTS)
    spread = POLICY.width / max(len(centres), 1)
    for slot, u in enumerate(centres):
        weight = entry(message.read_weights, slot)
        if not math.isfinite(weight):
            continue
        level = share(weight)
        tail_u = POLICY.middle + (slot - (len(centres) - 1) / 2) * spread
        width = 0.006 + 0.05 * level * min(1.0, 3 * pitch / SLOTS.width * 2)
        colour = colours.faded(colours.READ, alpha * (0.25 + 0.75 * level))
        painter.arrow("reads", (tail_u, POLICY.bottom - 0.01, 0.05), (u, SLOTS.top + 0.03, 0.05), width, colour)
        if len(centres) <= LABELLED_SLOTS:
            # On the side that the arrow does not come from.
            aside = -0.36 if u < POLICY.middle else 0.36
            label = (u + aside * pitch, SLOTS.top + 0.06, 0.06)
            shown = colours.faded(colours.READ, 0.7 + 0.3 * level)
            painter.text("read_weights", label, f"{100 * weight:.0f}%", 0.06, shown)
