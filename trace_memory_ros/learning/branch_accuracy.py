"""Does the policy, given its memory, choose the branch its own episode calls for?"""

from __future__ import annotations

import numpy as np
import torch

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.batches import BatchBuilder


@torch.no_grad()
def branch_accuracy(agent: Agent, builder: BatchBuilder, clock_factor: float = 1.0, pairs: int | None = None) -> float:
    """Share of episodes whose chunk at the branch tick is nearer to their own expert's than to their counterfactual's.

    Distance is the mean absolute error over the chunk in normalised action units. 0.5 is chance.
    """
    was_training = agent.training
    agent.eval()
    correct = []
    for pair in range(min(pairs or builder.data.pairs, builder.data.pairs)):
        indices = [2 * pair, 2 * pair + 1]
        reads = [np.array([builder.data.episodes[i].demo.branch_tick]) for i in indices]
        batch = builder.build(indices, [clock_factor] * 2, reads)
        predicted = agent(batch)
        target = agent.policy.normalise_actions(batch.actions)
        both = (batch.valid & batch.valid.flip(0))[..., None]
        own = ((predicted - target).abs() * both).sum(dim=(1, 2, 3))
        other = ((predicted - target.flip(0)).abs() * both).sum(dim=(1, 2, 3))
        correct += (own < other).tolist()
    agent.train(was_training)
    return float(np.mean(correct))
