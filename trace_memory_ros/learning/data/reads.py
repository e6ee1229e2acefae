"""The ticks at which a batch reads the memory: more of those at which only the past tells what to do."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.learning.data.dataset import START_MS, Episode
from trace_memory_ros.learning.recipe import ReadShares
from trace_memory_ros.observation.periods import ticks_in

BEFORE_MS = 200
"""How long before a decision reads count as near it."""


def sample_reads(
    rng: np.random.Generator, episode: Episode, count: int, shares: ReadShares, reach: int
) -> NDArray[np.int64]:
    """`count` read ticks: near a decision (to `reach` ticks after it), where twins part, at pauses, at the start, and
    anywhere.

    The first four kinds are rare, and at these ticks the joints alone do not determine the action.
    """
    anywhere = episode.readable
    before = ticks_in(BEFORE_MS, episode.period_ms)
    near = [np.arange(tick - before, tick + reach) for tick in episode.demo.decision_ticks]
    wanted = (
        (shares.near_branch, np.concatenate(near) if near else anywhere[:0]),
        (shares.apart, episode.apart),
        (shares.pauses, episode.pauses),
        (shares.start, np.arange(ticks_in(START_MS, episode.period_ms))),
    )
    groups = [(share, ticks[np.isin(ticks, anywhere)]) for share, ticks in wanted]
    rest = 1.0 - sum(share for share, ticks in groups if ticks.size)
    kinds = [(share, ticks) for share, ticks in groups if ticks.size] + [(rest, anywhere)]
    counts = rng.multinomial(count, [share for share, _ in kinds])
    return np.concatenate([rng.choice(ticks, n) for n, (_, ticks) in zip(counts, kinds, strict=True)])
