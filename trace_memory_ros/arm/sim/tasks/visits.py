"""Tasks in which something is shown while the right arm waits, and targets are visited after the stations."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.referee import STATION_NAMES, ZONES, Position, Referee
from trace_memory_ros.arm.sim.tasks.base import Task
from trace_memory_ros.arm.sim.waypoints import Waypoint, laps, station

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

_AFTER_LAST_VISIT_S = 0.5
# An arm that has lost its way at the targets would else move on until the timeout.
_VISIT_TIMEOUT_S = 12.0

# In shares of the left arm's way; a share of 1 / _TURNS is one turn of its helix.
_TURNS = 7.4
_TURN = 1 / _TURNS
_TURNS_PER_S = 0.24
_SHOW_SPEED = 0.09
_LEG_SPEED = 0.06
_LEG = 0.45 * _TURN
_STATION_2 = 4.6 * _TURN
_VISIT = 0.3 * _TURN
_VISIT_HEIGHT = 0.10


def visit_stages(visits: int) -> tuple[str, ...]:
    """Stages of an episode of so many visits, in order."""
    return (*STATION_NAMES, "branch", *(f"visit_{i}" for i in range(1, visits + 1)))


class VisitReferee(Referee):
    """The lamp is red for `show_s` and `after_s` at the start, and for `pauses_s` at each arrival at the branch.

    A visit is the cup in a target after it was at the branch; wrong ones count too, in the order they were made.
    start_xyz: where the right cup waits, m.
    """

    # The left arm moves on at red: a disturbance of the right one must not hold it.
    leaving_m = 0.10
    reach_m = layout.TARGET_RADIUS
    """Within which of a target's middle the cup is in it."""

    def __init__(
        self,
        scenario: Scenario,
        targets_xy: tuple[fixtures.XY, ...],
        start_xyz: tuple[float, float, float],
        show_s: float,
        after_s: float,
        pauses_s: tuple[float, ...],
    ) -> None:
        super().__init__(scenario, visit_stages(len(scenario.answers)))
        self._targets_xy, self._show_s, self._visit_pauses_s = targets_xy, show_s, pauses_s
        self._at_branch = False
        self._last_event_s = np.inf
        self._turn_red(np.array(start_xyz), show_s + after_s)
        self.lamp_red = True

    def _follow(self, cup: Position, part: Position, holding: bool) -> None:
        self._visit_zones(cup)
        if not self._stages["branch"] or len(self.visits) == len(self.scenario.answers):
            return
        if self._at_branch:
            self._visit_targets(cup)
        elif self.visits and np.linalg.norm(cup - ZONES["branch"]) < layout.STATION_ZONE_RADIUS:
            self._arrive("branch")

    def _counts(self, name: str) -> bool:
        # A disturbed arm may come close to the branch pose on its way from the start to the stations.
        return name != "branch" or any(self._stages[station] for station in STATION_NAMES)

    def _visit_targets(self, cup: Position) -> None:
        distances = [float(np.hypot(*(cup[:2] - np.array(xy)))) for xy in self._targets_xy]
        if cup[2] < layout.TARGET_HEIGHT and min(distances) < self.reach_m:
            side = int(np.argmin(distances))
            self._stages[f"visit_{len(self.visits) + 1}"] = side == self.scenario.answers[len(self.visits)]
            self.visits.append(side)
            self._at_branch = False
            self._last_event_s = self._time_s

    def _arrive(self, name: str) -> None:
        super()._arrive(name)
        if name == "branch":
            self._at_branch = True
            self._last_event_s = self._time_s

    def _branch_pause_s(self) -> float:
        return self._visit_pauses_s[len(self.visits)]

    def _over(self) -> bool:
        done = len(self.visits) == len(self.scenario.answers)
        return self._time_s >= self._last_event_s + (_AFTER_LAST_VISIT_S if done else _VISIT_TIMEOUT_S)


class VisitTask(Task):
    """Watch, three stations, branch, visits.

    start_xyz: where the right arm waits and watches, m. before_m: how far before a target the arm comes down to it,
    so that a disturbed one is not over its neighbour on the way; 0: straight from the branch.
    """

    left_turns = _TURNS
    brief = True
    before_m = 0.0
    start_xyz: tuple[float, float, float] = layout.START_XYZ

    @property
    def stages(self) -> tuple[str, ...]:
        return visit_stages(1)

    def watch_and_visit(self, scenario: Scenario, show_s: float, again: bool = False) -> list[Waypoint]:
        """The left arm turns for about `show_s`, so that a clock of motion ticks; the right arm stands.

        again: as long once more at station 2, from which on the left arm's angles are the same whatever was shown.
        """
        show = _TURNS_PER_S * show_s * _TURN
        reach_2 = _STATION_2 - show if again else _STATION_2
        merge = reach_2 - 2 * _LEG
        ready = merge - 0.1 * _TURN
        second = station(1, _STATION_2, _SHOW_SPEED if again else _LEG_SPEED)
        watched = [replace(station(1, reach_2, _LEG_SPEED), name="reach_2", stop=False)] if again else []
        lap = [
            Waypoint("merge", layout.MERGE_XYZ, 0.0, merge, _LEG_SPEED),
            station(0, merge + _LEG, _LEG_SPEED),
            *watched,
            second,
            station(2, _STATION_2 + _LEG, _LEG_SPEED),
        ]
        return [
            Waypoint("start", self.start_xyz, 0.0, ready - show, _SHOW_SPEED),
            Waypoint("ready", self.start_xyz, 0.0, ready, _SHOW_SPEED, stop=True),
            *laps(lap, scenario.laps),
            *self._visits(scenario, _STATION_2 + 2 * _LEG),
        ]

    def _visits(self, scenario: Scenario, at: float) -> list[Waypoint]:
        answers = self.answers(scenario)
        way = [Waypoint("branch", layout.BRANCH_XYZ, 0.0, at, _LEG_SPEED, stop=True)]
        for visit, answer in enumerate(answers, start=1):
            x, y = self.targets_xy[answer]
            if self.before_m:
                before = (x - self.before_m, y, layout.TARGET_HEIGHT)
                way.append(Waypoint(f"before_{visit}", before, 0.0, at + _VISIT / 4, _LEG_SPEED))
            target = (x, y, _VISIT_HEIGHT)
            way.append(Waypoint(f"visit_{visit}", target, 0.0, at + _VISIT / 2, _LEG_SPEED))
            at += _VISIT
            # The last visit ends like the others: nothing tells an arm that there are no more.
            name = "done" if visit == len(answers) else f"branch_{visit + 1}"
            way.append(Waypoint(name, layout.BRANCH_XYZ, 0.0, at, _LEG_SPEED, stop=True))
        return way
