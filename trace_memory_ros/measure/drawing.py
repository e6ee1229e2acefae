"""How every plot of a report looks, and how it becomes SVG text for the page."""

from __future__ import annotations

import io
import re
from html import escape
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import LinearSegmentedColormap
from matplotlib.figure import Figure
from numpy.typing import NDArray

INK, FAINT, RULE = "#1c2430", "#66717f", "#d9dee5"
CUE, BRANCH, PATH = "#e8a321", "#c2335b", "#5566c9"
TRACE = "#0f7b6c"
COLOURS = {"trace": TRACE, "gru": "#5566c9", "none": "#9a6a4f"}
OTHER_COLOUR = "#5b6470"
SHARES = LinearSegmentedColormap.from_list("shares", ["#f3f5f7", "#8cc7bb", "#0f7b6c", "#06332d"])
STYLE: Any = {
    "svg.fonttype": "none",
    "svg.hashsalt": "trace_memory_ros",
    "font.family": "sans-serif",
    "font.size": 10.5,
    "text.color": INK,
    "text.parse_math": False,
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
_MOST_NAMED_SLOTS = 16


def colour_of(memory: str) -> str:
    """A mechanism's colour on the whole page."""
    return COLOURS.get(memory, OTHER_COLOUR)


def heatmap(ax: Axes, time_s: NDArray[np.float64], values: NDArray[np.float32], label: str) -> None:
    """Shares `(T, N)` in 0..1 over time, a row a slot; long ones are averaged down."""
    stride = -(-len(time_s) // _LONGEST_HEATMAP)
    pad = -len(time_s) % stride
    shown = np.pad(values, ((0, pad), (0, 0)), mode="edge").reshape(-1, stride, values.shape[1]).mean(axis=1)
    extent = (float(time_s[0]), float(time_s[-1]), values.shape[1] - 0.5, -0.5)
    ax.imshow(shown.T, aspect="auto", cmap=SHARES, vmin=0, vmax=1, extent=extent)
    named = range(0, values.shape[1], -(-values.shape[1] // _MOST_NAMED_SLOTS))
    ax.set_yticks(named, [str(slot + 1) for slot in named], fontsize=8.5)
    ax.set_ylabel(label, rotation=0, ha="right", va="center")


def svg(figure: Figure, name: str, title: str) -> str:
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
    return text.replace(">", f"><title>{escape(title)}</title>", 1)
