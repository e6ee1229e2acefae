"""`match`: a small card shows one of five symbols, made of a colour and a shape; each has a target of its own."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import mujoco

from trace_memory_ros.arm.sim import fixtures, glyphs, layout
from trace_memory_ros.arm.sim.fixtures import CUE_RGBA, HIDDEN_RGBA
from trace_memory_ros.arm.sim.referee import GREY, Position, Referee
from trace_memory_ros.arm.sim.seeding import generator
from trace_memory_ros.arm.sim.tasks.base import Scene
from trace_memory_ros.arm.sim.tasks.detail import SmallScene
from trace_memory_ros.arm.sim.tasks.visits import VisitReferee, VisitTask
from trace_memory_ros.arm.sim.waypoints import Waypoint

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

SYMBOLS = ((0, "disc"), (0, "cross"), (0, "square"), (1, "disc"), (1, "cross"))
"""Colour, as of the cues, and shape; neither alone tells which of the five it is."""
TARGETS_XY = ((0.38, 0.32), (0.58, 0.24), (0.68, 0.0), (0.60, -0.22), (0.44, -0.32))
_RADIUS = 0.07


@dataclass(frozen=True)
class CardShow:
    """Seconds: before the symbol, of the symbol, of red lamp after it, and at the branch."""

    lead_s: float
    lit_s: float
    after_s: float
    branch_pause_s: float

    @property
    def length_s(self) -> float:
        """When the symbol is gone."""
        return self.lead_s + self.lit_s


@lru_cache(maxsize=64)
def draw_show(task: str, seed: int) -> CardShow:
    """Draw an episode's show; nothing of it depends on the cue."""
    rng = generator(task, seed, "show")
    lows, highs = (0.3, 1.6, 0.3, 1.1), (0.6, 2.2, 0.6, 1.5)
    return CardShow(*(float(s) for s in rng.uniform(lows, highs)))


class MatchReferee(VisitReferee):
    """`panel` is the number of the symbol that shows."""

    reach_m = 0.09

    def __init__(self, scenario: Scenario) -> None:
        self._card = show = draw_show(scenario.task, scenario.seed)
        super().__init__(scenario, TARGETS_XY, layout.START_XYZ, show.length_s, show.after_s, (show.branch_pause_s,))

    def _show(self, cup: Position, holding: bool) -> None:
        self.cue_visible = self._time_s < self._show_s
        self.panel = self.scenario.cue if self._card.lead_s <= self._time_s < self._show_s else GREY


class MatchScene(SmallScene):
    """A card with at most one symbol; a decoy is a card with the first or the last."""

    dark = glyphs.CARD_RGBA

    def light(self, name: str, side: int, dark: fixtures.Rgba) -> None:
        shows = name == "panel" or side != GREY
        self.paint(name, glyphs.CARD_RGBA if shows else HIDDEN_RGBA)
        number = -side if name == "decoy" else side
        colour, shape = (0, None) if side == GREY else SYMBOLS[number]
        for geom, ink in glyphs.colours(name, shape, CUE_RGBA[colour]).items():
            self.paint(geom, ink or HIDDEN_RGBA)


class MatchTask(VisitTask):
    """Cue n is symbol n, and calls for target n."""

    name = "match"
    words = ("first", "second", "third", "fourth", "fifth")
    targets_xy = TARGETS_XY
    choices = len(SYMBOLS)
    shown_s = 1.2

    def referee(self, scenario: Scenario) -> Referee:
        return MatchReferee(scenario)

    def scene(self, model: mujoco.MjModel) -> Scene:
        return MatchScene(model)

    def way(self, scenario: Scenario) -> list[Waypoint]:
        return self.watch_and_visit(scenario, draw_show(scenario.task, scenario.seed).length_s)

    def part_xy(self, scenario: Scenario) -> fixtures.XY:
        return layout.PARKED_XY

    def assets(self) -> str:
        return f"  <asset>{glyphs.mesh()}</asset>\n"

    def furniture(self) -> list[str]:
        hidden = fixtures.numbers(HIDDEN_RGBA)
        card = fixtures.slab("panel", layout.PANEL_XY, glyphs.CARD_HALF, glyphs.CARD_RGBA)
        return [card + glyphs.geoms("panel", layout.PANEL_XY, 0.012, hidden)]

    def targets(self) -> list[str]:
        return fixtures.targets(self.words, self.targets_xy, _RADIUS)

    def decoy(self) -> str:
        hidden = fixtures.numbers(HIDDEN_RGBA)
        slab = fixtures.hidden_slab("decoy", layout.DECOY_PANEL_XY, glyphs.CARD_HALF)
        return slab + glyphs.geoms("decoy", layout.DECOY_PANEL_XY, 0.005, hidden)
