"""Prediction of the pictures to come, from what is remembered."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from trace_memory_ros.learning.data.batches import FUTURE_CHUNKS, BatchBuilder

EPISODES, TICKS = 64, 8
"""Of the training split, that the mean picture is taken of."""
LEAST = 0.01
"""Spread of pixels in 0..1 at least."""


class FuturePictures(nn.Module):
    """A linear map from what is known at a read to small pictures of what every camera will see later.

    When the choices are shown, neither the cue nor the choices alone say where to go: no gradient leads to the cue
    before choices are understood. What is seen once the robot is there holds the cue itself.

    mean `(F,)`: of each pixel. spread: of all pixels around it, so that what changes much counts much.
    """

    mean: Tensor
    spread: Tensor

    def __init__(self, known: int, mean: Tensor, spread: Tensor) -> None:
        super().__init__()
        self.map = nn.Linear(known, len(FUTURE_CHUNKS) * len(mean))
        self.register_buffer("mean", mean)
        self.register_buffer("spread", spread)

    @classmethod
    def fit(cls, training: BatchBuilder, known: int, weight: float) -> FuturePictures:
        """By pictures of the training split. Raises ValueError, naming the recipe's `weight`, without any camera."""
        if not training.data.episodes[0].thumbnails:
            raise ValueError(f"recipe.future_weight = {weight} asks for pictures, and there is no camera: set it to 0")
        chosen = training.data.episodes[:EPISODES]
        seen = [
            training.small_pictures(episode, np.linspace(0, episode.demo.ticks - 1, TICKS).astype(np.int64))
            for episode in chosen
        ]
        pixels = torch.from_numpy(np.concatenate(seen)).flatten(1).float() / 255.0
        mean = pixels.mean(dim=0)
        return cls(known, mean, (pixels - mean).pow(2).mean().sqrt().clamp_min(LEAST))

    def loss(self, known: Tensor, pictures: Tensor) -> Tensor:
        """Mean squared error, in spreads, of what is known `(N, w)` for pictures in 0..1 `(N, K, ...)`."""
        target = (pictures.flatten(2) - self.mean) / self.spread
        return (self.map(known).view_as(target) - target).pow(2).mean()
