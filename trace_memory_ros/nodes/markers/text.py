"""Words of the RViz panel: title, status, figures, inputs and legend."""

from __future__ import annotations

import math
from collections.abc import Sequence
from textwrap import wrap

from trace_memory_ros.msg import EpisodeStatus, MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes.markers import colours, entries
from trace_memory_ros.nodes.markers.colours import Colour
from trace_memory_ros.nodes.markers.layout import (
    FIGURES,
    GATE,
    HEADER,
    INPUTS,
    LEGEND,
    PATH,
    ROUTE_HEIGHT,
    SLOTS,
    entry,
)
from trace_memory_ros.nodes.markers.painter import LINE_PITCH, Painter, text_width

LINE = 0.07
FAULTS_SHOWN = 2
"""Further ones are counted."""
FAULT_COLUMNS = 38
_WORDS = {
    **dict.fromkeys(("origin", "colour", "when", "small_colour", "glyph"), ("left", "right")),
    "cups": ("left", "middle", "right"),
}
"""Of tasks with one decision whose cue is its answer; a status says no words, so others are told by number."""


def shortened(text: str, length: int) -> str:
    """The text, cut to `length` characters with a mark where it was."""
    return text if len(text) <= length else text[: length - 2] + ".."


def number(value: float, form: str, unit: str = "") -> str:
    """A formatted number, or words where it is not one."""
    return f"{value:{form}}{unit}" if math.isfinite(value) else "not a number"


def size(count: int) -> str:
    """Bytes in people's units."""
    return f"{count} B" if count < 1000 else f"{count / 1000:.1f} kB" if count < 1_000_000 else f"{count / 1e6:.1f} MB"


def draw_header(
    painter: Painter, title: str, subtitle: str, status: str, colour: Colour, right: float = HEADER.right
) -> None:
    """Title on the left, the status as a coloured chip on the right, which ends at `right`."""
    painter.block("title", (HEADER.left, HEADER.top, 0.02), [title], 0.135, colours.TEXT)
    if subtitle:
        left = HEADER.left + text_width(title, 0.135) + 0.2
        painter.block("subtitle", (left, HEADER.top - 0.05, 0.02), [subtitle], 0.085, colours.CAPTION)
    width = text_width(status, 0.09) + 0.12
    chip = (right - width / 2, HEADER.top - 0.09, 0.0)
    painter.box("status", chip, (width, 0.15, 0.03), colour)
    painter.text("status_label", (chip[0], chip[1], 0.02), status, 0.09, colours.PANEL)


def episode_line(episode: EpisodeStatus | None) -> str:
    """The task as its simulator reports it, for people: the memory never sees this."""
    if episode is None or episode.phase == EpisodeStatus.IDLE:
        return ""
    words = _WORDS.get(episode.task, ())
    cue = _word(words, episode.cue)
    line = f"task '{episode.task}': cue was {cue}"
    if episode.cue_visible:
        line = f"task '{episode.task}': cue {cue}, in view"
    if episode.branch < 0:
        return f"{line}, not decided yet"
    line = f"{line}, arm went {_word(words, episode.branch)}"
    over = episode.phase == EpisodeStatus.FINISHED
    # Where there are several decisions the first says nothing of the others, and is no cue's number.
    if not words and not over:
        return line
    right = episode.branch == episode.cue if words else episode.success
    return f"{line}: {'right' if right else 'wrong'} choice"


def _word(words: Sequence[str], number: int) -> str:
    return words[number] if number in range(len(words)) else str(number)


def draw_figures(painter: Painter, message: MemoryDiagnostics, writes_missed: int) -> None:
    """Two columns: what, and how much."""
    writes = f"{message.write_count}"
    if message.write_count < message.due_count:
        writes += f" of {message.due_count} due"
    if writes_missed:
        writes += f" ({writes_missed} not seen here)"
    rows = (
        ("mechanism", message.mechanism or "unknown"),
        ("episode, tick", f"{message.episode}, {message.tick}"),
        ("writes", writes),
        ("write rate", number(message.write_rate_hz, ".2f", " per s")),
        ("route entropy", number(message.write_entropy, ".2f", " of 1")),
        ("entries used", number(100 * message.slot_occupancy, ".0f", "%")),
        ("surprise", number(message.surprise, ".2f")),
        ("latency", number(message.latency_ms, ".1f", " ms")),
        ("memory size", size(message.state_bytes)),
    )
    painter.block("figure_names", (FIGURES.left, FIGURES.top, 0.02), [r[0] for r in rows], LINE, colours.CAPTION)
    painter.block("figures", (FIGURES.left + 0.58, FIGURES.top, 0.02), [r[1] for r in rows], LINE, colours.TEXT)


