"""`put_back`: three parts are shown under three cups; each in turn has to go back to the place that it came from."""

from __future__ import annotations

from functools import lru_cache
from itertools import permutations
from typing import TYPE_CHECKING

import mujoco

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.fixtures import CUE_RGBA, HIDDEN_RGBA
from trace_memory_ros.arm.sim.referee import GREY, Position, Referee
from trace_memory_ros.arm.sim.seeding import generator
from trace_memory_ros.arm.sim.tasks.base import Scene
from trace_memory_ros.arm.sim.tasks.shells import (
    PLACES_XY,
    CupShow,
    ShellReferee,
    ShellScene,
    ShellTask,
    draw_opening,
    shells,
)

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

ORDERS = tuple(permutations(range(len(PLACES_XY))))
"""Places of the three parts, for each cue."""
PART_RGBA = (*CUE_RGBA, (0.10, 0.62, 0.12, 1.0))
_HALF_M = 0.036
_EXTRA_S = 20.0


@lru_cache(maxsize=64)
def draw_show(task: str, seed: int) -> tuple[CupShow, tuple[float, ...]]:
    """When the parts are in view, and seconds of red lamp at each visit; nothing of them depends on the cue."""
    rng = generator(task, seed, "show")
    return draw_opening(rng), tuple(float(s) for s in rng.uniform(1.1, 1.5, len(PLACES_XY)))


class PutBackReferee(ShellReferee):
    """`panel` is the part that is asked for, from the arrival at the branch to the visit.

    A visit changes nothing to be seen, or it would tell the next.
    """

    def __init__(self, scenario: Scenario) -> None:
        self.places = ORDERS[scenario.cue]
        super().__init__(scenario, *draw_show(scenario.task, scenario.seed))

    def _show(self, cup: Position, holding: bool) -> None:
        super()._show(cup, holding)
        self.panel = len(self.visits) if self._at_branch else GREY


class PutBackScene(ShellScene):
    """Parts under the shells while these are open, the colour of the one that is asked for on the panel."""

    def __init__(self, model: mujoco.MjModel) -> None:
        super().__init__(model)
        self._items = [model.geom(f"item_{i}").id for i in range(len(PLACES_XY))]

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        assert isinstance(referee, PutBackReferee)
        super().show(data, referee)
        for part, geom in enumerate(self._items):
            self.put(data, geom, (*PLACES_XY[referee.places[part]], _HALF_M))
            self.model.geom_rgba[geom] = PART_RGBA[part] if referee.cue_visible else HIDDEN_RGBA
        self.paint("panel", fixtures.GREY_RGBA if referee.panel == GREY else PART_RGBA[referee.panel])
        decoy = referee.decoy
        self.paint("decoy", HIDDEN_RGBA if decoy is None else PART_RGBA[decoy.side])
        if decoy is not None:
            self.put_behind(data, self.model.geom("decoy").id, decoy.side, _HALF_M)


class PutBackTask(ShellTask):
    """A twin for each of the six orders in which the parts can lie."""

    name = "put_back"
    choices = len(ORDERS)

    def show_of(self, scenario: Scenario) -> CupShow:
        return draw_show(scenario.task, scenario.seed)[0]

    def answers(self, scenario: Scenario) -> tuple[int, ...]:
        """The place of each part, blue first, then yellow, then green."""
        return ORDERS[scenario.cue]

    def extra_s(self, scenario: Scenario) -> float:
        return _EXTRA_S

    def referee(self, scenario: Scenario) -> Referee:
        return PutBackReferee(scenario)

    def scene(self, model: mujoco.MjModel) -> Scene:
        return PutBackScene(model)

    def part_xy(self, scenario: Scenario) -> fixtures.XY:
        return layout.PARKED_XY

    def furniture(self) -> list[str]:
        items = [
            f'<geom name="item_{i}" type="box" pos="{x} {y} {_HALF_M}" euler="0 0 0.1"'
            f' size="{_HALF_M} {_HALF_M} {_HALF_M}" rgba="{fixtures.numbers(HIDDEN_RGBA)}"/>'
            for i, (x, y) in enumerate(PLACES_XY)
        ]
        panel = fixtures.slab("panel", layout.PANEL_XY, layout.PANEL_HALF, fixtures.GREY_RGBA)
        return [*shells(), *items, panel]
