"""The executed path and its writes as markers."""

from __future__ import annotations

import math

from trace_memory_ros.nodes.markers import colours
from trace_memory_ros.nodes.markers.history import EpisodeHistory, PathPoint
from trace_memory_ros.nodes.markers.layout import PATH, nice_ceiling, share
from trace_memory_ros.nodes.markers.painter import Painter, Spot

SHORTEST_AXIS_S = 10.0
DOT = 0.045
CROWD = 40
"""With more writes than this their dots are drawn smaller, so that they stay apart."""


def draw_path(painter: Painter, history: EpisodeHistory) -> None:
    """Time to the right, path travelled upward: pauses are level, and dots are writes in the colour of their entry.

    Grey dots are writes that were due and that a gate refused. The travelled length is the standardised state path that
    the update clock counts. Behind it, thinner: how far joints are from their first pose, per curve.
    """
    points = history.points
    until_s = nice_ceiling(max(points[-1].t_s if points else 0.0, SHORTEST_AXIS_S))
    most = nice_ceiling(max((point.travelled for point in points), default=1.0))
    _frame(painter, until_s, most)
    _cue(painter, history.cue_s, until_s)
    _joints(painter, points, until_s)

    def spot(t_s: float, travelled: float, towards: float) -> Spot:
        return _u(t_s, until_s), PATH.bottom + PATH.height * share(travelled, most), towards

    painter.line("path", [spot(p.t_s, p.travelled, 0.03) for p in points], 0.016, colours.PATH)
    refused = [spot(event.t_s, event.travelled, 0.035) for event in history.refusals]
    painter.dots("refusals", refused, [colours.FAINT] * len(refused), 0.6 * DOT)
    dots = [spot(event.t_s, event.travelled, 0.04) for event in history.writes]
    dot_colours = [colours.slot_colour(e.slot) if e.slot >= 0 else colours.WARNING for e in history.writes]
    painter.dots("writes", dots, dot_colours, DOT if len(dots) <= CROWD else 0.6 * DOT)
    if points:
        painter.sphere("path_head", spot(points[-1].t_s, points[-1].travelled, 0.05), 0.035, colours.TEXT)


def _u(t_s: float, until_s: float) -> float:
    return PATH.left + PATH.width * share(t_s, until_s)


def _frame(painter: Painter, until_s: float, most: float) -> None:
    centre = (PATH.middle, PATH.bottom + PATH.height / 2, -0.005)
    painter.box("path_back", centre, (PATH.width, PATH.height, 0.01), colours.TRACK)
    below = PATH.bottom - 0.06
    painter.text("path_axis", (PATH.left, below, 0.02), "0", 0.055, colours.CAPTION)
    painter.text("path_axis", (PATH.right, below, 0.02), f"{until_s:g} s", 0.055, colours.CAPTION)
    painter.text("path_axis", (PATH.right + 0.08, PATH.top, 0.02), f"{most:g}", 0.055, colours.CAPTION)


def _cue(painter: Painter, cue_s: tuple[float, float] | None, until_s: float) -> None:
    if cue_s:
        left, right = _u(cue_s[0], until_s), _u(cue_s[1], until_s)
        centre = ((left + right) / 2, PATH.bottom + PATH.height / 2, 0.004)
        painter.box("cue", centre, (right - left, PATH.height, 0.01), colours.CUE)
        painter.block("cue_label", (left + 0.01, PATH.top - 0.01, 0.03), ["cue seen"], 0.05, colours.TEXT)


def _joints(painter: Painter, points: list[PathPoint], until_s: float) -> None:
    known = [distance for point in points for distance in point.moved.values() if math.isfinite(distance)]
    full = nice_ceiling(max(known, default=1.0))
    for index, name in enumerate(points[-1].moved if points else ()):
        distances = [(point.t_s, point.moved.get(name, math.nan)) for point in points]
        spots = [
            (_u(t_s, until_s), PATH.bottom + PATH.height * share(distance, full), 0.02)
            for t_s, distance in distances
            if math.isfinite(distance)
        ]
        painter.line(f"joints_{index}", spots, 0.007, colours.limb_colour(index))
