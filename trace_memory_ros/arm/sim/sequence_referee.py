"""Rules of `sequence`: colours shown one after another, then as many visits to the targets, in the order shown."""

from __future__ import annotations

import numpy as np

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.events import LONG_PAUSE_STATION, draw_pace
from trace_memory_ros.arm.sim.referee import GREY, STATION_NAMES, ZONES, PartReferee, Position, Referee
from trace_memory_ros.arm.sim.scenario import Scenario

_AFTER_LAST_VISIT_S = 0.5
# An arm that has lost its way at the targets would else move on until the timeout.
_VISIT_TIMEOUT_S = 12.0


def sequence_stages(visits: int) -> tuple[str, ...]:
    """Stages of a `sequence` episode in order."""
    return (*STATION_NAMES, "branch", *(f"visit_{i}" for i in range(1, visits + 1)))


class SequenceReferee(Referee):
    """The lamp is red while colours are shown, at the start and (whether a new sequence comes or not) at station 2.

    A visit is the cup in a target after it was at the branch; wrong ones count too, in the order they were made.
    """

    # The left arm moves on at red: a disturbance of the right one must not hold it.
    leaving_m = 0.10

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario, sequence_stages(len(scenario.answers)))
        self._pace = draw_pace(scenario.task, scenario.seed)
        self._shows = [(0.0, scenario.cues)]
        self._at_branch = False
        self._last_event_s = np.inf
        self._turn_red(np.array(layout.START_XYZ), self._show_s + self._pace.after_s)
        self.lamp_red = True

    @property
    def _show_s(self) -> float:
        return self._pace.length_s(len(self.scenario.cues))

    def _follow(self, cup: Position, part: Position, holding: bool) -> None:
        self._visit_zones(cup)
        if not self._stages["branch"] or len(self.visits) == len(self.scenario.answers):
            return
        if self._at_branch:
            self._visit_targets(cup)
        elif self.visits and np.linalg.norm(cup - ZONES["branch"]) < layout.STATION_ZONE_RADIUS:
            self._arrive("branch")

    def _visit_targets(self, cup: Position) -> None:
        distances = [float(np.hypot(*(cup[:2] - np.array(xy)))) for xy in layout.TARGET_XY]
        if cup[2] < layout.TARGET_HEIGHT and min(distances) < layout.TARGET_RADIUS:
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
        elif name == STATION_NAMES[LONG_PAUSE_STATION] and self._lap == 0 and self.scenario.overwrite is not None:
            self._shows.append((self._time_s, self.scenario.overwrite))

    def _branch_pause_s(self) -> float:
        return self._pace.visit_pause_s[len(self.visits)]

    def _station_red_s(self, station: int) -> float:
        shows_s = self._show_s if station == LONG_PAUSE_STATION else 0.0
        return super()._station_red_s(station) + shows_s

    def _decoys_after_s(self, station: int) -> float:
        return self._show_s if station == LONG_PAUSE_STATION else 0.0

    def _show(self, cup: Position, holding: bool) -> None:
        start_s, cues = self._shows[-1]
        elapsed_s = self._time_s - start_s
        index = self._pace.shown(elapsed_s, len(cues))
        self.panel = cues[index] if index >= 0 else GREY
        self.cue_visible = elapsed_s < self._show_s
        if self.cue_visible:
            # One of the leg to station 2 may still be lit.
            self.decoy = None

    def _over(self) -> bool:
        done = len(self.visits) == len(self.scenario.answers)
        return self._time_s >= self._last_event_s + (_AFTER_LAST_VISIT_S if done else _VISIT_TIMEOUT_S)


def make_referee(scenario: Scenario) -> Referee:
    """The referee of the scenario's task."""
    return SequenceReferee(scenario) if scenario.task == "sequence" else PartReferee(scenario)
