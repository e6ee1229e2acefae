"""How a controller follows a trajectory that it accepted: where its joints are to be, at any time."""

from __future__ import annotations

from collections.abc import Mapping
from enum import Enum

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.controllers.config import ControllerConfig
from trace_memory_ros.arm.controllers.rules import SECOND_NS, Trajectory

Values = NDArray[np.float64]
FORGET_NS = SECOND_NS // 2
"""So long after its end, a trajectory is no place to go on from: the arm may have been moved meanwhile."""


class Held(Enum):
    """Why a trajectory was given up and the place is held."""

    PATH = "path_tolerance"
    GOAL = "goal_tolerance"


class Following:
    """The joints of one controller, in its order; times in ns on one clock.

    Between points positions are joined by straight lines, as where no velocities are given. A trajectory that began in
    the past loses the points that are over, and goes from where the joints are to the first that is not.
    """

    def __init__(self, config: ControllerConfig) -> None:
        self._config = config
        self._times = np.zeros(0, dtype=np.int64)
        self._targets: Values = np.zeros((0, len(config.joints)))
        self._end_ns = 0
        self.running = False

    @property
    def end(self) -> Values:
        """Where the newest trajectory ends `(J,)`. Raises IndexError before there was one."""
        return np.asarray(self._targets[-1])

    def take(self, trajectory: Trajectory, now_ns: int, place: Values) -> None:
        """Follow a trajectory that was accepted, from now on. place: where the joints are `(J,)`."""
        begin_ns = trajectory.stamp_ns or now_ns
        desired = self.desired(now_ns)
        if not self._config.interpolate_from_desired_state or desired is None:
            desired = place
        columns = [self._config.joints.index(name) for name in trajectory.joints]
        times, rows = [now_ns], [desired]
        for point in trajectory.points:
            if (at_ns := begin_ns + point.after_ns) >= now_ns:
                row = desired.copy()
                row[columns] = point.positions
                # The first point may be of this very moment: there is no way to it then.
                times, rows = ([], []) if at_ns == now_ns else (times, rows)
                times.append(at_ns)
                rows.append(row)
        self._times, self._targets = np.array(times, dtype=np.int64), np.array(rows)
        self._end_ns = times[-1]
        self.running = True

    def desired(self, now_ns: int) -> Values | None:
        """Where the joints are to be `(J,)`; None where nothing says it, or it is long over."""
        if not self._times.size or now_ns - self._end_ns > FORGET_NS:
            return None
        since = np.clip(now_ns - self._times[0], 0, None)
        steps = self._times - self._times[0]
        return np.array([np.interp(since, steps, column) for column in self._targets.T])

    def update(self, now_ns: int, place: Values | None) -> Held | None:
        """Whether to go on at `now_ns`, with the joints at `place`; afterwards `running` tells."""
        desired = self.desired(now_ns)
        if not self.running or desired is None:
            self.running = False
            return None
        held = None if place is None else self._violated(now_ns, np.abs(place - desired))
        if held is not None and place is not None:
            self.hold(now_ns, place)
            return held
        settled = now_ns >= self._end_ns + self._settle_ns
        self.running = not settled
        return None

    def hold(self, now_ns: int, place: Values) -> None:
        """Stay at `place`: the trajectory is given up."""
        self._times, self._targets = np.array([now_ns], dtype=np.int64), place[None].copy()
        self._end_ns = now_ns
        self.running = False

    @property
    def _settle_ns(self) -> int:
        return round(self._config.goal_time * SECOND_NS) if self._config.goal_tolerance else 0

    def _violated(self, now_ns: int, error: Values) -> Held | None:
        config = self._config
        if now_ns < self._end_ns:
            return Held.PATH if config.path_tolerance and (error > config.path_tolerance).any() else None
        late = config.goal_tolerance and config.goal_time and now_ns >= self._end_ns + self._settle_ns
        return Held.GOAL if late and (error > config.goal_tolerance).any() else None


def place_of(joints: tuple[str, ...], positions: Mapping[str, float]) -> Values | None:
    """Where joints are, by name; None where one is not told."""
    if not all(name in positions for name in joints):
        return None
    return np.array([positions[name] for name in joints], dtype=np.float64)
