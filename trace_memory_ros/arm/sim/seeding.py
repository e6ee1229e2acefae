"""Where randomness comes from: a generator per task, seed and purpose, so that a new purpose disturbs no other."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim.names import TASK_NAMES

FloatArray = NDArray[np.float64]

# A purpose's place is part of its seeding: append only.
_PURPOSES = ("episode", "noise", "laps", "decoys", "show", "mix", "glyph", "panel", "swaps")


def generator(task: str, seed: int, purpose: str) -> np.random.Generator:
    """Random numbers of one purpose of one episode; never of its cue."""
    return np.random.default_rng([seed, TASK_NAMES.index(task), _PURPOSES.index(purpose)])