def draw_inputs(painter: Painter, message: MemoryDiagnostics, faults: list[str]) -> None:
    """Every input stream with the age of its held sample; stale ones, and faults, in warning colour."""
    painter.block("inputs_title", (INPUTS.left, INPUTS.top, 0.02), ["inputs: age at this tick"], LINE, colours.CAPTION)
    height = INPUTS.top - LINE * LINE_PITCH
    for index, name in enumerate(message.input_names):
        stale = index >= len(message.input_stale) or message.input_stale[index]
        age_ms = entry(message.input_ages_ms, index)
        age = f"{age_ms:.0f} ms" if math.isfinite(age_ms) else "no sample yet"
        ns, colour = ("stale_inputs", colours.WARNING) if stale else ("inputs", colours.TEXT)
        words = [f"{shortened(name, 16)} {'STALE: ' if stale else ''}{age}"]
        painter.block(ns, (INPUTS.left, height, 0.02), words, LINE, colour)
        height -= LINE * LINE_PITCH
    lines = [
        row for fault in faults[:FAULTS_SHOWN] for row in wrap(fault, FAULT_COLUMNS, max_lines=2, placeholder=" ..")
    ]
    if len(faults) > FAULTS_SHOWN:
        lines.append(f"and {len(faults) - FAULTS_SHOWN} more faults")
    painter.block("faults", (INPUTS.left, height, 0.02), lines, 0.8 * LINE, colours.WARNING)


def draw_summary(painter: Painter, message: MemoryDiagnostics, faults: list[str], left: float, top: float) -> None:
    """Of a compact panel: the tick in one line, and what is stale or wrong in another."""
    latency = number(message.latency_ms, ".1f", " ms")
    line = f"episode {message.episode}, tick {message.tick}, {message.write_count} writes, latency {latency}"
    painter.block("figures", (left, top, 0.02), [line], LINE, colours.CAPTION)
    stale = [f"{name} is stale" for name, old in zip(message.input_names, message.input_stale, strict=False) if old]
    wrong = [*stale, *faults]
    if wrong:
        more = f", and {len(wrong) - 1} more" if len(wrong) > 1 else ""
        spot = (left, top - LINE * LINE_PITCH, 0.02)
        painter.block("faults", spot, [f"{shortened(wrong[0], 70)}{more}"], LINE, colours.WARNING)


def draw_banner(painter: Painter, words: str, colour: Colour) -> None:
    """A strip across the slots when what they show is not of this tick."""
    centre = (SLOTS.middle, SLOTS.top + 0.17, 0.11)
    shown = shortened(words, 84)
    painter.box("banner", centre, (text_width(shown, 0.075) + 0.12, 0.14, 0.02), colour)
    painter.text("banner_label", (centre[0], centre[1], 0.13), shown, 0.075, colours.PANEL)


def draw_captions(painter: Painter, message: MemoryDiagnostics, curves: Sequence[str]) -> None:
    """What the parts mean, for who sees the panel for the first time. curves: names of those of joints."""
    captions = (
        (GATE.left, SLOTS.top + 0.16, entries.how_many(message)),
        (GATE.left, ROUTE_HEIGHT + 0.04, "last write went to"),
        (GATE.left, PATH.top + 0.105, "executed path"),
    )
    for left, height, words in captions:
        painter.block("captions", (left, height, 0.02), [words], LINE, colours.TEXT)
    _draw_last_write(painter, message)
    limbs = [(shortened(name, 16), colours.limb_colour(index)) for index, name in enumerate(curves)]
    legend = (("path travelled", colours.PATH), *limbs)
    left = PATH.left + 0.75
    for words, colour in legend:
        painter.block("path_legend", (left, PATH.top + 0.095, 0.02), [words], 0.055, colour)
        left += text_width(words, 0.055) + 0.12
    dots = ["dots: writes, coloured as above; grey: refused"]
    if left + text_width(dots[0], 0.055) < FIGURES.left:
        painter.block("path_legend", (left, PATH.top + 0.095, 0.02), dots, 0.055, colours.CAPTION)
    draw_legend(painter)


def _draw_last_write(painter: Painter, message: MemoryDiagnostics) -> None:
    spot = (GATE.left, ROUTE_HEIGHT + 0.04 - LINE * LINE_PITCH, 0.02)
    slot = entries.written(message)
    if slot >= 0:
        painter.block("last_write", spot, [entries.name(message, slot)], LINE, colours.slot_colour(slot))
    elif entries.refused(message):
        painter.block("last_write", spot, ["nothing: gate shut"], LINE, colours.CAPTION)


def draw_legend(painter: Painter) -> None:
    """The colour scale of the bars."""
    steps = 24
    width = LEGEND.width / steps
    title = ["bar height: content, colour: last write"]
    painter.block("legend_title", (LEGEND.left, LEGEND.top + 0.1, 0.02), title, 0.055, colours.CAPTION)
    spots = [(LEGEND.left + width * (step + 0.5), LEGEND.bottom + LEGEND.height / 2, 0.0) for step in range(steps)]
    scale = [colours.strength_colour(step / (steps - 1)) for step in range(steps)]
    painter.boxes("legend", spots, (width, LEGEND.height, 0.004), scale)
    below = LEGEND.bottom - 0.05
    painter.text("legend_ends", (LEGEND.left + 0.1, below, 0.02), "kept as is", 0.05, colours.CAPTION)
    painter.text("legend_ends", (LEGEND.right - 0.1, below, 0.02), "all replaced", 0.05, colours.CAPTION)


STATUS_WORDS: dict[int, tuple[str, Colour]] = {
    MemoryCondition.OK: ("OK", colours.GOOD),
    MemoryCondition.STALE: ("STALE", colours.WARNING),
    MemoryCondition.INVALID: ("INVALID", colours.ERROR),
}
