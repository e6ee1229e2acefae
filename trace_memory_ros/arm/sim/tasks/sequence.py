"""`sequence`: colours shown one after another, then as many visits to the targets, in the order shown."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from trace_memory_ros.arm.sim import layout
from trace_memory_ros.arm.sim.events import LONG_PAUSE_STATION, draw_pace
from trace_memory_ros.arm.sim.referee import GREY, STATION_NAMES, Position, Referee
from trace_memory_ros.arm.sim.tasks.panel import PanelTask
from trace_memory_ros.arm.sim.tasks.visits import VisitReferee, VisitTask
from trace_memory_ros.arm.sim.waypoints import Waypoint

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

_CUE_TIMEOUT_S = 8.0


class SequenceReferee(VisitReferee):
    """The lamp is red while colours are shown, at the start and (whether a new sequence comes or not) at station 2."""

    def __init__(self, scenario: Scenario) -> None:
        self._pace = draw_pace(scenario.task, scenario.seed)
        self._shows = [(0.0, scenario.cues)]
        show_s = self._pace.length_s(len(scenario.cues))
        pauses_s = self._pace.visit_pause_s
        super().__init__(scenario, layout.TARGET_XY, layout.START_XYZ, show_s, self._pace.after_s, pauses_s)

    def _arrive(self, name: str) -> None:
        super()._arrive(name)
        at_second = name == STATION_NAMES[LONG_PAUSE_STATION] and self._lap == 0
        if at_second and self.scenario.overwrite is not None:
            self._shows.append((self._time_s, self.scenario.overwrite))

    def _station_red_s(self, station: int) -> float:
        return super()._station_red_s(station) + (self._show_s if station == LONG_PAUSE_STATION else 0.0)

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


class SequenceTask(PanelTask, VisitTask):
    """Every cue of a twin is the other way."""

    name = "sequence"

    def answers(self, scenario: Scenario) -> tuple[int, ...]:
        """The newest cues."""
        return scenario.cues if scenario.overwrite is None else scenario.overwrite

    def with_cue(self, scenario: Scenario, cue: int) -> Scenario:
        if cue == scenario.cue:
            return scenario
        overwrite = None if scenario.overwrite is None else tuple(1 - one for one in scenario.overwrite)
        return replace(scenario, cue=cue, cues=tuple(1 - one for one in scenario.cues), overwrite=overwrite)

    def extra_s(self, scenario: Scenario) -> float:
        return _CUE_TIMEOUT_S * len(scenario.cues)

    def referee(self, scenario: Scenario) -> Referee:
        return SequenceReferee(scenario)

    def way(self, scenario: Scenario) -> list[Waypoint]:
        """From station 2 on the left arm's angles are the same for any number of cues."""
        return self.watch_and_visit(scenario, 0.3 + 1.2 * len(scenario.cues), again=True)
