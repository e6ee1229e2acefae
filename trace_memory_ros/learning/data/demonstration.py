"""One demonstration, whoever recorded it: the simulator, a robot's bags, another data set."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.frames import Cameras


@dataclass(frozen=True)
class Demonstration:
    """One episode of T ticks to learn from.

    scene: episodes of one scene are never on both sides of a split; counterfactual twins are two episodes of one scene
    with unlike answers. stamps_ns `(T,)`: of the ticks, rising. images: frames by camera. state `(T, d_s)` in SI
    units, actions `(T, A)`, NaN where there is none. decision_ticks: at which only earlier evidence shows what to do,
    in order; may be empty. answers: what was right at each, as a number. usable: `(T,)` bool, ticks whose observation
    was whole; None for all. At the others images and state repeat the tick before. shown: `(T,)` bool, ticks of a show
    too brief for a coarse clock; None for no such tick. Raises ValueError unless there is an answer to each decision.
    """

    name: str
    scene: str
    stamps_ns: NDArray[np.int64]
    images: Cameras
    state: NDArray[np.float64]
    actions: NDArray[np.float32]
    decision_ticks: tuple[int, ...] = ()
    answers: tuple[int, ...] = ()
    usable: NDArray[np.bool_] | None = None
    shown: NDArray[np.bool_] | None = None

    def __post_init__(self) -> None:
        if len(self.answers) != len(self.decision_ticks):
            raise ValueError(
                f"demonstration {self.name}: decision ticks {self.decision_ticks}, answers {self.answers}: "
                "give one answer to each"
            )

    @property
    def ticks(self) -> int:
        """T."""
        return len(self.actions)

    @property
    def usable_mask(self) -> NDArray[np.bool_]:
        """`usable`, `(T,)`, where all ticks are too."""
        return np.ones(self.ticks, dtype=bool) if self.usable is None else self.usable

    @property
    def readable(self) -> NDArray[np.int64]:
        """Ticks at which there is something to see and something to do."""
        return np.flatnonzero(np.isfinite(self.actions).all(axis=1) & self.usable_mask)

    @cached_property
    def digest(self) -> str:
        """Of all its numbers, pictures apart: whether an episode of the same name is still the same."""
        found = hashlib.sha256(repr((self.decision_ticks, self.answers)).encode())
        for numbers in (self.stamps_ns, self.state, self.actions, self.usable_mask):
            found.update(np.ascontiguousarray(numbers).data)
        return found.hexdigest()

    @property
    def usable_state(self) -> NDArray[np.float64]:
        """State of the usable ticks."""
        return self.state if self.usable is None else self.state[self.usable]
