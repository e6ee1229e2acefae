"""`cups`: a part is hidden under one of three cups, which are then swapped; the cup it is under now is the answer.

Here a cup that hides is a shell; the suction cup of a hand keeps its name.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from trace_memory_ros.arm.sim import fixtures, layout
from trace_memory_ros.arm.sim.referee import Position, Referee
from trace_memory_ros.arm.sim.seeding import FloatArray, generator
from trace_memory_ros.arm.sim.tasks.base import Scene
from trace_memory_ros.arm.sim.tasks.visits import VisitReferee, VisitTask
from trace_memory_ros.arm.sim.waypoints import Waypoint

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

PLACES_XY = ((0.66, 0.20), (0.66, 0.0), (0.66, -0.20))
SWAPS = ((0, 1), (1, 2), (0, 2))
MOST_SWAPS = 4
SLIDE_M = 0.15
"""How far a shell slides away to show what is under it."""
_START_XYZ = (0.42, -0.12, 0.26)
_RADIUS, _HALF_HEIGHT = 0.062, 0.045
_SHELL_RGBA = "0.16 0.33 0.36 1"
_SLIDE_S = 0.5
_REVEAL_S = 0.4


@dataclass(frozen=True)
class CupShow:
    """One episode's show; seconds: before the shells slide away, of the part in view, of a swap, of rest after each
    movement, of red lamp after all, and at the branch. swaps: the places whose shells change, in order.
    """

    lead_s: float
    open_s: float
    swap_s: float
    rest_s: float
    after_s: float
    branch_pause_s: float
    swaps: tuple[tuple[int, int], ...]

    @property
    def closed_s(self) -> float:
        """When the part is covered."""
        return self.lead_s + 2 * _SLIDE_S + self.open_s

    @property
    def length_s(self) -> float:
        """When the last swap is over."""
        return self.closed_s + len(self.swaps) * (self.rest_s + self.swap_s)

    def before(self, place: int) -> int:
        """The place where what is now at `place` was before the swaps."""
        for swap in reversed(self.swaps):
            place = sum(swap) - place if place in swap else place
        return place

    def shells_xy(self, time_s: float) -> FloatArray:
        """Where the shells are `(3, 2)`, m; the first stood at the first place before the swaps."""
        at = np.array(PLACES_XY)
        into_s = min(time_s - self.lead_s, self.closed_s - time_s)
        at[:, 0] += SLIDE_M * np.clip(into_s / _SLIDE_S, 0.0, 1.0)
        order = [0, 1, 2]
        for number, (one, other) in enumerate(self.swaps):
            begin_s = self.closed_s + self.rest_s + number * (self.swap_s + self.rest_s)
            turned = float(np.clip((time_s - begin_s) / self.swap_s, 0.0, 1.0))
            if 0.0 < turned < 1.0:
                at[order[one]], at[order[other]] = _passing(one, other, turned)
            if turned < 1.0:
                break
            order[one], order[other] = order[other], order[one]
            at[order] = PLACES_XY
        return at


def _passing(one: int, other: int, turned: float) -> tuple[FloatArray, FloatArray]:
    """Two shells on half an ellipse each, the first on the far side, clear of a third between them."""
    first, second = np.array(PLACES_XY[one]), np.array(PLACES_XY[other])
    middle, arm = (first + second) / 2, (first - second) / 2
    bulge_m = 0.04 + 0.5 * float(np.linalg.norm(arm))
    aside = np.array([bulge_m * np.sin(np.pi * turned), 0.0])
    along = arm * np.cos(np.pi * turned)
    return middle + along + aside, middle - along - aside


@lru_cache(maxsize=64)
def draw_show(task: str, seed: int) -> CupShow:
    """Draw an episode's show; nothing of it depends on the cue."""
    rng = generator(task, seed, "show")
    swaps = rng.integers(len(SWAPS), size=int(rng.integers(1, MOST_SWAPS + 1)))
    return CupShow(
        lead_s=float(rng.uniform(0.3, 0.6)),
        open_s=float(rng.uniform(0.9, 1.1)),
        swap_s=float(rng.uniform(1.5, 1.7)),
        rest_s=float(rng.uniform(0.2, 0.4)),
        after_s=float(rng.uniform(0.3, 0.6)),
        branch_pause_s=float(rng.uniform(1.1, 1.5)),
        swaps=tuple(SWAPS[i] for i in swaps),
    )


