"""Times as ticks: what a robot does takes as long at any tick rate."""

from __future__ import annotations


def ticks_in(ms: float, period_ms: int, least: int = 1) -> int:
    """How many ticks of `period_ms` come nearest to `ms`, at least `least`."""
    return max(least, round(ms / period_ms))
