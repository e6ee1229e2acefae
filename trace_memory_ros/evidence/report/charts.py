"""Plots over all episodes of an evaluation: when decisions were made up, what was read at them, transforms, latency."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from trace_memory_ros.evidence.results import AttributionEvidence, BranchEvidence, EpisodeEvidence
from trace_memory_ros.evidence.verdict import change_without, flips_without
from trace_memory_ros.measure.drawing import BRANCH, FAINT, INK, RULE, SHARES, STYLE, TRACE, svg

MOST_ROWS = 60
PRESERVED, DESTROYED = 85.0, 50.0
"""An order-preserving transform should keep a diagnostic above the first, order reversal bring it below the second."""
_COLUMNS = 240
_CHANGES = LinearSegmentedColormap.from_list("changes", ["#f3f5f7", "#f0cf86", "#e8a321", "#6b3d00"])


class Estimate(NamedTuple):
    """A mean with its 95 % interval, of n episodes."""

    mean: float
    low: float
    high: float
    n: int


class TransformRow(NamedTuple):
    """A history transform on both diagnostics, 0..100; None where it could not be measured."""

    name: str
    control: bool
    route_similarity: Estimate | None
    branch_consistency: Estimate | None


def estimate(figure: Mapping[str, Any] | None) -> Estimate | None:
    """A figure of `evidence.figures` with its interval; None where it was not measured."""
    if figure is None:
        return None
    low, high = figure["ci95"]
    return Estimate(figure["mean"], low, high, figure["episodes"])


def transform_rows(figures: Mapping[str, Any], control: str) -> list[TransformRow]:
    """Every transform that was measured, in the order of TRACE's table 3; `control` is the negative control."""
    return [
        TransformRow(name, name == control, estimate(row["route_similarity"]), estimate(row["branch_consistency"]))
        for name, row in figures["transforms"].items()
    ]


def spread(count: int, most: int = MOST_ROWS) -> list[int]:
    """At most `most` of `count` places, evenly."""
    return sorted({round(place) for place in np.linspace(0, count - 1, min(count, most))}) if count else []


def transform_chart(rows: Sequence[TransformRow], *chance: float | None) -> str:
    """Both diagnostics per transform, with what order-preserving ones and the negative control should reach shaded.

    chance: of either diagnostic, where nothing is remembered in order; dotted.
    """
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 0.95 + 0.36 * len(rows)), layout="constrained")
        panels = figure.subplots(1, 2, sharey=True)
        found = [row.route_similarity for row in rows], [row.branch_consistency for row in rows]
        for ax, title, estimates in zip(panels, ("route similarity", "branch consistency"), found, strict=True):
            for place, (row, estimate) in enumerate(zip(rows, estimates, strict=True)):
                _goal(ax, place, row.control)
                _dot(ax, estimate, place, BRANCH if row.control else TRACE)
            ax.set_title(title, loc="left", fontweight="bold")
            ax.set_xlim(0, 103)
        for ax, level in zip(panels, chance, strict=False):
            if level is not None:
                ax.axvline(level, color=FAINT, lw=1.2, ls=(0, (1, 2)), zorder=0)
        for ax in panels:
            ax.set_xticks((0, 50, 85, 100))
            ax.set_xlabel("recorded history = 100")
        panels[0].set_yticks(range(len(rows)), [row.name.replace("_", " ") for row in rows])
        panels[0].set_ylim(len(rows) - 0.5, -0.5)
        return svg(figure, "transforms", "History transforms")


def _goal(ax: Axes, place: int, control: bool) -> None:
    reach, width = (0.0, DESTROYED) if control else (PRESERVED, 100.0 - PRESERVED)
    ax.barh(place, width, 0.86, left=reach, color=BRANCH if control else TRACE, alpha=0.09, lw=0, zorder=0)


def _dot(ax: Axes, estimate: Estimate | None, place: int, colour: str) -> None:
    if estimate is None:
        ax.text(2, place, "not measured", va="center", color=FAINT, fontsize=9, style="italic")
        return
    ax.plot((estimate.low, estimate.high), (place, place), color=colour, lw=2.2, solid_capstyle="round", clip_on=False)
    ax.plot(estimate.mean, place, "o", ms=7.5, color=colour, clip_on=False)


def decisions_chart(decisions: Sequence[AttributionEvidence]) -> str:
    """A row a decision, time before it from left to right: the darker, the more it changes without that moment."""
    shown = sorted(
        (decisions[place] for place in spread(len(decisions))), key=lambda d: (d.label or "", d.decision or "")
    )
    longest_s = max((_age_s(d, d.writes[0].stamp_ns) for d in shown if d.writes), default=1.0) or 1.0
    changes = np.array([_over_time(decision, longest_s) for decision in shown])
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 1.0 + max(0.11 * len(shown), 0.5)), layout="constrained")
        ax = figure.subplots()
        extent = (-longest_s, 0.0, len(shown) - 0.5, -0.5)
        top = float(np.nanmax(changes)) if np.isfinite(changes).any() else 0.0
        image = ax.imshow(changes, aspect="auto", cmap=_CHANGES, vmin=0, vmax=top or 1.0, extent=extent)
        for place, decision in enumerate(shown):
            flips = [-_age_s(decision, w.stamp_ns) for w in decision.writes if flips_without(w)]
            ax.plot(flips, [place] * len(flips), "o", mfc="white", mec=BRANCH, ms=3.4, mew=1.1)
        _groups(ax, [d.label or "no label" for d in shown])
        ax.set_xlabel("time before the decision, s")
        unit = "std. dev." if _by_action(decisions) else "relative, of what is read"
        figure.colorbar(image, ax=ax, pad=0.01, fraction=0.03).set_label(f"change, {unit}", fontsize=9)
        return svg(figure, "decisions", "Which moments the decisions came from")


