"""Training and scoring of one MQAR model."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import torch
from torch.nn import functional

from studies.recall.streams import mqar
from studies.recall.tasks.mqar_models import Backbone, Mixer, MqarModel
from trace_memory_ros.learning.engine.optimise import clip_and_step

SIZES = (8, 16, 24, 32, 48)
"""Pairs per sequence."""
EVALUATION_SEED, VALIDATION_SEED = 10_000, 20_000


@dataclass(frozen=True)
class MqarRecipe:
    """AdamW with warm-up over a tenth of the steps and cosine decay; rate, batch and steps are not the paper's.

    pairs: sizes of sequence; every step draws one of them, so that one model answers for all.
    """

    pairs: tuple[int, ...] = SIZES
    steps: int = 500
    batch: int = 32
    learning_rate: float = 1e-2
    weight_decay: float = 1e-2
    gradient_clip: float = 1.0
    evaluation_batches: int = 15
    evaluation_batch: int = 64

    def rate(self, step: int) -> float:
        """Learning rate of a step, as a share of the greatest."""
        return min((step + 1) / (0.1 * self.steps), 0.5 * (1 + math.cos(math.pi * step / self.steps)))


def train(mixer: type[Mixer], backbone: Backbone, recipe: MqarRecipe, seed: int) -> MqarModel:
    """A trained model; every step sees fresh sequences."""
    torch.manual_seed(seed)
    rng = np.random.default_rng(seed)
    model = MqarModel(mixer, backbone)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, recipe.rate)
    for _ in range(recipe.steps):
        pairs = int(rng.choice(recipe.pairs))
        sample = mqar.draw(rng, recipe.batch, pairs)
        logits = model(torch.from_numpy(sample.tokens), pairs)
        loss = functional.cross_entropy(logits.flatten(0, 1), torch.from_numpy(sample.answers).flatten())
        optimiser.zero_grad()
        loss.backward()
        clip_and_step(optimiser, recipe.gradient_clip)
        schedule.step()
    return model


@torch.no_grad()
def accuracy(model: MqarModel, recipe: MqarRecipe, seed: int = EVALUATION_SEED) -> dict[int, float]:
    """Share of queries answered exactly, by number of pairs, on the same fresh sequences for every model."""
    model.eval()
    shares = {}
    for pairs in recipe.pairs:
        rng = np.random.default_rng(seed + pairs)
        right = []
        for _ in range(recipe.evaluation_batches):
            sample = mqar.draw(rng, recipe.evaluation_batch, pairs)
            answers = model(torch.from_numpy(sample.tokens), pairs).argmax(dim=-1).numpy()
            right.append(float((answers == sample.answers).mean()))
        shares[pairs] = float(np.mean(right))
    return shares
