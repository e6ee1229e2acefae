"""Three cups in a row that hide what is under them, slide away to show it, and change places.

Here a cup that hides is a shell; the suction cup of a hand keeps its name.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import TYPE_CHECKING

import mujoco
import numpy as np

from trace_memory_ros.arm.sim import fixtures
from trace_memory_ros.arm.sim.referee import Position, Referee
from trace_memory_ros.arm.sim.seeding import FloatArray
from trace_memory_ros.arm.sim.tasks.base import Scene
from trace_memory_ros.arm.sim.tasks.visits import VisitReferee, VisitTask
from trace_memory_ros.arm.sim.waypoints import Waypoint

if TYPE_CHECKING:
    from trace_memory_ros.arm.sim.scenario import Scenario

PLACES_XY = ((0.66, 0.20), (0.66, 0.0), (0.66, -0.20))
WORDS = ("left", "middle", "right")
SLIDE_M = 0.15
"""How far a shell slides away to show what is under it."""
START_XYZ = (0.42, -0.12, 0.26)
"""Where the right arm hides none of them from the overhead camera."""
REACH_M = 0.08
_RADIUS, _HALF_HEIGHT = 0.062, 0.045
_SHELL_RGBA = "0.16 0.33 0.36 1"
_SLIDE_S = 0.5


@dataclass(frozen=True)
class CupShow:
    """One episode's show; seconds: before the shells slide away, of what is under them in view, of a swap, of rest
    before each, and of red lamp after all. swaps: the places whose shells change, in order.
    """

    lead_s: float
    open_s: float
    after_s: float
    swap_s: float = 0.0
    rest_s: float = 0.0
    swaps: tuple[tuple[int, int], ...] = ()

    @property
    def closed_s(self) -> float:
        """When everything is covered."""
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


def draw_opening(rng: np.random.Generator) -> CupShow:
    """A show without swaps."""
    lead_s, open_s, after_s = rng.uniform((0.3, 0.9, 0.3), (0.6, 1.1, 0.6))
    return CupShow(float(lead_s), float(open_s), float(after_s))


class ShellReferee(VisitReferee):
    """Shells as the show has them. shells_xy: where they are `(3, 2)`, m."""

    reach_m = REACH_M

    def __init__(self, scenario: Scenario, plan: CupShow, pauses_s: tuple[float, ...]) -> None:
        self._plan, self.shells_xy = plan, plan.shells_xy(0.0)
        super().__init__(scenario, PLACES_XY, START_XYZ, plan.length_s, plan.after_s, pauses_s)

    def _show(self, cup: Position, holding: bool) -> None:
        self.cue_visible = self._time_s < self._show_s
        self.shells_xy = self._plan.shells_xy(self._time_s)


class ShellScene(Scene):
    """Moves the shells."""

    def __init__(self, model: mujoco.MjModel) -> None:
        super().__init__(model)
        self._shells = [model.geom(f"shell_{i}").id for i in range(len(PLACES_XY))]

    def show(self, data: mujoco.MjData, referee: Referee) -> None:
        assert isinstance(referee, ShellReferee)
        for geom, xy in zip(self._shells, referee.shells_xy, strict=True):
            self.put(data, geom, (*xy, _HALF_HEIGHT))

    def put(self, data: mujoco.MjData, geom: int, xyz: tuple[float, ...]) -> None:
        """Move a geom; the picture may be taken before the next physics step."""
        self.model.geom_pos[geom] = xyz
        data.geom_xpos[geom] = xyz

    def put_behind(self, data: mujoco.MjData, geom: int, side: int, height_m: float) -> None:
        """Move a geom behind the left (0) or the right outer cup."""
        x, y = PLACES_XY[0 if side == 0 else -1]
        self.put(data, geom, (x + SLIDE_M, y, height_m))


class ShellTask(VisitTask):
    """Watch what the shells hide, then visit their places."""

    words = WORDS
    targets_xy = PLACES_XY
    shown_s = 1.3
    start_xyz = START_XYZ
    before_m = 0.12

    @abstractmethod
    def show_of(self, scenario: Scenario) -> CupShow:
        """The episode's show."""

    def way(self, scenario: Scenario) -> list[Waypoint]:
        return self.watch_and_visit(scenario, self.show_of(scenario).length_s)

    def targets(self) -> list[str]:
        """A white disc at each place."""
        return fixtures.targets(WORDS, PLACES_XY, _RADIUS + 0.02)

    def decoy(self) -> str:
        return fixtures.hidden_part("decoy")


def shells() -> list[str]:
    """MJCF of the shells; a turn of their own lets them be moved, as with distractors."""
    return [
        f'<geom name="shell_{i}" type="cylinder" pos="{x} {y} {_HALF_HEIGHT}" euler="0 0 0.1"'
        f' size="{_RADIUS} {_HALF_HEIGHT}" rgba="{_SHELL_RGBA}"/>'
        for i, (x, y) in enumerate(PLACES_XY)
    ]
