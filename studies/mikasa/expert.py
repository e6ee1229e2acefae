"""The demonstrator, a proportional controller that knows where the true target is, and how choices are counted.

Imported under either Python.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

REACH_M = 0.1
"""What an action of 1 asks for."""
GAIN = 0.6
ABOVE = np.array([0.0, 0.0, 0.03])
"""How far above the target's middle the hand goes, m: lower it touches the target, and moves on with it."""
TRAVEL_M = 0.11
"""How high the hand goes from one thing to the next, over those between."""
OVER_M, BESIDE_M = 0.025, 0.04
"""Nearer than the first, seen from above, the hand goes down; further than the second it does not move sideways low."""
LOW_M, HIGH_M = 0.06, 0.09
"""At the first height the hand does not move sideways, from the second on as fast as it can."""
DISTURBED_M = 0.12
"""Nearer than this nothing is disturbed, since success asks for a hand that is at rest."""
DISTURBANCE = 0.1
ARC_MIDDLE = np.array([-0.25, 0.0])
"""What the benchmark's arcs of choices are drawn around, on the table, m; its rows of three lie beside it."""


def towards(offset_m: NDArray[np.float64]) -> NDArray[np.float32]:
    """The action `(7,)` for a target that lies `offset_m` `(3,)` from the hand."""
    return _action(offset_m + ABOVE)


def touching(offset_m: NDArray[np.float64], height_m: float) -> NDArray[np.float32]:
    """The action `(7,)` for something that lies `offset_m` `(3,)` from the hand and is to be touched from above."""
    beside_m = float(np.linalg.norm(offset_m[:2]))
    free = np.interp(height_m, (LOW_M, HIGH_M), (0.0, 1.0)) if beside_m > BESIDE_M else 1.0
    up = offset_m[2] if beside_m < OVER_M else TRAVEL_M - height_m
    return _action(np.array([*(free * offset_m[:2]), up]))


def _action(by_m: NDArray[np.float64]) -> NDArray[np.float32]:
    action = np.zeros(7, np.float32)
    action[:3] = np.clip(GAIN * by_m / REACH_M, -1.0, 1.0)
    return action


def raising(by_m: float) -> NDArray[np.float32]:
    """The action `(7,)` that raises the hand."""
    return _action(np.array([0.0, 0.0, by_m]))


def disturbed(
    action: NDArray[np.float32], offset_m: NDArray[np.float64], rng: np.random.Generator
) -> NDArray[np.float32]:
    """What is executed in place of an action while the hand is on its way, so that its corrections are seen too."""
    if np.linalg.norm(offset_m) < DISTURBED_M:
        return action
    executed = action.copy()
    executed[:3] = np.clip(action[:3] + rng.normal(0.0, DISTURBANCE, 3), -1.0, 1.0)
    return executed


def nth_along_arc(choices: NDArray[np.float64], target: NDArray[np.float64]) -> int:
    """Which of the choices `(N, 2)` the target `(2,)` is, counted along their arc from the lowest y."""
    beside = choices - ARC_MIDDLE
    order = np.argsort(np.arctan2(beside[:, 1], beside[:, 0]))
    return int(np.linalg.norm(choices[order] - target, axis=1).argmin())