class CupsReferee(VisitReferee):
    """The first shell that is touched at the branch is the answer; it slides away then.

    shells_xy: where the shells are `(3, 2)`, m. hidden: the number of the shell that the part is under.
    """

    reach_m = 0.08

    def __init__(self, scenario: Scenario) -> None:
        self._plan = draw_show(scenario.task, scenario.seed)
        self.hidden = self._plan.before(scenario.cue)
        self.shells_xy = self._plan.shells_xy(0.0)
        super().__init__(
            scenario, PLACES_XY, _START_XYZ, self._plan.length_s, self._plan.after_s, (self._plan.branch_pause_s,)
        )

    @property
    def part_xy(self) -> FloatArray:
        """Where the part is: it goes with its shell, but not when that slides away."""
        at = self._plan.shells_xy(self._time_s)[self.hidden].copy()
        if self._time_s < self._plan.closed_s:
            at[0] = PLACES_XY[0][0]
        return at

    def _show(self, cup: Position, holding: bool) -> None:
        self.cue_visible = self._time_s < self._show_s
        self.shells_xy = self._plan.shells_xy(self._time_s)
        if self.visits:
            touched = self._plan.before(self.visits[0])
            self.shells_xy[touched, 0] += SLIDE_M * min((self._time_s - self._last_event_s) / _REVEAL_S, 1.0)


class CupsScene(Scene):
    """Moves the shells and, under one of them, the part; a decoy is a second part behind an outer cup."""

    def __init__(self, model: mujoco.MjModel) -> None:
        super().__init__(model)
        self._shells = [model.geom(f"shell_{i}").id for i in range(len(PLACES_XY))]
        self._decoy = model.geom("decoy").id
        part = model.joint("part")
        self._part_qpos, self._part_qvel = int(part.qposadr[0]), int(part.dofadr[0])

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        assert isinstance(referee, CupsReferee)
        for geom, xy in zip(self._shells, referee.shells_xy, strict=True):
            self._put(data, geom, (*xy, _HALF_HEIGHT))
        data.qpos[self._part_qpos : self._part_qpos + 3] = (*referee.part_xy, layout.PART_HALF)
        data.qvel[self._part_qvel : self._part_qvel + 6] = 0.0
        decoy = referee.decoy
        self.model.geom_rgba[self._decoy] = fixtures.HIDDEN_RGBA if decoy is None else fixtures.PART_DECOY_RGBA
        if decoy is not None:
            x, y = PLACES_XY[0 if decoy.side == 0 else -1]
            self._put(data, self._decoy, (x + SLIDE_M, y, layout.PART_HALF))

    def _put(self, data: mujoco.MjData, geom: int, xyz: tuple[float, ...]) -> None:
        self.model.geom_pos[geom] = xyz
        # The picture may be taken before the next physics step.
        data.geom_xpos[geom] = xyz

    def place(self, data: mujoco.MjData, scenario: Scenario) -> None:
        start = draw_show(scenario.task, scenario.seed).before(scenario.cue)
        data.qpos[self._part_qpos : self._part_qpos + 2] = PLACES_XY[start]


class CupsTask(VisitTask):
    """A cue is the place where the part is in the end; twins begin with it under each cup in turn."""

    name = "cups"
    words = ("left", "middle", "right")
    targets_xy = PLACES_XY
    choices = 3
    shown_s = 1.3
    start_xyz = _START_XYZ

    def extra_s(self, scenario: Scenario) -> float:
        return draw_show(scenario.task, scenario.seed).length_s

    def referee(self, scenario: Scenario) -> Referee:
        return CupsReferee(scenario)

    def scene(self, model: mujoco.MjModel) -> Scene:
        return CupsScene(model)

    def way(self, scenario: Scenario) -> list[Waypoint]:
        return self.watch_and_visit(scenario, draw_show(scenario.task, scenario.seed).length_s)

    def furniture(self) -> list[str]:
        # A turn of their own lets them be moved, as with distractors.
        return [
            f'<geom name="shell_{i}" type="cylinder" pos="{x} {y} {_HALF_HEIGHT}" euler="0 0 0.1"'
            f' size="{_RADIUS} {_HALF_HEIGHT}" rgba="{_SHELL_RGBA}"/>'
            for i, (x, y) in enumerate(PLACES_XY)
        ]

    def targets(self) -> list[str]:
        return [
            f'<geom name="target_{name}" type="cylinder" pos="{x} {y} 0.002" size="{_RADIUS + 0.02} 0.002"'
            ' rgba="0.95 0.95 0.93 1"/>'
            for name, (x, y) in zip(self.words, PLACES_XY, strict=True)
        ]

    def decoy(self) -> str:
        return fixtures.hidden_part("decoy")
