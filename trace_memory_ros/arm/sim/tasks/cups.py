"""`cups`: a part is hidden under one of three cups, which are then swapped; the cup it is under now is the answer."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import TYPE_CHECKING

import mujoco

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.events import MOST_SWAPS
from trace_memory_ros.arm.sim.referee import Position, Referee
from trace_memory_ros.arm.sim.seeding import FloatArray, generator
from trace_memory_ros.arm.sim.tasks.base import Scene
from trace_memory_ros.arm.sim.tasks.shells import (
    PLACES_XY,
    SLIDE_M,
    CupShow,
    ShellReferee,
    ShellScene,
    ShellTask,
    draw_opening,
    shells,
)

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

SWAPS = ((0, 1), (1, 2), (0, 2))
_REVEAL_S = 0.4


@lru_cache(maxsize=64)
def draw_show(task: str, seed: int, count: int | None = None) -> tuple[CupShow, float]:
    """Draw an episode's show and the seconds of red lamp at the branch; nothing of them depends on the cue.

    count: how many swaps; None for 1 to MOST_SWAPS by seed.
    """
    rng = generator(task, seed, "show")
    swaps = rng.integers(len(SWAPS), size=int(rng.integers(1, MOST_SWAPS + 1)))
    if count is not None:
        swaps = generator(task, seed, "swaps").integers(len(SWAPS), size=count)
    swap_s, rest_s, branch_pause_s = rng.uniform((1.5, 0.2, 1.1), (1.7, 0.4, 1.5))
    show = replace(draw_opening(rng), swap_s=float(swap_s), rest_s=float(rest_s), swaps=tuple(SWAPS[i] for i in swaps))
    return show, float(branch_pause_s)


def show_of(scenario: Scenario) -> tuple[CupShow, float]:
    """What `draw_show` draws for a scenario."""
    return draw_show(scenario.task, scenario.seed, scenario.swaps)


class CupsReferee(ShellReferee):
    """The first shell that is touched at the branch is the answer; it slides away then.

    hidden: the number of the shell that the part is under.
    """

    def __init__(self, scenario: Scenario) -> None:
        plan, pause_s = show_of(scenario)
        self.hidden = plan.before(scenario.cue)
        super().__init__(scenario, plan, (pause_s,))

    @property
    def part_xy(self) -> FloatArray:
        """Where the part is: it goes with its shell, but not when that slides away."""
        at = self._plan.shells_xy(self._time_s)[self.hidden].copy()
        if self._time_s < self._plan.closed_s:
            at[0] = PLACES_XY[0][0]
        return at

    def _show(self, cup: Position, holding: bool) -> None:
        super()._show(cup, holding)
        if self.visits:
            touched = self._plan.before(self.visits[0])
            self.shells_xy[touched, 0] += SLIDE_M * min((self._time_s - self._last_event_s) / _REVEAL_S, 1.0)


class CupsScene(ShellScene):
    """Moves the part under its shell; a decoy is a second part behind an outer cup."""

    def __init__(self, model: mujoco.MjModel) -> None:
        super().__init__(model)
        self._decoy = model.geom("decoy").id
        part = model.joint("part")
        self._part_qpos, self._part_qvel = int(part.qposadr[0]), int(part.dofadr[0])

    def place(self, data: mujoco.MjData, scenario: Scenario) -> None:
        start = show_of(scenario)[0].before(scenario.cue)
        data.qpos[self._part_qpos : self._part_qpos + 2] = PLACES_XY[start]

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        assert isinstance(referee, CupsReferee)
        super().show(data, referee)
        data.qpos[self._part_qpos : self._part_qpos + 3] = (*referee.part_xy, layout.PART_HALF)
        data.qvel[self._part_qvel : self._part_qvel + 6] = 0.0
        decoy = referee.decoy
        self.model.geom_rgba[self._decoy] = fixtures.HIDDEN_RGBA if decoy is None else fixtures.PART_DECOY_RGBA
        if decoy is not None:
            self.put_behind(data, self._decoy, decoy.side, layout.PART_HALF)


class CupsTask(ShellTask):
    """A cue is the place where the part is in the end; twins begin with it under each cup in turn."""

    name = "cups"
    choices = len(PLACES_XY)

    def show_of(self, scenario: Scenario) -> CupShow:
        return show_of(scenario)[0]

    def extra_s(self, scenario: Scenario) -> float:
        return self.show_of(scenario).length_s

    def referee(self, scenario: Scenario) -> Referee:
        return CupsReferee(scenario)

    def scene(self, model: mujoco.MjModel) -> Scene:
        return CupsScene(model)

    def furniture(self) -> list[str]:
        return shells()
