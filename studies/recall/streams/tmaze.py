"""Passive T-maze: a goal shown at the start has to be chosen at the end of a corridor in which nothing happens.

Source: Ni et al., "When do transformers shine in RL?", 2023; ELMUR, section 5.1. Only the memory is asked for, so the
walk itself is given: every step leads one place further, and the last one shows the junction.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from studies.recall.streams.stream import SymbolStream

CORRIDOR, GOAL_A, GOAL_B, JUNCTION = range(4)
OBSERVATIONS: NDArray[np.float32] = np.array([[0, 0], [1, 0], [-1, 0], [0, 1]], dtype=np.float32)
"""What each symbol looks like: the goal (+1, -1), and whether this is the junction. In the corridor nothing is seen."""


@dataclass(frozen=True)
class TMaze:
    """Corridors of `shortest` to `longest` steps, the first showing the goal and the last the junction.

    A shorter one than `longest` is followed by corridor steps, of which nothing is asked.
    """

    longest: int = 30
    shortest: int = 2

    kinds: ClassVar[tuple[str, ...]] = ("corridor", "goal A", "goal B", "junction")
    fields: ClassVar[tuple[int, ...]] = (4,)
    classes: ClassVar[int] = 2

    def __post_init__(self) -> None:
        if not 2 <= self.shortest <= self.longest:
            raise ValueError(f"{self}: need 2 <= shortest <= longest, a step for the goal and one for the junction")

    def sample(self, rng: np.random.Generator, batch: int) -> SymbolStream:
        """`batch` fresh corridors; the answer is 0 for goal A, 1 for goal B."""
        goal, length = rng.integers(0, 2, batch), rng.integers(self.shortest, self.longest + 1, batch)
        kind = np.full((batch, self.longest), CORRIDOR)
        kind[:, 0] = np.where(goal == 0, GOAL_A, GOAL_B)
        kind[np.arange(batch), length - 1] = JUNCTION
        asked = kind == JUNCTION
        return SymbolStream(kind[..., None], np.where(asked, goal[:, None], 0), asked, kind)