def _by_action(decisions: Sequence[AttributionEvidence]) -> bool:
    return any(w.window_delta_action is not None for d in decisions for w in d.writes)


def _age_s(decision: AttributionEvidence, stamp_ns: int) -> float:
    return (decision.branch_stamp_ns - stamp_ns) / 1e9


def _over_time(decision: AttributionEvidence, longest_s: float) -> NDArray[np.float64]:
    """Change without the nearest write, in `_COLUMNS` equal steps up to the decision; NaN before all writes."""
    values = np.full(_COLUMNS, np.nan)
    if decision.writes:
        ages_s = np.array([_age_s(decision, w.stamp_ns) for w in decision.writes])
        change = [change_without(write) for write in decision.writes]
        at_s = longest_s * (1 - (np.arange(_COLUMNS) + 0.5) / _COLUMNS)
        nearest = np.abs(ages_s[None] - at_s[:, None]).argmin(axis=1)
        values = np.where(at_s <= ages_s.max() + longest_s / _COLUMNS, np.array(change)[nearest], np.nan)
    return values


def _groups(ax: Axes, names: Sequence[str]) -> None:
    """Names runs of equal `names` of rows once, with a line between runs."""
    starts = [place for place, name in enumerate(names) if not place or names[place - 1] != name]
    ends = [*starts[1:], len(names)]
    middles = [(start + end - 1) / 2 for start, end in zip(starts, ends, strict=True)]
    ax.set_yticks(middles, [names[start] for start in starts])
    for start in starts[1:]:
        ax.axhline(start - 0.5, color=INK, lw=0.8)


def reads_chart(branches: Sequence[BranchEvidence]) -> str:
    """Read weights at the branch: a row a decision, grouped by the label, a column a slot."""
    shown = sorted((branches[place] for place in spread(len(branches))), key=lambda b: b.label or "")
    weights = np.array([b.read_weights for b in shown], dtype=np.float64)
    slots = weights.shape[1]
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 1.0 + max(0.09 * len(shown), 0.5)), layout="constrained")
        ax = figure.subplots()
        extent = (0.5, slots + 0.5, len(shown) - 0.5, -0.5)
        image = ax.imshow(weights, aspect="auto", cmap=SHARES, vmin=0, vmax=1, extent=extent)
        ax.set_xticks(range(1, slots + 1, -(-slots // 16)))
        ax.set_xlabel("slot")
        _groups(ax, [b.label or "no label" for b in shown])
        figure.colorbar(image, ax=ax, pad=0.01, fraction=0.03).set_label("share of the read", fontsize=9)
        return svg(figure, "reads", "Read weights at the branch")


def latency_chart(episodes: Sequence[EpisodeEvidence]) -> str:
    """Per stage of a tick: median of the episodes' medians, their highest 99th percentile, and the maximum."""
    stages = list(dict.fromkeys(stage for episode in episodes for stage in episode.latency_ms))
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 0.95 + 0.3 * len(stages)), layout="constrained")
        ax = figure.subplots()
        for place, stage in enumerate(stages):
            p50, p99, most = stage_latency(episodes, stage)
            ax.plot((p50, p99), (place, place), color=TRACE, lw=2.2, solid_capstyle="round")
            ax.plot(p50, place, "o", ms=7, color=TRACE, label=None if place else "median")
            ax.plot(p99, place, "|", ms=10, mew=2, color=TRACE, label=None if place else "99 %, worst episode")
            ax.plot(most, place, "x", ms=6, mew=1.5, color=FAINT, label=None if place else "maximum")
        ax.set_yticks(range(len(stages)), [stage.replace("_", " ") for stage in stages])
        ax.set_ylim(len(stages) - 0.5, -0.5)
        ax.set_xscale("log")
        ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
        ax.grid(axis="x", color=RULE, lw=0.8)
        ax.set_axisbelow(True)
        ax.set_xlabel("ms a tick, logarithmic")
        ax.legend(frameon=False, fontsize=9, loc="lower right", bbox_to_anchor=(1, 1), ncols=3, borderaxespad=0)
        return svg(figure, "latency", "Latency of a tick")


def stage_latency(episodes: Sequence[EpisodeEvidence], stage: str) -> tuple[float, float, float]:
    """Median of the episodes' medians, highest 99th percentile and maximum of a stage, ms."""
    found: list[Mapping[str, float]] = [e.latency_ms[stage] for e in episodes if stage in e.latency_ms]
    return float(np.median([f["p50"] for f in found])), max(f["p99"] for f in found), max(f["max"] for f in found)
