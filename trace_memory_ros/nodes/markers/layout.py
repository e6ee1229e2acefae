"""Where things are on the RViz panel, in panel units, and how values become lengths."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

PANEL_WIDTH = 4.5
PANEL_HEIGHT = 2.5


@dataclass(frozen=True)
class Area:
    """A rectangle of the panel."""

    left: float
    bottom: float
    width: float
    height: float

    @property
    def right(self) -> float:
        """Its right edge."""
        return self.left + self.width

    @property
    def top(self) -> float:
        """Its upper edge."""
        return self.bottom + self.height

    @property
    def middle(self) -> float:
        """Halfway between its left and right edges."""
        return self.left + self.width / 2


COMPACT = Area(-2.25, 0.40, 3.4, 2.1)
"""What a compact panel keeps: title, status, entries, routes and reads."""
HEADER = Area(-2.15, 2.24, 4.3, 0.20)
SLOTS = Area(-1.45, 1.12, 2.45, 0.58)
POLICY = Area(-0.70, 2.02, 0.95, 0.14)
GATE = Area(-1.98, 1.12, 0.14, 0.58)
ROUTE_HEIGHT = 0.87
PATH = Area(-1.98, 0.15, 2.98, 0.44)
FIGURES = Area(1.24, 1.30, 0.95, 0.82)
INPUTS = Area(1.24, 0.45, 0.95, 0.73)
LEGEND = Area(1.24, 0.15, 0.9, 0.07)

_NICE = (1.0, 1.5, 2.0, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


def nice_ceiling(value: float) -> float:
    """The smallest round number that is not below `value`; 1 where the value is not positive and finite."""
    if not math.isfinite(value) or value < 1e-30:
        return 1.0
    unit = 10.0 ** math.floor(math.log10(value))
    return next((step * unit for step in _NICE if step * unit >= value), 10.0 * unit)


def share(value: float, whole: float = 1.0) -> float:
    """Value over whole, held within 0..1."""
    return min(max(value / whole, 0.0), 1.0)


def entry(values: Sequence[float], index: int) -> float:
    """The value at an index, NaN where the sequence is too short."""
    return float(values[index]) if index < len(values) else math.nan


def columns(count: int, area: Area) -> tuple[list[float], float]:
    """Centres and pitch of `count` equal columns of an area, never wider than a sixth of it."""
    pitch = min(area.width / max(count, 1), area.width / 6)
    first = area.middle - pitch * (count - 1) / 2
    return [first + pitch * index for index in range(count)], pitch
