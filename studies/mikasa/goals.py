"""What a task asks for: one thing to go to, several to be touched in turn, or a button to be pressed so many times.

MIKASA's simulator is asked where things are.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from studies.mikasa.expert import nth_along_arc, raising, touching, towards
from studies.mikasa.names import COUNTED, IN_TURN

if TYPE_CHECKING:
    from mani_skill.envs.sapien_env import BaseEnv

ABOVE_TOP_M = 0.005
"""Above the middle of a cube's top: where the benchmark has it touched."""
HIGHER_M, CLEAR_M = 0.16, 0.12
"""From a button that it pressed the hand is raised towards the first, and does what is next from the second on; the
benchmark asks for 0.085.
"""
DEEP_M = 0.012
"""Nearer than this to a button's top the hand turns back; a press counts from 0.025 on."""
MOST_TICKS = 50
"""For each thing to be touched and each press, after which an episode is given up: the expert needs 110 for three
things, and the benchmark allows 400 for any number.
"""


class Goal(Protocol):
    """What is to be done next in an episode, and by which action."""

    def offset_m(self, base: BaseEnv, info: dict[str, Any]) -> NDArray[np.float64]:
        """From the hand to where it should go `(3,)`."""

    def action(self, base: BaseEnv, offset_m: NDArray[np.float64]) -> NDArray[np.float32]:
        """What the expert does."""

    def done(self, base: BaseEnv) -> int:
        """How many of the things were done rightly: the number of the decision that comes next."""

    def answer(self, base: BaseEnv, offset_m: NDArray[np.float64]) -> int:
        """Which of the choices is next, counted along their arc from the lowest y; as many as there are: the button."""

    def over(self, base: BaseEnv, success: bool) -> bool:
        """Whether an episode need not go on to its last step."""


class OneThing:
    """One of the choices is right, and success is to be there."""

    def offset_m(self, base: BaseEnv, info: dict[str, Any]) -> NDArray[np.float64]:
        return np.asarray(info["obj_to_goal_pos"][0].numpy(), np.float64)

    def action(self, base: BaseEnv, offset_m: NDArray[np.float64]) -> NDArray[np.float32]:
        return towards(offset_m)

    def done(self, base: BaseEnv) -> int:
        return 0

    def answer(self, base: BaseEnv, offset_m: NDArray[np.float64]) -> int:
        return nth_along_arc(choices(base), hand(base)[:2] + offset_m[:2])

    def over(self, base: BaseEnv, success: bool) -> bool:
        return False


class Pressing:
    """Down on a button well beyond where a press counts, and up until well clear of it; one for each episode.

    Who turns back where the benchmark just counts a press, or a raised hand, teaches to turn back a little too early.
    """

    def __init__(self) -> None:
        self.raising = False

    def look(self, base: BaseEnv) -> bool:
        """At a tick: whether the hand is to be raised."""
        pending = bool(base.pending_press[0])
        if self.raising:
            self.raising = pending or _raised_m(base) < CLEAR_M
        else:
            self.raising = pending and hand(base)[2] < float(base.button_top_z[0]) + DEEP_M
        return self.raising


