"""Delays longer than any demonstrated: a stretch of an episode that shows nothing is gone through again and again."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MOST_WRITES = 1_000
"""Before a decision, however long the delay: a scan keeps the state after each write."""


class Delay(NamedTuple):
    """How often the memory is written before the first decision.

    factor: times as often as demonstrated. begin, end: of the longest stretch that shows nothing, in shares of its
    writes, the part that is gone through again.
    """

    factor: float = 1.0
    begin: float = 0.0
    end: float = 1.0


def draw_delays(rng: np.random.Generator, most: float, count: int) -> list[Delay]:
    """Up to `most` times the demonstrated delay, by even odds of its logarithm; nothing is drawn where that is 1."""
    if most <= 1.0:
        return [Delay()] * count
    factors = np.exp(rng.uniform(0.0, np.log(most), count))
    parts = np.sort(rng.uniform(size=(count, 2)), axis=1)
    return [Delay(float(factor), float(begin), float(end)) for factor, (begin, end) in zip(factors, parts, strict=True)]


def lengthened(
    writes: NDArray[np.int64], shown: NDArray[np.bool_] | None, decision: int | None, delay: Delay
) -> NDArray[np.int64]:
    """Indices of `writes` in the order in which the memory takes them; those that are gone through again recur.

    writes: ticks. shown `(T,)`: ticks that must happen once; where it is None the first write must. decision: the
    first, None where there is none. Each write comes once where no two in a row show nothing before a decision.
    """
    once = np.arange(len(writes))
    before = 0 if decision is None else int(np.searchsorted(writes, decision))
    still = once[:before] > 0 if shown is None else ~shown[writes[:before]]
    begin, end = _longest(still)
    if delay.factor <= 1.0 or end - begin < 2:
        return once
    first = min(begin + int(delay.begin * (end - begin)), end - 1)
    last = max(first + 1, begin + round(delay.end * (end - begin)))
    more = max(0.0, min(delay.factor * before, MOST_WRITES) - before)
    times = 1 + round(more / (last - first))
    return np.concatenate([once[:first], np.tile(once[first:last], times), once[last:]])


class Travelled(NamedTuple):
    """What is gone through when writes come in an order.

    ticks `(N,)`: of the episode, one after another; going back is one step. steps: place in it of each write; reads: of
    each read.
    """

    ticks: NDArray[np.int64]
    steps: NDArray[np.int64]
    reads: NDArray[np.int64]


def travelled(
    writes: NDArray[np.int64], order: NDArray[np.int64], reads: NDArray[np.int64], last: NDArray[np.int64]
) -> Travelled:
    """The way of an episode whose `writes` come in `order`, with reads after the steps `last` (-1: before any)."""
    back = np.diff(order, prepend=-1) != 1
    ends = writes[order]
    begins = np.where(back, ends, np.concatenate([[0], ends[:-1] + 1]))
    legs = [np.arange(begin, end + 1) for begin, end in zip(begins, ends, strict=True)]
    tail = np.arange(ends[-1] + 1, reads.max() + 1)
    steps = np.cumsum([len(leg) for leg in legs]) - 1
    after = np.maximum(last, 0)
    return Travelled(
        np.concatenate([*legs, tail]), steps, np.where(last < 0, reads, steps[after] + reads - ends[after])
    )


def _longest(flags: NDArray[np.bool_]) -> tuple[int, int]:
    """First index, and the one after the last, of the longest run that is True; equal where there is none."""
    edges = np.flatnonzero(np.diff(flags.astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
    if not len(edges):
        return 0, 0
    begin, end = edges[np.argmax(edges[:, 1] - edges[:, 0])].tolist()
    return begin, end
