"""How many ticks of its lessons a step of imitation teaches, from their first one on."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

KEPT = 0.9
"""Share of what was known of a tick's loss that is kept beside what a step says of it."""


class Lengths:
    """Of every two steps one teaches whole lessons, and one cuts them: short as often as long, by logarithm.

    A length is a number of ticks from `shortest` to `ticks`, all of them. Paced, it is a share of what is still wrong:
    the lessons are cut where that share of the summed losses lies behind. Ticks at which nothing is decided, or that
    are mastered, count for nothing then, and what comes next to be learned is taught most. (Kumar, Packer and Koller,
    *Self-paced learning for latent variable models*, 2010, leave hard examples out; here it is hard ticks.)
    """

    def __init__(self, ticks: int, shortest: int, paced: bool) -> None:
        self.ticks, self.shortest, self.paced = ticks, min(shortest, ticks), paced
        self.wrong = np.ones(ticks)

    def of_step(self, step: int, rng: np.random.Generator) -> int:
        """How many ticks step 0, 1, .. teaches; odd ones are cut."""
        if step % 2 == 0:
            return self.ticks
        length = math.exp(rng.uniform(math.log(self.shortest), math.log(self.ticks)))
        if not self.paced:
            return round(length)
        behind = np.cumsum(self.wrong)
        return min(int(np.searchsorted(behind, length / self.ticks * behind[-1])) + 1, self.ticks)

    def tell(self, losses: NDArray[np.floating], mask: NDArray[np.bool_]) -> None:
        """Of every decision that a step taught, in the order of its `mask` `(B, T)`."""
        if not self.paced:
            return
        at = mask.nonzero()[1]
        decided = np.bincount(at)
        found = np.flatnonzero(decided)
        newest = np.bincount(at, weights=losses)[found] / decided[found]
        self.wrong[found] = KEPT * self.wrong[found] + (1 - KEPT) * newest
