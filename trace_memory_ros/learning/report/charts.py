"""Plots of a training's log, as SVG text."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from trace_memory_ros.learning.report.logs import Line
from trace_memory_ros.learning.report.progress import JOINT, MEMORY
from trace_memory_ros.measure.drawing import BRANCH, FAINT, PATH, STYLE, TRACE, svg

PHASES = {MEMORY: "memory first", JOINT: "all together"}
ACCURACIES = {"train_branch_accuracy": ("training", FAINT), "validation_branch_accuracy": ("validation", TRACE)}
LEVELS = {"gate_rate": ("gate", TRACE), "write_rate": ("wrote", PATH), "state_rms": ("state, RMS", BRANCH)}
Series = list[tuple[int, float]]


def loss_chart(lines: Sequence[Line]) -> str:
    """Every loss over the steps of either phase, on a logarithmic scale."""
    names = sorted({name for line in lines for name in line["losses"]})
    with mpl.rc_context(STYLE):
        figure, panels = _panels(lines, 3.0)
        colours = mpl.colormaps["viridis"].resampled(max(len(names), 2))
        for phase, ax in panels.items():
            for row, name in enumerate(names):
                found = _series(lines, phase, lambda line, name=name: line["losses"].get(name))
                _line(ax, [(step, value) for step, value in found if value > 0], name, colours(row))
            ax.set_yscale("log")
            ax.yaxis.set_major_formatter(lambda value, _: f"{value:g}")
        return _finished(figure, panels, "losses", "Losses over the steps")


def accuracy_chart(lines: Sequence[Line]) -> str:
    """Branch accuracies over the steps, with 95 % intervals; empty where nothing could be judged."""
    if not any(line.get(name) for line in lines for name in ACCURACIES):
        return ""
    with mpl.rc_context(STYLE):
        figure, panels = _panels(lines, 2.6)
        for phase, ax in panels.items():
            for name, (label, colour) in ACCURACIES.items():
                _line(ax, _series(lines, phase, lambda line, name=name: _part(line, name, "value")), label, colour)
                low, high = (
                    _series(
                        lines, phase, lambda line, name=name, end=end: (_part(line, name, "ci95") or (None,) * 2)[end]
                    )
                    for end in (0, 1)
                )
                if low:
                    steps = [step for step, _ in low]
                    ax.fill_between(steps, [v for _, v in low], [v for _, v in high], color=colour, alpha=0.12, lw=0)
            ax.set_ylim(-0.03, 1.03)
        return _finished(figure, panels, "accuracy", "Branch accuracy over the steps")


def memory_chart(lines: Sequence[Line]) -> str:
    """How often the memory was written and how large its state was; empty without a memory."""
    if not any(name in line["figures"] for line in lines for name in LEVELS):
        return ""
    with mpl.rc_context(STYLE):
        figure, panels = _panels(lines, 2.4)
        for phase, ax in panels.items():
            for name, (label, colour) in LEVELS.items():
                _line(ax, _series(lines, phase, lambda line, name=name: line["figures"].get(name)), label, colour)
            ax.set_ylim(bottom=0)
        return _finished(figure, panels, "memory", "Writes and state of the memory over the steps")


def _panels(lines: Sequence[Line], height: float) -> tuple[Figure, dict[str, Axes]]:
    """A panel for each phase that there is, side by side."""
    phases = [phase for phase in PHASES if any(line["phase"] == phase for line in lines)]
    figure = Figure(figsize=(9.2, height), layout="constrained")
    axes = figure.subplots(1, len(phases), sharey=True, squeeze=False)[0]
    return figure, dict(zip(phases, axes, strict=True))


def _series(lines: Sequence[Line], phase: str, value: Any) -> Series:
    """Steps and values of a phase; of the memory's, those of the last attempt."""
    own = [line for line in lines if line["phase"] == phase]
    last = max((line["attempt"] for line in own), default=1)
    found = ((line["step"], value(line)) for line in own if line["attempt"] == last)
    return [(step, number) for step, number in found if number is not None]


def _part(line: Line, name: str, key: str) -> Any:
    return (line.get(name) or {}).get(key)


def _line(ax: Axes, series: Series, label: str, colour: Any) -> None:
    if series:
        ax.plot(*zip(*series, strict=True), color=colour, lw=1.6, label=label, marker="." if len(series) < 40 else "")


def _finished(figure: Figure, panels: dict[str, Axes], name: str, title: str) -> str:
    for phase, ax in panels.items():
        ax.set_title(PHASES[phase], loc="left", fontsize=10.5)
        ax.set_xlabel("step")
    last = list(panels.values())[-1]
    handles = {
        label: handle for ax in panels.values() for handle, label in zip(*ax.get_legend_handles_labels(), strict=True)
    }
    last.legend(
        handles.values(), handles.keys(), frameon=False, fontsize=9, loc="center left", bbox_to_anchor=(1.0, 0.5)
    )
    return svg(figure, name, title)
