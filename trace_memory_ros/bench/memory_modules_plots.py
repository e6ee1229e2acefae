"""Plots of `bench memory-modules`: success against delay, and against how often is written."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure

Rows = dict[str, dict[str, Any]]

DELAYS = ("x1", "x2", "x4", "x16")
_COLOURS = dict(
    zip(
        (
            *("trace", "gru", "none", "trace+gate", "transformer", "lru", "retrieval"),
            *("aura", "vla", "elmur", "prism", "linear_attention", "deltanet"),
        ),
        (
            *("#0f7b6c", "#5566c9", "#9a6a4f", "#4fb3a2", "#c2335b", "#e8a321", "#7a4fb0"),
            *("#2f8fd0", "#d0602f", "#6b8e23", "#b0307a", "#8a93a0", "#4a5560"),
        ),
        strict=True,
    )
)
_MARKERS = "osD^vP*XhdpH8"
_STYLE: Any = {
    "font.family": "sans-serif",
    "font.size": 9.5,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.edgecolor": "#d9dee5",
    "xtick.major.size": 0,
    "ytick.major.size": 0,
}
_APART = 0.012


def write_plots(figures: dict[str, Any], folder: Path) -> list[Path]:
    """Write `memory_modules_delay.png` and `memory_modules_writes.png`; returns their paths."""
    folder.mkdir(parents=True, exist_ok=True)
    tasks: dict[str, Rows] = figures["tasks"]
    delays = [name for name in DELAYS if name in figures["conditions"]]
    labels = [figures["conditions"][name]["label"] for name in delays]
    drawn = []
    with mpl.rc_context(_STYLE):
        for name, draw in (("delay", _against_delay), ("writes", _against_writes)):
            figure = Figure(figsize=(9.6, 3.9), layout="constrained")
            axes = figure.subplots(1, len(tasks), sharey=True, squeeze=False)[0]
            for ax, (task, rows) in zip(axes, tasks.items(), strict=True):
                ax.axhline(0.5, color="#66717f", lw=0.9, ls=(0, (4, 3)), zorder=0)
                ax.set_title(task, loc="left", fontweight="bold")
                draw(ax, rows, delays, labels)
            axes[0].set_ylim(-0.03, 1.07)
            handles, names = axes[0].get_legend_handles_labels()
            figure.legend(handles, names, loc="outside right center", frameon=False)
            path = folder / f"memory_modules_{name}.png"
            figure.savefig(path, dpi=110)
            drawn.append(path)
    return drawn


def _against_delay(ax: Axes, rows: Rows, delays: Sequence[str], labels: Sequence[str]) -> None:
    """Decisions at the branch after an expert-driven delay; rows are drawn a little apart."""
    for place, (row, found) in enumerate(rows.items()):
        heard = [found.get("heard", {}).get(name) for name in delays]
        x = [i + _APART * 4 * (place - len(rows) / 2) for i, h in enumerate(heard) if h]
        y = [h["success"] for h in heard if h]
        low = [h["success"] - h["ci95"][0] for h in heard if h]
        high = [h["ci95"][1] - h["success"] for h in heard if h]
        colour, marker = _looks(row)
        ax.plot(x, y, marker=marker, ms=5, lw=1.2, color=colour, label=row)
        ax.errorbar(x, y, (low, high), fmt="none", ecolor=colour, elinewidth=0.7, alpha=0.5)
    ax.set_xticks(range(len(delays)), labels)
    ax.set_xlabel("delay, times the trained one")
    ax.set_ylabel("right decisions at the branch")


def _against_writes(ax: Axes, rows: Rows, delays: Sequence[str], labels: Sequence[str]) -> None:
    """Closed loop at the trained delay (filled) and decisions at the longest (open), joined."""
    for row, found in rows.items():
        driven, longest = found.get("closed_loop"), found.get("heard", {}).get(delays[-1]) if delays else None
        if not driven:
            continue
        colour, marker = _looks(row)
        points = [(driven["writes_per_s"], driven["success"])]
        points += [(longest["writes_per_s"], longest["success"])] if longest else []
        ax.plot(*zip(*points, strict=True), lw=0.8, color=colour, alpha=0.6)
        ax.plot(*points[0], marker=marker, ms=7, ls="none", color=colour, label=row)
        if longest:
            ax.plot(*points[1], marker=marker, ms=7, ls="none", mfc="white", mec=colour)
    ax.set_xscale("symlog", linthresh=0.02)
    ax.set_xlim(left=-0.002)
    ax.set_xlabel(f"writes per second (filled: closed loop 1x; open: {labels[-1] if labels else ''})")
    ax.set_ylabel("success")


def _looks(row: str) -> tuple[str, str]:
    rows = list(_COLOURS)
    place = rows.index(row) if row in rows else 0
    return _COLOURS.get(row, "#5b6470"), _MARKERS[place % len(_MARKERS)]
