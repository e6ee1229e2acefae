"""The least spread that a number is divided by, by its unit: what hardly moves is not blown up to the size of the rest.

In demonstrations the spread of a joint that hardly moves is their disturbance, which a live arm does not have. Divided
by it, jitter would be most of the standardised path: the clock would tick five times as fast in training.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError, require_positive

LEAST_SPREAD = {
    "rad": 0.2,
    "m": 0.02,
    "rad/s": 0.2,
    "m/s": 0.05,
    "m/s^2": 0.5,
    "N": 1.0,
    "N m": 0.2,
    "": 0.05,
}
"""By unit; that of a plain number holds for every other unit too."""
ACTION_SHARE = 0.25
"""Of an action's least spread: a target is exact, a measurement is not."""


def check_spread(least: object, where: str) -> None:
    """Raise ConfigError unless `least` maps units to positive numbers."""
    if not isinstance(least, Mapping):
        raise ConfigError(f"{where} = {least!r}: must be a mapping of units to numbers, as {{rad: 0.2}}")
    for unit, value in least.items():
        require_positive(value, f"{where}.{unit}")


def least_spread(units: Sequence[str], given: Mapping[str, float] | None = None) -> NDArray[np.float64]:
    """The least standard deviation `(N,)` of numbers of these units; `given` over what is usual."""
    table = {**LEAST_SPREAD, **(given or {})}
    return np.array([table.get(unit, table[""]) for unit in units])
