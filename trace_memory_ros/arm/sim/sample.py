"""What the simulated robot's sensors and its referee report."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class RawSample:
    """Sensor readings of one instant.

    images: camera name -> `(P, P, 3)` uint8 RGB, empty when not rendered. joint_positions: joint name -> rad.
    base_velocity: `(3,)` m/s, m/s, rad/s, zero on a fixed base. time_s: simulated seconds since reset.
    """

    images: dict[str, NDArray[np.uint8]]
    joint_positions: dict[str, float]
    base_velocity: NDArray[np.float64]
    time_s: float


@dataclass(frozen=True)
class Outcome:
    """How the episode stands.

    branch: target that was entered first (0 left, 1 right, -1 undecided). visits: targets entered, in order; one but
    in `sequence`. decided: as many as there are cues. success: all visits right. visits_right: how many are.
    stages: stage -> whether it succeeded, in order. progress: share of stages that succeeded, 0..1 (TRACE eq. 10).
    finished: part released after the branch, or time is over.
    """

    branch: int
    decided: bool
    success: bool
    stages: dict[str, bool]
    progress: float
    cue_visible: bool
    finished: bool
    timed_out: bool
    visits: tuple[int, ...]
    visits_right: int
