"""How far a signature that is updated tick by tick strays from one in extended precision."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from studies.grid import Figures
from studies.soak.robot import SPREAD_RAD, Robot
from trace_memory_ros.signature.streaming import StreamingSignature

DEPTH = 3
Extended = NDArray[np.longdouble]


def drift(ticks: int, seed: int) -> Figures:
    """Greatest error of a level, relative to that level's greatest number, at powers of ten."""
    robot, found = Robot(seed), {}
    kept: StreamingSignature | None = None
    levels: list[Extended] = []
    before = np.zeros(0)
    for tick in range(ticks):
        observed = robot.observe(tick).state
        assert observed is not None
        state = (observed / SPREAD_RAD).astype(np.float32).astype(np.float64)
        if kept is None:
            kept = StreamingSignature(state.size, DEPTH)
            levels = [np.zeros((state.size,) * n, dtype=np.longdouble) for n in range(1, DEPTH + 1)]
        else:
            levels = _walked(levels, (state - before).astype(np.longdouble))
        before = state
        kept.update(state)
        if str(tick + 1).rstrip("0") == "1" and tick:
            found[str(tick + 1)] = _errors(kept.value(), levels)
    return found


def _walked(levels: Sequence[Extended], step: Extended) -> list[Extended]:
    """Levels 1 to 3 after one more segment, by Chen's identity."""
    one, two, three = levels
    square = np.multiply.outer(step, step)
    return [
        one + step,
        two + np.multiply.outer(one, step) + square / 2,
        three + np.multiply.outer(two, step) + np.multiply.outer(one, square) / 2 + np.multiply.outer(square, step) / 6,
    ]


def _errors(value: NDArray[np.float64], levels: Sequence[Extended]) -> Figures:
    found, begin = {}, 0
    for number, level in enumerate(levels, 1):
        part = value[begin : begin + level.size].astype(np.longdouble)
        begin += level.size
        scale = np.abs(level).max()
        error = np.abs(part - level.reshape(-1)).max() / scale
        found[f"level {number}"] = {"greatest": float(scale), "relative_error": float(error)}
    return found
