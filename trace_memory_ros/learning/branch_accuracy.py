"""Does a model, given its memory, choose the branch its own episode calls for?"""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from trace_memory_ros.learning.batches import BatchBuilder
from trace_memory_ros.learning.unpaired import ChunkModel, label_accuracy


def branch_accuracy(
    model: ChunkModel, builder: BatchBuilder, clock_factor: float = 1.0, pairs: int = 1_000
) -> float | None:
    """Share of right decisions in the first `pairs` pairs, see `decisions_right`; 0.5 is chance.

    Without twins: see `unpaired.label_accuracy`, over as many episodes; None where no decision can be judged.
    """
    if builder.references is not None:
        return label_accuracy(model, builder, builder.references, clock_factor, 2 * pairs)
    counted = range(min(pairs, builder.data.pairs))
    return float(torch.cat([decisions_right(model, builder, pair, clock_factor).flatten() for pair in counted]).mean())


@torch.no_grad()
def decisions_right(model: ChunkModel, builder: BatchBuilder, pair: int, clock_factor: float = 1.0) -> Tensor:
    """Which decisions of a pair's two episodes are right, `(2, decisions)` of 0 and 1.

    Right is a chunk that at the decision tick is nearer to the own expert's than to the counterfactual's at the same
    decision, by the mean absolute error in normalised action units. Two predictions that are alike give one each.
    """
    indices = [2 * pair, 2 * pair + 1]
    reads = [np.array(builder.data.episodes[i].demo.decision_ticks) for i in indices]
    batch = builder.build(indices, [clock_factor] * 2, reads)
    predicted, target = model(batch), builder.statistics.normalise_actions(batch.actions)
    return nearer(predicted, target, target.flip(0), batch.valid & batch.valid.flip(0)).float()


def nearer(predicted: Tensor, own: Tensor, other: Tensor, valid: Tensor | None = None) -> Tensor:
    """Whether chunks `(..., H, A)` are nearer to `own` than to `other` by summed absolute error, `(...)` bool.

    valid: steps `(..., H)` that count; all where None.
    """
    counted = torch.ones_like(predicted[..., :1]) if valid is None else valid[..., None]
    to_own, to_other = (((predicted - chunk).abs() * counted).sum(dim=(-2, -1)) for chunk in (own, other))
    return to_own < to_other
