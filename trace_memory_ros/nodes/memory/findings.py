"""What is right and wrong with a node's parts, in the terms of diagnostic_msgs but without its classes."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum

import numpy as np

RING = 1_024


class Level(IntEnum):
    """Same values as the levels of DiagnosticStatus."""

    OK = 0
    WARN = 1
    ERROR = 2


@dataclass(frozen=True)
class Finding:
    """One part's state. part: its name, empty for the node as a whole."""

    part: str
    level: Level
    message: str
    values: Mapping[str, str] = field(default_factory=dict)


def worst(findings: list[Finding]) -> Finding:
    """The first of the highest level."""
    return max(findings, key=lambda finding: finding.level)


class Recent:
    """The newest of many numbers, for percentiles of what is going on now."""

    def __init__(self, most: int = RING) -> None:
        self._values: deque[float] = deque(maxlen=most)

    def add(self, value: float) -> None:
        self._values.append(value)

    def clear(self) -> None:
        self._values.clear()

    def percentiles(self) -> str:
        """`p50 / p99 / max`, or a dash without any number."""
        values = np.array([value for value in self._values if np.isfinite(value)])
        if not values.size:
            return "-"
        return " / ".join(f"{value:.1f}" for value in (*np.percentile(values, (50, 99)), values.max()))

    def share_above(self, limit: float) -> float:
        """Share of the numbers above `limit`, 0 without any."""
        return sum(value > limit for value in self._values) / len(self._values) if self._values else 0.0
