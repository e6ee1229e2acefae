"""Tasks in which a part is picked, carried round the stations, and put on one of two targets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.referee import STATION_NAMES, Position, Referee
from trace_memory_ros.arm.sim.tasks.base import Task
from trace_memory_ros.arm.sim.waypoints import Waypoint, laps, station

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

STAGES = ("picked", *STATION_NAMES, "branch", "target", "placed")
_AFTER_RELEASE_S = 0.5
_AFTER_BRANCH_S = 8.0
_TOP = 2 * layout.PART_HALF
_LAP_SPEED = 0.048


class CarryReferee(Referee):
    """One cue: the part is picked, carried round, and the first target that it enters is the branch."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario, STAGES)
        self._pause_at_branch_s = scenario.draws().branch_pause_s
        self._branch_s = np.inf
        self._released_s = np.inf

    def _follow(self, cup: Position, part: Position, holding: bool) -> None:
        self._stages["picked"] |= holding
        if self._stages["picked"]:
            self._visit_zones(cup)
        self._follow_part(part, holding)

    def _branch_pause_s(self) -> float:
        return self._pause_at_branch_s

    def _follow_part(self, part: Position, holding: bool) -> None:
        (answer,) = self.scenario.answers
        if not self.visits and self._stages["picked"] and part[2] < layout.TARGET_HEIGHT:
            distances = [float(np.hypot(*(part[:2] - np.array(xy)))) for xy in layout.TARGET_XY]
            if min(distances) < layout.TARGET_RADIUS:
                self.visits.append(int(np.argmin(distances)))
                self._branch_s = self._time_s
                self._stages["target"] = self.visits[0] == answer
        if self.visits and not holding and self._released_s == np.inf:
            self._released_s = self._time_s
            near = np.hypot(*(part[:2] - np.array(layout.TARGET_XY[answer]))) < layout.TARGET_RADIUS
            self._stages["placed"] = bool(near)

    def _over(self) -> bool:
        return self._time_s >= min(self._released_s + _AFTER_RELEASE_S, self._branch_s + _AFTER_BRANCH_S)


class CarryTask(Task):
    """Pick, three stations, branch, place."""

    @property
    def stages(self) -> tuple[str, ...]:
        return STAGES

    def way(self, scenario: Scenario) -> list[Waypoint]:
        px, py = self.part_xy(scenario)
        tx, ty = self.targets_xy[self.answers(scenario)[0]]
        start = [
            Waypoint("start", layout.START_XYZ, 0.0, 0.0, 0.07),
            Waypoint("above", (px - 0.01, py, _TOP + 0.06), 0.0, 0.03, 0.07, pinned=False),
            Waypoint("pick", (px, py, _TOP + 0.005), 0.0, 0.06, 0.07),
            Waypoint("lift", (0.5 * px + 0.5 * layout.MERGE_XYZ[0], 0.5 * py, 0.18), 0.0, 0.09, 0.075, pinned=False),
        ]
        lap = [
            Waypoint("merge", layout.MERGE_XYZ, 0.0, 0.12, 0.075),
            *(station(i, left, _LAP_SPEED) for i, left in enumerate((0.32, 0.52, 0.72))),
        ]
        end = [
            Waypoint("branch", layout.BRANCH_XYZ, 0.0, 0.90, _LAP_SPEED, stop=True),
            Waypoint("over", (tx, ty, 0.20), 0.0, 0.94, 0.06, pinned=False),
            Waypoint("place", (tx, ty, _TOP + 0.012), 0.0, 0.97, 0.045),
            Waypoint("done", (tx, ty, 0.22), 0.0, 1.0, 0.06),
        ]
        return [*start, *laps(lap, scenario.laps), *end]
