"""An episode tick by tick: how those that look alike go on, and how far that falls in several ways."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.nearest import Library, Neighbours
from trace_memory_ros.moments.occurrences import GAP_MS, LEAST_MS, Stretch, stretches
from trace_memory_ros.moments.recorded import Floats, Recorded
from trace_memory_ros.moments.splits import mixed, rotated, split
from trace_memory_ros.observation.periods import ticks_in

LEAST_MIXED = 0.25
"""Where all of a group look more alike than the others, the present tells the groups apart."""


class Scan(NamedTuple):
    """Of each of T ticks: the nearest presents, how far their ways on part `(T,)`, in which directions `(T, 2, k)`,
    and the middle of the ways that part `(T, k)`."""

    nearest: Neighbours
    scores: Floats
    towards: Floats
    middle: Floats

    def stretches(self, index: int, threshold: float, episode: Recorded) -> list[Stretch]:
        """Where the score is above `threshold`."""
        gap, least = (ticks_in(ms, episode.period_ms) for ms in (GAP_MS, LEAST_MS))
        return stretches(index, self.scores, self.towards, threshold, gap, least)


def scan(
    library: Library,
    ways: Sequence[Floats],
    presents: Floats,
    known: NDArray[np.bool_],
    left_out: int | None,
) -> Scan:
    """Compare presents `(T, d)` with those of all episodes but `left_out`."""
    nearest = library.nearest(presents, left_out)
    found = split(sets_of(ways, nearest))
    scores = np.where(known & (mixed(found.labels) >= LEAST_MIXED), found.score, np.float32(0.0))
    return Scan(nearest, scores, found.towards, found.middle)


def sets_of(ways: Sequence[Floats], nearest: Neighbours) -> Floats:
    """The ways on `(T, K, k)` of the nearest presents."""
    starts = np.cumsum([0, *(len(part) for part in ways)])
    return np.asarray(np.concatenate(ways)[starts[nearest.episodes] + nearest.ticks])


def chance(sets: Floats, rotations: int, rng: np.random.Generator) -> list[float]:
    """The greatest scores that sets `(T, K, k)` would have without groups, for each of so many rotations."""
    return [float(split(rotated(sets, rng)).score.max(initial=0.0)) for _ in range(rotations)]
