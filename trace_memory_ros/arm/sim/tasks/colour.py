"""`colour`: a panel shows one of two colours at the start."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from trace_memory_ros.arm.sim.referee import GREY, Position, Referee
from trace_memory_ros.arm.sim.tasks.carry import CarryReferee, CarryTask
from trace_memory_ros.arm.sim.tasks.panel import PanelTask

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario


class ColourReferee(CarryReferee):
    """The panel is lit until a time drawn by the seed, or to the end."""

    def __init__(self, scenario: Scenario) -> None:
        super().__init__(scenario)
        self._cue_off_s = np.inf if scenario.cue_stays else scenario.draws().cue_off_s
        self.panel = scenario.cue

    def _show(self, cup: Position, holding: bool) -> None:
        self.cue_visible = self.cue_visible and self._time_s < self._cue_off_s
        self.panel = self.scenario.cue if self.cue_visible else GREY


class ColourTask(PanelTask, CarryTask):
    """See the module."""

    name = "colour"

    def referee(self, scenario: Scenario) -> Referee:
        return ColourReferee(scenario)
