"""How many ways there are to go on from a kind of moment, and which one was taken."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.recorded import Floats
from trace_memory_ros.moments.splits import least_group, rotated, split

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


def ways_of(found: Floats, least_score: float, rotations: int, rng: np.random.Generator) -> Ways | None:
    """The groups that ways on `(N, k)` fall in; None where they are one.

    A group is parted again as long as its halves lie further apart than those of random sets without groups.
    """
    whole = [np.arange(len(found))]
    done: list[NDArray[np.intp]] = []
    least = least_group(len(found))
    while whole and len(whole) + len(done) < MOST_WAYS:
        members = whole.pop()
        if len(members) < max(2 * least, 4):
            done.append(members)
            continue
        best = split(found[members][None])
        chance = max(float(split(rotated(found[members][None], rng)).score[0]) for _ in range(rotations))
        second = best.second[0]
        if best.score[0] > max(chance, least_score) and min(second.sum(), (~second).sum()) >= least:
            whole += [members[second], members[~second]]
        else:
            done.append(members)
    groups = sorted(done + whole, key=len, reverse=True)
    if len(groups) < 2:
        return None
    return Ways(np.stack([np.median(found[members], axis=0) for members in groups]).astype(np.float32))
