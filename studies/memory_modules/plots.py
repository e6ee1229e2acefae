"""Plots of `bench memory-modules`: success against delay, and against how often is written."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure

Rows = dict[str, dict[str, Any]]

DRIVEN = "closed loop"
SHARES = LinearSegmentedColormap.from_list("shares", ["#c2335b", "#f0d9c8", "#0f7b6c"])
"""From chance, where nothing is remembered, to always right."""
CHANCE = 0.5
_INK, _FAINT, _RULE = "#1c2430", "#66717f", "#d9dee5"
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9,
    "text.color": _INK,
    "axes.edgecolor": _RULE,
    "axes.labelcolor": _FAINT,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}


def write_plots(figures: dict[str, Any], folder: Path) -> list[Path]:
    """Write `memory_modules_delay.png` and `memory_modules_writes.png`; returns their paths.

    Rows and tasks without results are left out.
    """
    folder.mkdir(parents=True, exist_ok=True)
    tasks = {task: {r: f for r, f in rows.items() if f.get("closed_loop")} for task, rows in figures["tasks"].items()}
    labels = {name: condition["label"] for name, condition in figures["conditions"].items()}
    return [
        _draw(folder / "memory_modules_delay.png", tasks, lambda ax, rows: _against_conditions(ax, rows, labels)),
        _draw(folder / "memory_modules_writes.png", tasks, _against_writes),
    ]


def _draw(path: Path, tasks: dict[str, Rows], draw: Callable[[Axes, Rows], None]) -> Path:
    tallest = max(len(rows) for rows in tasks.values())
    with mpl.rc_context(_STYLE):
        figure = Figure(figsize=(10.4, 1.5 + 0.3 * tallest), layout="constrained")
        axes = figure.subplots(1, len(tasks), squeeze=False)[0]
        for ax, (task, rows) in zip(axes, tasks.items(), strict=True):
            ax.set_title(task, loc="left", fontweight="bold")
            ax.spines[:].set_visible(False)
            draw(ax, rows)
        figure.savefig(path, dpi=110)
    return path


def _against_conditions(ax: Axes, rows: Rows, labels: dict[str, str]) -> None:
    """A cell per memory and condition: closed loop at the trained delay, then open-loop decisions."""
    shares = np.full((len(rows), 1 + len(labels)), np.nan)
    for line, found in zip(shares, rows.values(), strict=True):
        line[0] = found["closed_loop"]["success"]
        for column, name in enumerate(labels, start=1):
            decided = found.get("open_loop", {}).get(name)
            line[column] = decided["success"] if decided else np.nan
    ax.imshow(shares, cmap=SHARES, vmin=CHANCE, vmax=1.0, aspect="auto")
    for (y, x), share in np.ndenumerate(shares):
        if np.isfinite(share):
            ink = "white" if share > 0.9 or share < 0.6 else _INK
            ax.text(x, y, f"{share:.2f}", ha="center", va="center", color=ink, fontsize=8.5)
    ax.axvline(0.5, color="white", lw=4)
    ax.set_xticks(
        range(1 + len(labels)), [f"{DRIVEN}\n1x", *(label.replace(" ", "\n", 2) for label in labels.values())]
    )
    ax.set_yticks(range(len(rows)), list(rows))


def _against_writes(ax: Axes, rows: Rows) -> None:
    """Writes per second in closed loop, least first, coloured by success there."""
    order = sorted(rows.items(), key=lambda item: item[1]["closed_loop"]["writes_per_s"])
    for y, (_, found) in enumerate(order):
        driven = found["closed_loop"]
        colour = SHARES((driven["success"] - CHANCE) / (1 - CHANCE))
        ax.plot((0, driven["writes_per_s"]), (y, y), color=colour, lw=2, solid_capstyle="butt")
        ax.plot(driven["writes_per_s"], y, "o", ms=8, color=colour, clip_on=False)
        ax.text(driven["writes_per_s"] + 0.05, y, f"{driven['success']:.2f}", va="center", fontsize=8.5)
    ax.set_yticks(range(len(order)), [row for row, _ in order])
    ax.set_xlim(left=-0.02)
    ax.margins(x=0.15)
    ax.set_xlabel("writes per second; beside: success in closed loop")
    ax.grid(axis="x", color=_RULE, lw=0.6)
    ax.set_axisbelow(True)
