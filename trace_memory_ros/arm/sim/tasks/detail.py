"""`small_colour` and `glyph`: as `colour`, with a cue that is small in the image, at another place in each scene."""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING

import mujoco

from trace_memory_ros.arm.sim import fixtures, glyphs, layout
from trace_memory_ros.arm.sim.fixtures import HIDDEN_RGBA
from trace_memory_ros.arm.sim.referee import GREY, Referee
from trace_memory_ros.arm.sim.seeding import FloatArray, generator
from trace_memory_ros.arm.sim.tasks.colour import ColourTask
from trace_memory_ros.arm.sim.tasks.panel import PanelScene

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario


def offset_m(task: str, seed: int) -> FloatArray:
    """How far off the panel's place the cue lies in this scene `(2,)`."""
    return generator(task, seed, "panel").uniform(-1.0, 1.0, 2) * layout.SMALL_CUE_REACH


class SmallScene(PanelScene):
    """The panel lies elsewhere in each scene."""

    def __init__(self, model: mujoco.MjModel) -> None:
        super().__init__(model)
        named = (model.geom(i) for i in range(model.ngeom))
        self._panel_xy = {g.id: g.pos[:2].copy() for g in named if g.name.startswith("panel")}

    def place(self, data: mujoco.MjData, scenario: Scenario) -> None:
        offset = offset_m(scenario.task, scenario.seed)
        for geom, xy in self._panel_xy.items():
            self.model.geom_pos[geom, :2] = xy + offset


class SmallColourTask(ColourTask):
    """A panel a fortieth of the overhead image wide."""

    name = "small_colour"
    panel_half = layout.SMALL_PANEL_HALF
    scene_type = SmallScene


class GlyphScene(SmallScene):
    """A card on which one of five shapes appears."""

    dark = glyphs.CARD_RGBA

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        self._shapes = _shapes_of(referee.scenario.task, referee.scenario.seed)
        super().show(data, referee)

    def light(self, name: str, side: int, dark: fixtures.Rgba) -> None:
        self.paint(name, dark if side == GREY else glyphs.CARD_RGBA)
        for geom, colour in glyphs.colours(name, None if side == GREY else self._shapes[side]).items():
            self.paint(geom, colour or HIDDEN_RGBA)


_shapes_of = lru_cache(maxsize=8)(glyphs.shapes_of)


class GlyphTask(ColourTask):
    """A card with one of five printed shapes of one colour."""

    name = "glyph"
    panel_half = glyphs.CARD_HALF
    scene_type = GlyphScene

    def assets(self) -> str:
        return f"  <asset>{glyphs.mesh()}</asset>\n"

    def furniture(self) -> list[str]:
        return [*super().furniture(), glyphs.geoms("panel", layout.PANEL_XY, 0.012, fixtures.numbers(HIDDEN_RGBA))]

    def decoy(self) -> str:
        shapes = glyphs.geoms("decoy", layout.DECOY_PANEL_XY, 0.005, fixtures.numbers(HIDDEN_RGBA))
        return super().decoy() + shapes
