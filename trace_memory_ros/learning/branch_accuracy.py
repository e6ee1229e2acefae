"""Does a model, given its memory, choose the branch its own episode calls for?"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from trace_memory_ros.learning.batches import BatchBuilder, EpisodeBatch


class ChunkModel(Protocol):
    """Predicts normalised action chunks `(B, R, H, A)` at a batch's reads."""

    def __call__(self, batch: EpisodeBatch) -> Tensor: ...


@torch.no_grad()
def branch_accuracy(model: ChunkModel, builder: BatchBuilder, clock_factor: float = 1.0, pairs: int = 1_000) -> float:
    """Share of episodes whose chunk at the branch tick is nearer to their own expert's than to their counterfactual's.

    Distance is the mean absolute error over the chunk in normalised action units. 0.5 is chance; a pair whose two
    predictions are alike gives exactly that. Looks at the first `pairs` pairs.
    """
    correct: list[bool] = []
    for pair in range(min(pairs, builder.data.pairs)):
        indices = [2 * pair, 2 * pair + 1]
        reads = [np.array([builder.data.episodes[i].demo.branch_tick]) for i in indices]
        batch = builder.build(indices, [clock_factor] * 2, reads)
        predicted, target = model(batch), builder.statistics.normalise_actions(batch.actions)
        both = (batch.valid & batch.valid.flip(0))[..., None]
        own = ((predicted - target).abs() * both).sum(dim=(1, 2, 3))
        other = ((predicted - target.flip(0)).abs() * both).sum(dim=(1, 2, 3))
        correct += (own < other).tolist()
    return float(np.mean(correct))
