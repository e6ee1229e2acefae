"""The scripted expert: follows its route from the measured joints, waits at red, never looks at a clock."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import JOINT_NAMES
from trace_memory_ros.arm.sim.route import SPACING_RAD
from trace_memory_ros.arm.sim.sample import RawSample
from trace_memory_ros.arm.sim.scenario import Scenario

FloatArray = NDArray[np.float64]

_HOLD_RANGE_RAD = 0.25
_RELEASE_RANGE_RAD = 0.08
# The servos end a tick this much short of a moving target.
_LAG = 1.25


class Expert:
    """Pure pursuit along `env.route`; apart from the cue's branches its action is a function of what the cameras and
    joints show now. Raises ValueError when `env` runs another scenario."""

    def __init__(self, env: ArmEnv, scenario: Scenario) -> None:
        if env.scenario != scenario:
            raise ValueError(f"the env runs {env.scenario}, not {scenario}: reset it with this scenario first")
        self._env = env
        self._route = env.route
        self._speed = scenario.draws().speed
        self._at = 0
        self._waiting = False

    @property
    def phase(self) -> str:
        """Waypoint that the arm is on its way to, or `wait` at a red lamp."""
        if self._waiting:
            return "wait"
        ahead = [name for name, index in self._route.marks.items() if index >= self._at]
        return ahead[0] if ahead else "done"

    def act(self, sample: RawSample) -> FloatArray:
        """Absolute targets `(16,)` a short look-ahead from the measured joints."""
        joints = np.array([sample.joint_positions[name] for name in JOINT_NAMES])
        marks = self._route.marks
        self._at = self._route.project(joints, self._at)
        ahead = round(self._speed * self._route.speed[self._at] * _LAG / SPACING_RAD)
        goal = min(self._at + ahead, len(self._route.points) - 1)
        suction = 0.0
        if "place" in marks:
            if self._at < marks["station_1"] and not self._env.holding:
                goal = min(goal, marks["pick"])
            if self._env.holding:
                goal = min(goal, marks["place"])
            suction = 1.0 if (marks["place"] - self._at) * SPACING_RAD > _RELEASE_RANGE_RAD else 0.0
        self._waiting = False
        if self._env.lamp_red:
            near = (s for s in self._route.stops if abs(s - self._at) * SPACING_RAD <= _HOLD_RANGE_RAD)
            stop = next(near, None)
            if stop is not None:
                goal = min(goal, stop)
                self._waiting = goal == stop
        return np.concatenate([self._route.points[goal], [0.0, suction]])
