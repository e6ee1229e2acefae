"""The simulated arm under a controller that gives it places more often than once a tick."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim.env import MAX_JOINT_SPEED, ArmEnv
from trace_memory_ros.arm.sim.names import JOINT_NAMES, PERIOD_S


class ServoedArm(ArmEnv):
    """An `ArmEnv` whose targets may be due sooner, or later, than in one control period."""

    def apply_within(self, targets: NDArray[np.float64], within_s: float) -> None:
        """As `apply`, to be reached in `within_s` simulated seconds. Raises ValueError for a time that is none."""
        if not within_s > 0:
            raise ValueError(f"targets to be reached within {within_s} s: give a time > 0")
        self.apply(targets)
        if within_s != PERIOD_S:
            way = np.abs(self._goal - self.data.ctrl)[: len(JOINT_NAMES)]
            self._rate = np.minimum(way / within_s, MAX_JOINT_SPEED) * float(self.model.opt.timestep)
