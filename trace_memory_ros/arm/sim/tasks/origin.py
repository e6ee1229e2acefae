"""`origin`: the part lies in one of two bins, and has to go to the target on that side."""

from __future__ import annotations

from typing import TYPE_CHECKING

import mujoco
import numpy as np

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.referee import Position, Referee
from trace_memory_ros.arm.sim.tasks.base import Scene
from trace_memory_ros.arm.sim.tasks.carry import CarryReferee, CarryTask

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario


class OriginReferee(CarryReferee):
    """The cue is seen until the part has been picked and the paths have merged."""

    def _show(self, cup: Position, holding: bool) -> None:
        if self.cue_visible:
            self.cue_visible = not (holding and abs(cup[1]) < layout.MERGED_Y)


class OriginScene(Scene):
    """A decoy is a second part in one of the bins."""

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        decoy, geom = referee.decoy, self.model.geom("decoy").id
        if decoy is None:
            self.model.geom_rgba[geom] = fixtures.HIDDEN_RGBA
            return
        self.model.geom_rgba[geom] = fixtures.PART_DECOY_RGBA
        self.model.geom_pos[geom] = (*(np.array(layout.BIN_XY[decoy.side]) + decoy.part_offset), layout.PART_HALF)
        self.model.geom_quat[geom] = (np.cos(decoy.part_yaw / 2), 0, 0, np.sin(decoy.part_yaw / 2))
        # The picture may be taken before the next physics step.
        data.geom_xpos[geom] = self.model.geom_pos[geom]
        mujoco.mju_quat2Mat(data.geom_xmat[geom], self.model.geom_quat[geom])


class OriginTask(CarryTask):
    """See the module."""

    name = "origin"

    def referee(self, scenario: Scenario) -> Referee:
        return OriginReferee(scenario)

    def scene(self, model: mujoco.MjModel) -> Scene:
        return OriginScene(model)

    def part_xy(self, scenario: Scenario) -> fixtures.XY:
        return layout.BIN_XY[scenario.cue]

    def furniture(self) -> list[str]:
        return [fixtures.tray("bin_left", layout.BIN_XY[0]), fixtures.tray("bin_right", layout.BIN_XY[1])]

    def decoy(self) -> str:
        return fixtures.hidden_part("decoy")
