"""The report's plots, as self-contained SVG text."""

from __future__ import annotations

from collections.abc import Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_memory_ros.arm.demo.acceptance import LATENCY_MS, REMEMBERS, chance, no_memory_at_most
from trace_memory_ros.arm.demo.results import Cell, DemoResult, Timeline
from trace_memory_ros.measure.drawing import BRANCH, COLOURS, CUE, FAINT, INK, STYLE, colour_of, heatmap, svg
from trace_memory_ros.measure.statistics import percentiles


def success_chart(result: DemoResult) -> str:
    """Branch success per task and memory with 95 % intervals: filled without, open with the inserted pause."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 0.9 + 0.62 * len(result.memories)), layout="constrained")
        axes = figure.subplots(1, len(result.tasks), sharex=True, sharey=True, squeeze=False)[0]
        for ax, task in zip(axes, result.tasks, strict=True):
            ax.axvline(chance(task), color=FAINT, lw=1, ls=(0, (4, 3)), zorder=0)
            ax.axvspan(REMEMBERS, 1.0, color=COLOURS["trace"], alpha=0.10, lw=0, zorder=0)
            ax.axvspan(0.0, no_memory_at_most(task), color=FAINT, alpha=0.05, lw=0, zorder=0)
            for row, memory in enumerate(result.memories):
                _interval(ax, result.cell(task, memory), row - 0.13, colour_of(memory), filled=True)
                _interval(ax, result.cell(task, memory, paused=True), row + 0.19, colour_of(memory), filled=False)
            ax.set_title(task, loc="left", fontweight="bold")
            ax.set_yticks(range(len(result.memories)), result.memories)
            ax.set_xticks((0, 0.25, chance(task), 0.75, 1), ("0", "", "chance", "", "1"))
            ax.set_xlabel("branch success")
        axes[0].set_xlim(-0.03, 1.05)
        axes[0].set_ylim(len(result.memories) - 0.5, -0.5)
        return svg(figure, "success", "Branch success per task and memory")


def _interval(ax: Axes, cell: Cell | None, height: float, colour: str, filled: bool) -> None:
    if cell is None:
        return
    ax.plot(cell.ci95, (height, height), color=colour, lw=2.2, solid_capstyle="round", alpha=0.85 if filled else 0.5)
    face = colour if filled else "white"
    ax.plot(cell.branch_success, height, "o", ms=8.5, mfc=face, mec=colour, mew=1.8, clip_on=False)


def latency_chart(latency_ms: Sequence[float]) -> str:
    """Histogram of condition latencies with median, 99th percentile and the budget of one 30 Hz camera frame."""
    p50, p99, most = percentiles(latency_ms, (50, 99, 100))
    right = max(1.25 * LATENCY_MS, 1.1 * p99)
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(9.2, 2.5), layout="constrained")
        ax = figure.subplots()
        ax.hist(np.minimum(latency_ms, right), bins=60, range=(0, right), color=COLOURS["trace"], alpha=0.85)
        top = ax.get_ylim()[1]
        marks = ((p50, "median", INK), (p99, "99 %", BRANCH), (LATENCY_MS, "budget", FAINT))
        for row, (x, name, colour) in enumerate(marks):
            ax.axvline(x, color=colour, lw=1.3, ls="-" if name != "budget" else (0, (4, 3)))
            ax.text(
                x + right * 0.006, top * (1 - 0.11 * row), f"{name} {x:.1f} ms", color=colour, va="top", fontsize=9.5
            )
        ax.set_xlim(0, right)
        beyond = f"; the last bar holds all beyond, up to {most:.0f} ms" if most > right else ""
        ax.set_xlabel(f"observation stamp to condition received, ms{beyond}")
        ax.set_ylabel("conditions")
        return svg(figure, "latency", "Condition latency")


def timeline_chart(timeline: Timeline, name: str) -> str:
    """Where an episode's evidence was written and what was read, slot by slot, with the cue and the branch marked.

    name: unique on the page.
    """
    slots = timeline.route.shape[1]
    with mpl.rc_context(STYLE):
        height = 1.6 + 2 * max(0.6, 0.2 + 0.13 * slots)
        figure = Figure(figsize=(9.2, height), layout="constrained")
        ratios = (1.2 + 1.3 * slots, 1.2 + 1.3 * slots, 4)
        write, read, ticks = figure.subplots(3, 1, sharex=True, height_ratios=ratios)
        heatmap(write, timeline.time_s, timeline.route, "last write\nwent to slot")
        heatmap(read, timeline.time_s, timeline.read_weights, "read\nfrom slot")
        ticks.vlines(timeline.time_s[timeline.wrote], 0, 1, color=COLOURS["trace"], lw=0.8)
        ticks.set_yticks((0.5,), (f"{int(timeline.wrote.sum())} writes",))
        ticks.set_ylim(0, 1)
        ticks.set_xlabel("simulated time, s")
        ticks.set_xlim(0, float(timeline.time_s[-1]))
        _mark_moments((write, read, ticks), timeline)
        return svg(figure, name, "Memory over one episode")


def _mark_moments(axes: Sequence[Axes], timeline: Timeline) -> None:
    seen = timeline.time_s[timeline.cue_visible]
    for ax in axes:
        if seen.size:
            ax.axvspan(seen[0], seen[-1], color=CUE, alpha=0.22, lw=0)
        if timeline.branch_s is not None:
            end_s = timeline.time_s[-1] if timeline.decided_s is None else timeline.decided_s
            ax.axvspan(timeline.branch_s, end_s, color=BRANCH, alpha=0.16, lw=0)
            ax.axvline(timeline.branch_s, color=BRANCH, lw=1.4)
    top = axes[0].get_ylim()[1]
    if seen.size:
        axes[0].text(seen[0], top, " cue visible", color="#9a6700", va="bottom", fontsize=9.5)
    if timeline.branch_s is not None:
        text = axes[0].text(timeline.branch_s, top, "branch ", color=BRANCH, va="bottom", ha="right", fontsize=9.5)
        text.set_in_layout(False)
