"""A panel that lights up in one of two colours, and another one that lights up and says nothing."""

from __future__ import annotations

import mujoco

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.referee import GREY, Referee
from trace_memory_ros.arm.sim.tasks.base import Scene, Task


class PanelScene(Scene):
    """Shows the referee's panel and decoy."""

    dark: fixtures.Rgba = fixtures.GREY_RGBA
    """What the panel is like while it shows nothing."""

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        self.light("panel", referee.panel, self.dark)
        self.light("decoy", GREY if referee.decoy is None else referee.decoy.side, fixtures.HIDDEN_RGBA)

    def light(self, name: str, side: int, dark: fixtures.Rgba) -> None:
        """Let panel or decoy show what says `side`, or be `dark` for GREY."""
        self.paint(name, dark if side == GREY else fixtures.CUE_RGBA[side])


class PanelTask(Task):
    """panel_half: half the panel's sizes, m."""

    panel_half: fixtures.XY = layout.PANEL_HALF
    scene_type: type[PanelScene] = PanelScene

    def scene(self, model: mujoco.MjModel) -> Scene:
        return self.scene_type(model)

    def furniture(self) -> list[str]:
        panel = fixtures.slab("panel", layout.PANEL_XY, self.panel_half, self.scene_type.dark)
        return [*super().furniture(), panel]

    def decoy(self) -> str:
        return fixtures.hidden_slab("decoy", layout.DECOY_PANEL_XY, self.panel_half)
