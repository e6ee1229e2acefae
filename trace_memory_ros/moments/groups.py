"""How many ways there are to go on from a kind of moment, and which one was taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.recorded import Floats
from trace_memory_ros.moments.splits import STRAY, least_group, rotated, split

UNCLEAR = -1
CLEARLY = 0.5
"""A way is told where its centre is nearer than this share of the distance to the next."""
MOST_WAYS = 8


@dataclass(frozen=True)
class Ways:
    """Centres `(G, k)` of the ways on, in order of how often they were taken when they were found."""

    centres: Floats

    def __len__(self) -> int:
        return len(self.centres)

    def of(self, ways: Floats) -> NDArray[np.intp]:
        """Which way each of `(N, k)` is, `UNCLEAR` where it lies between."""
        apart = np.sqrt(((ways[:, None] - self.centres) ** 2).sum(axis=-1))
        nearest = np.sort(apart, axis=1)
        return np.where(nearest[:, 0] < CLEARLY * nearest[:, 1], apart.argmin(axis=1), UNCLEAR)

    def matched(self, other: Ways) -> list[int] | None:
        """Which of these each of another's ways is; None unless each is clearly one of them."""
        own = self.of(other.centres).tolist()
        same = len(self) == len(other) and sorted(own) == list(range(len(self)))
        return own if same else None


def ways_of(found: Floats, least_score: float, rotations: int, rng: np.random.Generator) -> Ways | None:
    """The groups that ways on `(N, k)` fall in; None where they lie no further apart than those of random sets."""
    if len(found) < 2 * least_group(len(found)):
        return None
    best = split(found[None], MOST_WAYS)
    chance = max(float(split(rotated(found[None], rng), MOST_WAYS).score[0]) for _ in range(rotations))
    if best.score[0] <= max(chance, least_score):
        return None
    numbers, counts = np.unique(best.labels[0][best.labels[0] != STRAY], return_counts=True)
    order = numbers[np.argsort(-counts, kind="stable")]
    return Ways(np.stack([np.median(found[best.labels[0] == number], axis=0) for number in order]).astype(np.float32))
