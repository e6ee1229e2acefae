"""One optimiser step on one random batch; shared by both training phases."""

from __future__ import annotations

import math
from typing import Protocol

import numpy as np
import torch
from torch import nn

from trace_memory_ros.learning.agent import Losses
from trace_memory_ros.learning.batches import BatchBuilder, EpisodeBatch, augment, sample_reads
from trace_memory_ros.learning.features.cache import draw_views
from trace_memory_ros.learning.recipe import ReadShares, Recipe


class Learner(Protocol):
    """A module that turns a batch into named, unweighted losses."""

    def losses(self, batch: EpisodeBatch) -> Losses: ...


def draw_batch(
    builder: BatchBuilder,
    recipe: Recipe,
    rng: np.random.Generator,
    clock_factor: float,
    pairs: int,
    reads: int,
    shares: ReadShares,
    pictures: bool = True,
) -> EpisodeBatch:
    """`pairs` random counterfactual pairs, or as many episodes without twins, augmented.

    They are written at about `clock_factor` times the final update interval.
    """
    indices = builder.data.draw(rng, pairs)
    spread = math.log1p(recipe.augmentation.clock_jitter)
    factors = list(clock_factor * np.exp(rng.uniform(-spread, spread, len(indices))))
    ticks = [sample_reads(rng, builder.data.episodes[i], reads, shares, recipe.branch_reach) for i in indices]
    views = draw_views(rng, builder.features.views, len(indices)) if builder.features is not None else ()
    noise = torch.Generator().manual_seed(int(rng.integers(2**31)))
    return augment(builder.build(indices, factors, ticks, pictures, views), noise, recipe.augmentation)


def descend(
    learner: Learner, optimiser: torch.optim.Optimizer, batch: EpisodeBatch, recipe: Recipe, step: int
) -> dict[str, float]:
    """One step down the weighted sum of `learner`'s losses; returns them.

    Raises FloatingPointError, before anything is changed, when the sum is not finite.
    """
    losses = learner.losses(batch)
    total = torch.stack([recipe.weight_of(name) * value for name, value in losses.items()]).sum()
    if not torch.isfinite(total):
        parts = {name: float(value.detach()) for name, value in losses.items()}
        raise FloatingPointError(
            f"the loss is {float(total.detach())} at step {step} ({parts}): lower the learning rate or look for NaN in "
            "the demonstrations"
        )
    optimiser.zero_grad(set_to_none=True)
    total.backward()
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    nn.utils.clip_grad_norm_(parameters, recipe.gradient_clip)
    optimiser.step()
    return {name: float(value.detach()) for name, value in losses.items()}