class InTurn:
    """Things are touched from above, in the order in which they were shown where that is asked for and else along
    their arc; then the button is pressed and the hand raised.
    """

    def __init__(self) -> None:
        self._pressing = Pressing()

    def offset_m(self, base: BaseEnv, info: dict[str, Any]) -> NDArray[np.float64]:
        left = self._left(base)
        if not left:
            place = _top(base.button_xy, base.button_top_z)
        else:
            place = _middle(base, left[0]) + np.array([0.0, 0.0, base.CUBE_HALFSIZE + ABOVE_TOP_M])
        return place - hand(base)

    def action(self, base: BaseEnv, offset_m: NDArray[np.float64]) -> NDArray[np.float32]:
        if bool(base.button_pressed[0]):
            return raising(0.0)
        if self._pressing.look(base):
            return raising(HIGHER_M - _raised_m(base))
        return touching(offset_m, hand(base)[2])

    def done(self, base: BaseEnv) -> int:
        return len(_asked(base)) - len(self._left(base))

    def answer(self, base: BaseEnv, offset_m: NDArray[np.float64]) -> int:
        left = self._left(base)
        return nth_along_arc(choices(base), _middle(base, left[0])[:2]) if left else len(base.cubes)

    def over(self, base: BaseEnv, success: bool) -> bool:
        wrong = int(base.touched_cubes[0].sum()) > self.done(base)
        return success or wrong or int(base.elapsed_steps[0]) >= MOST_TICKS * (1 + len(_asked(base)))

    def _left(self, base: BaseEnv) -> list[int]:
        """What is still to be touched, the next first."""
        asked = _asked(base)
        if hasattr(base, "touched_cubes_idx"):
            touched = base.touched_cubes_idx[0].tolist()
            right = [one == other for one, other in zip(touched, asked, strict=True)]
            return asked[right.index(False) :] if False in right else []
        left = [key for key in asked if not base.touched_cubes[0, key]]
        return sorted(left, key=lambda key: nth_along_arc(choices(base), _middle(base, key)[:2]))


class Presses:
    """One button is to be pressed as often as a lamp blinked, then the other one once.

    A press is done when the expert has raised the hand far enough.
    """

    def __init__(self) -> None:
        self._pressing = Pressing()

    def offset_m(self, base: BaseEnv, info: dict[str, Any]) -> NDArray[np.float64]:
        again = self.answer(base) == 0
        first, other = (base.button_xy, base.button_top_z), (base.confirm_button_xy, base.confirm_button_top_z)
        return _top(*(first if again else other)) - hand(base)

    def action(self, base: BaseEnv, offset_m: NDArray[np.float64]) -> NDArray[np.float32]:
        raised = self._pressing.look(base)
        # What is next may have become another with the press that is done.
        offset_m = self.offset_m(base, {})
        return raising(HIGHER_M - _raised_m(base)) if raised else touching(offset_m, hand(base)[2])

    def done(self, base: BaseEnv) -> int:
        return int(base.press_count[0]) - (self._pressing.raising and not bool(base.pending_press[0]))

    def answer(self, base: BaseEnv, offset_m: NDArray[np.float64] | None = None) -> int:
        """Which button is next: the first or the other."""
        return int(self.done(base) >= int(base.target_blinks[0]))

    def over(self, base: BaseEnv, success: bool) -> bool:
        most = MOST_TICKS * (2 + int(base.target_blinks[0]))
        return success or bool(base.failed[0]) or int(base.elapsed_steps[0]) >= most


def goal_of(task: str) -> Goal:
    """What a task asks for."""
    if task in COUNTED:
        return Presses()
    return InTurn() if task in IN_TURN else OneThing()


def choices(base: BaseEnv) -> NDArray[np.float64]:
    """Where on the table they stand `(N, 2)`, m."""
    if hasattr(base, "confirm_button_xy"):
        return np.stack([xy[0].numpy().astype(np.float64) for xy in (base.button_xy, base.confirm_button_xy)])
    return np.stack([pose[0, :2].numpy().astype(np.float64) for pose in base.initial_poses.values()])


def hand(base: BaseEnv) -> NDArray[np.float64]:
    """Where the hand is `(3,)`, m."""
    return np.asarray(base.agent.tcp.pose.p[0].numpy(), np.float64)


def _raised_m(base: BaseEnv) -> float:
    """How high the hand is above where the press began."""
    return float(hand(base)[2] - base.press_start_tcp_z[0])


def _top(xy: Any, z: Any) -> NDArray[np.float64]:
    """Of a button `(3,)`, m."""
    return np.array([*xy[0].tolist(), float(z[0])])


def _asked(base: BaseEnv) -> list[int]:
    found: list[int] = base.true_color_indices[0].tolist()
    return found


def _middle(base: BaseEnv, key: int) -> NDArray[np.float64]:
    return np.asarray(base.cubes[key].pose.p[0].numpy(), np.float64)
