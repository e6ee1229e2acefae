"""Which moment a decision came from: camera strip, attribution, writes, routes and reads on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle
from numpy.typing import NDArray

from trace_memory_ros.evidence.results import AttributionEvidence, EpisodeEvidence, WriteAttribution
from trace_memory_ros.evidence.verdict import flips_without, matters
from trace_memory_ros.measure.drawing import BRANCH, CUE, FAINT, PATH, STYLE, TRACE, heatmap, svg
from trace_memory_ros.observation.frames import Cameras, Frames

TILES = 10
_WIDTH_IN, _LEFT_IN, _RIGHT_IN = 9.6, 1.45, 0.15
_TILE_IN = (_WIDTH_IN - _LEFT_IN - _RIGHT_IN) / TILES
_GAP_IN, _TOP_IN, _AXIS_IN, _LEGEND_IN = 0.09, 0.28, 0.45, 0.3
_MOST_CAMERAS = 3


def moment_chart(episode: EpisodeEvidence, attribution: AttributionEvidence, frames: Cameras | None, name: str) -> str:
    """SVG of one decision, from the episode's begin to the decision; without `frames` it has no camera strip.

    The frame of the moment that matters most and the frame of the decision are framed. name: unique on the page.
    """
    cameras = tuple(frames)[:_MOST_CAMERAS] if frames else ()
    slots = len(episode.timeline.read_weights[0])
    shares_in = [max(0.5, min(0.16 * slots, 1.4))] * 2 if slots > 1 else []
    heights_in = [_TILE_IN] * len(cameras) + [1.15, 0.42, *shares_in]
    total_in = _TOP_IN + _LEGEND_IN + sum(heights_in) + _GAP_IN * (len(heights_in) - 1) + _AXIS_IN
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(_WIDTH_IN, total_in))
        axes = _stacked(figure, heights_in, total_in, len(cameras))
        time_s = np.array(episode.timeline.time_s)
        end_s = float(max(time_s[attribution.branch_tick], 1e-3))
        strongest = attribution.strongest if matters(attribution) else None
        for ax, camera in zip(axes, cameras, strict=False):
            assert frames is not None
            _strip(ax, frames[camera], time_s, attribution.branch_tick, strongest)
            _name(ax, camera.replace("_", "\n"))
        panels = axes[len(cameras) :]
        _changes(panels[0], attribution, time_s)
        _writes(panels[1], episode, time_s, end_s)
        if shares_in:
            _shares(panels[2], panels[3], episode, attribution.branch_tick, time_s)
        for ax in axes:
            ax.set_xlim(0, end_s)
            ax.tick_params(labelbottom=ax is axes[-1])
        if strongest is not None:
            for ax, height in zip(panels, heights_in[len(cameras) :], strict=True):
                above = 1 + ((_LEGEND_IN if ax is panels[0] and cameras else 0) + _GAP_IN) / height
                ax.axvline(time_s[strongest.tick], ymax=above, color=CUE, lw=1.6, zorder=3, clip_on=False)
        axes[-1].set_xlabel("time in the episode, s; the right edge is the decision")
        _moments(axes[0], time_s, attribution, strongest)
        return svg(figure, name, f"Which moment the decision of {episode.name} came from")


def _stacked(figure: Figure, heights_in: Sequence[float], total_in: float, tight: int) -> list[Axes]:
    """Axes of those heights from the top down, all equally wide; the first `tight` touch, and have no frame."""
    axes, y = [], total_in - _TOP_IN
    for row, height in enumerate(heights_in):
        if row == tight:
            y -= _LEGEND_IN
        y -= height
        width_in = _WIDTH_IN - _LEFT_IN - _RIGHT_IN
        box = (_LEFT_IN / _WIDTH_IN, y / total_in, width_in / _WIDTH_IN, height / total_in)
        ax = figure.add_axes(box)
        if row < tight:
            ax.set_yticks(())
            ax.spines[:].set_visible(False)
        axes.append(ax)
        y -= _GAP_IN
    return axes


def _name(ax: Axes, text: str) -> None:
    ax.set_ylabel(text, rotation=0, ha="right", va="center", fontsize=9.5, linespacing=1.1)
    ax.yaxis.set_label_coords(-0.055, 0.5)
    ax.tick_params(axis="y", labelsize=8.5)


def tiles(time_s: NDArray[np.float64], branch_tick: int, strongest: int | None) -> list[tuple[float, float, int]]:
    """Begin and end in s and the shown tick of every tile from 0 to the decision.

    A tile shows the view at its middle, but the last one shows the decision's, and the one around the strongest
    write's tick shows that.
    """
    end_s = float(time_s[branch_tick])
    edges = np.linspace(0, end_s, TILES + 1)
    found = []
    for begin, end in zip(edges[:-1], edges[1:], strict=True):
        tick = int(np.abs(time_s[: branch_tick + 1] - (begin + end) / 2).argmin())
        found.append([float(begin), float(end), tick])
    found[-1][2] = branch_tick
    if strongest is not None:
        place = min(int(time_s[strongest] / end_s * TILES), TILES - 1) if end_s else 0
        found[place][2] = strongest
    return [(begin, end, int(tick)) for begin, end, tick in found]


def _strip(
    ax: Axes,
    frames: Frames,
    time_s: NDArray[np.float64],
    branch_tick: int,
    strongest: WriteAttribution | None,
) -> None:
    for begin, end, tick in tiles(time_s, branch_tick, strongest.tick if strongest else None):
        pad = 0.03 * (end - begin)
        extent = (begin + pad, end - pad, 0.03, 0.97)
        ax.imshow(frames[tick], extent=extent, aspect="auto", interpolation="none")
        framed = {branch_tick: BRANCH, strongest.tick if strongest else -1: CUE}.get(tick)
        if framed:
            corner, size = (begin + pad, 0.03), (end - begin - 2 * pad, 0.94)
            ax.add_patch(Rectangle(corner, *size, fill=False, ec=framed, lw=3.2, zorder=4, clip_on=False))
    ax.set_ylim(0, 1)


def _changes(ax: Axes, attribution: AttributionEvidence, time_s: NDArray[np.float64]) -> None:
    """How much the decision changes without what each moment wrote, and without the path it drove."""
    writes = attribution.writes
    at_s = time_s[[w.tick for w in writes]] if writes else np.zeros(0)
    by_action = any(w.window_delta_action is not None for w in writes)
    written = [(w.window_delta_action if by_action else w.window_delta_readout) or 0.0 for w in writes]
    driven = [w.path_delta_action for w in writes if w.path_delta_action is not None]
    several = f"what {attribution.window} writes around it wrote" if attribution.window > 1 else "what it wrote"
    ax.fill_between(at_s, written, color=TRACE, alpha=0.25, lw=0)
    ax.plot(at_s, written, color=TRACE, lw=1.6, marker="o", ms=2.5, label=f"without {several}")
    if writes and len(driven) == len(writes):
        ax.plot(at_s, driven, color=PATH, lw=1.6, marker="s", ms=2.5, label="without the path driven then")
    top = max([*written, *driven, 1e-6]) * 1.25
    flips = [s for s, w in zip(at_s, writes, strict=True) if flips_without(w)]
    if flips:
        ax.plot(flips, [top * 0.94] * len(flips), "v", color=BRANCH, ms=6, label="another branch", clip_on=False)
    ax.set_ylim(0, top)
    ax.locator_params(axis="y", nbins=3)
    look: dict[str, Any] = {"loc": "lower left", "bbox_to_anchor": (0, 1.0), "ncols": 3}
    ax.legend(**look, facecolor="white", edgecolor="none", framealpha=0.92, fontsize=9, borderaxespad=0.1)
    _name(ax, "change of\nthe action\n(std. dev.)" if by_action else "change of\nwhat is read\n(relative)")


def _writes(ax: Axes, episode: EpisodeEvidence, time_s: NDArray[np.float64], end_s: float) -> None:
    ticks = np.array(episode.timeline.write_ticks, dtype=int)
    strength = np.array([max(row, default=0.0) for row in episode.timeline.write_strength])
    shown = time_s[ticks] <= end_s if len(ticks) else np.zeros(0, dtype=bool)
    ax.vlines(time_s[ticks][shown], 0, strength[shown], color=TRACE, lw=1.2)
    ax.set_ylim(0, max(float(strength[shown].max(initial=0.0)) * 1.15, 1e-6))
    ax.set_yticks(())
    _name(ax, f"{int(shown.sum())} writes,\nstrength")


def _shares(write: Axes, read: Axes, episode: EpisodeEvidence, branch_tick: int, time_s: NDArray[np.float64]) -> None:
    """Routes, each standing until the next write, and read weights."""
    ticks = np.arange(branch_tick + 1)
    read_weights = np.array(episode.timeline.read_weights, dtype=np.float32)[ticks]
    newest = np.searchsorted(np.array(episode.timeline.write_ticks), ticks, side="right") - 1
    routes = np.zeros_like(read_weights)
    routes[newest >= 0] = np.array(episode.timeline.route, dtype=np.float32)[newest[newest >= 0]]
    heatmap(write, time_s[ticks], routes, "")
    heatmap(read, time_s[ticks], read_weights, "")
    _name(write, "written\nto slot")
    _name(read, "read\nfrom slot")


def _moments(
    ax: Axes, time_s: NDArray[np.float64], attribution: AttributionEvidence, strongest: WriteAttribution | None
) -> None:
    """Names the two framed moments above the strip."""
    bold: dict[str, Any] = {"transform": ax.transAxes, "va": "bottom", "fontweight": "bold"}
    decided = f"decision: {attribution.decision}" if attribution.decision else "decision"
    ax.text(1.0, 1.05, decided, ha="right", color=BRANCH, **bold)
    if strongest is None:
        ax.text(0.0, 1.05, "no single moment matters", ha="left", color=FAINT, **bold)
        return
    end_s = float(time_s[attribution.branch_tick])
    text = f"matters most: {end_s - float(time_s[strongest.tick]):.1f} s before"
    left = int(time_s[strongest.tick] / end_s * TILES) / TILES if end_s else 0.0
    ax.text(min(left, 0.55), 1.05, text, ha="left", color="#9a6700", **bold)
