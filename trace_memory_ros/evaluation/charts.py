"""The report's plots, as self-contained SVG text."""

from __future__ import annotations

import io
import re
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

from trace_memory_ros.evaluation.acceptance import CHANCE_AT_MOST, LATENCY_MS, REMEMBERS
from trace_memory_ros.evaluation.results import Cell, DemoResult, Timeline
from trace_memory_ros.evaluation.statistics import percentiles

INK, FAINT, RULE = "#1c2430", "#66717f", "#d9dee5"
CUE, BRANCH = "#e8a321", "#c2335b"
COLOURS = {"trace": "#0f7b6c", "gru": "#5566c9", "none": "#9a6a4f"}
OTHER_COLOUR = "#5b6470"
SHARES = LinearSegmentedColormap.from_list("shares", ["#f3f5f7", "#8cc7bb", "#0f7b6c", "#06332d"])
_STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "trace_memory_ros",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "axes.labelcolor": FAINT,
    "axes.edgecolor": RULE,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "xtick.color": FAINT,
    "ytick.color": INK,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "image.interpolation": "nearest",
}
_LONGEST_HEATMAP = 400


def colour_of(memory: str) -> str:
    """A mechanism's colour on the whole page."""
    return COLOURS.get(memory, OTHER_COLOUR)


def success_chart(result: DemoResult) -> str:
    """Branch success per task and memory with 95 % intervals: filled without, open with the inserted pause."""
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(9.2, 0.9 + 0.62 * len(result.memories)), layout="constrained")
        axes = figure.subplots(1, len(result.tasks), sharex=True, sharey=True, squeeze=False)[0]
        for ax, task in zip(axes, result.tasks, strict=True):
            ax.axvline(0.5, color=FAINT, lw=1, ls=(0, (4, 3)), zorder=0)
            ax.axvspan(REMEMBERS, 1.0, color=COLOURS["trace"], alpha=0.10, lw=0, zorder=0)
            ax.axvspan(0.0, CHANCE_AT_MOST, color=FAINT, alpha=0.05, lw=0, zorder=0)
            for row, memory in enumerate(result.memories):
                _interval(ax, result.cell(task, memory), row - 0.13, colour_of(memory), filled=True)
                _interval(ax, result.cell(task, memory, paused=True), row + 0.19, colour_of(memory), filled=False)
            ax.set_title(task, loc="left", fontweight="bold")
            ax.set_yticks(range(len(result.memories)), result.memories)
            ax.set_xticks((0, 0.25, 0.5, 0.75, 1), ("0", "", "chance", "", "1"))
            ax.set_xlabel("branch success")
        axes[0].set_xlim(-0.03, 1.05)
        axes[0].set_ylim(len(result.memories) - 0.5, -0.5)
        return _svg(figure, "success", "Branch success per task and memory")


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
    with mpl.rc_context(_STYLE):
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
        return _svg(figure, "latency", "Condition latency")


def timeline_chart(timeline: Timeline, name: str) -> str:
    """Where an episode's evidence was written and what was read, slot by slot, with the cue and the branch marked.

    name: unique on the page.
    """
    slots = timeline.route.shape[1]
    with mpl.rc_context(_STYLE):
        height = 1.6 + 2 * max(0.6, 0.2 + 0.13 * slots)
        figure = Figure(figsize=(9.2, height), layout="constrained")
        ratios = (1.2 + 1.3 * slots, 1.2 + 1.3 * slots, 4)
        write, read, ticks = figure.subplots(3, 1, sharex=True, height_ratios=ratios)
        _heatmap(write, timeline.time_s, timeline.route, "last write\nwent to slot")
        _heatmap(read, timeline.time_s, timeline.read_weights, "read\nfrom slot")
        ticks.vlines(timeline.time_s[timeline.wrote], 0, 1, color=COLOURS["trace"], lw=0.8)
        ticks.set_yticks((0.5,), (f"{int(timeline.wrote.sum())} writes",))
        ticks.set_ylim(0, 1)
        ticks.set_xlabel("simulated time, s")
        ticks.set_xlim(0, float(timeline.time_s[-1]))
        _mark_moments((write, read, ticks), timeline)
        return _svg(figure, name, "Memory over one episode")


def _heatmap(ax: Axes, time_s: NDArray[np.float64], values: NDArray[np.float32], label: str) -> None:
    stride = -(-len(time_s) // _LONGEST_HEATMAP)
    pad = -len(time_s) % stride
    shown = np.pad(values, ((0, pad), (0, 0)), mode="edge").reshape(-1, stride, values.shape[1]).mean(axis=1)
    extent = (float(time_s[0]), float(time_s[-1]), values.shape[1] - 0.5, -0.5)
    ax.imshow(shown.T, aspect="auto", cmap=SHARES, vmin=0, vmax=1, extent=extent)
    ax.set_yticks(range(values.shape[1]), [str(slot + 1) for slot in range(values.shape[1])], fontsize=8.5)
    ax.set_ylabel(label, rotation=0, ha="right", va="center")


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


def _svg(figure: Figure, name: str, title: str) -> str:
    """SVG text that scales with the page; its ids begin with `name`, since several plots share one document."""
    buffer = io.StringIO()
    figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None, "Creator": None})
    text = buffer.getvalue()
    text = text[text.index("<svg") :]
    text = re.sub(r"<metadata>.*?</metadata>", "", text, flags=re.DOTALL)
    text = re.sub(r'(<svg [^>]*?) width="[^"]*"', r"\1", text, count=1)
    text = re.sub(r'(<svg [^>]*?) height="[^"]*"', r'\1 role="img"', text, count=1)
    text = re.sub(r'\bid="', f'id="{name}-', text)
    text = text.replace('href="#', f'href="#{name}-').replace("url(#", f"url(#{name}-")
    return text.replace(">", f"><title>{title}</title>", 1)
