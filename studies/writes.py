"""How often a memory is written in recorded episodes, which its gate may refuse."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import torch

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.data.batches import NO_PICTURES, BatchBuilder


@torch.no_grad()
def writes_per_s(agent: Agent, builder: BatchBuilder, groups: Iterable[Sequence[int]]) -> float:
    """Writes a second of episodes by index, a group of them at a time."""
    writes, seconds = 0, 0.0
    for indices in groups:
        episodes = [builder.data.episodes[i] for i in indices]
        reads = [episode.readable[-1:] for episode in episodes]
        batch = builder.build(list(indices), [1.0] * len(indices), reads, NO_PICTURES)
        _, _, records = agent.remember(batch)
        writes += int(records.wrote[batch.steps].sum())
        seconds += sum(np.ptp(episode.demo.stamps_ns) for episode in episodes) / 1e9
    return writes / seconds
