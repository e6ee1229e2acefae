"""What convolutional backbones with pretrained weights have in common: normalisation, a stride, a grid of tokens."""

from __future__ import annotations

from typing import ClassVar, NamedTuple

import torch
from torch import Tensor

from trace_memory_ros.files.strict import ConfigError, check_keys
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig

STRIDES = (8, 16, 32)


class Normalisation(NamedTuple):
    """Mean and spread of red, green and blue in 0..1 that a network was trained with."""

    mean: tuple[float, float, float]
    std: tuple[float, float, float]


IMAGENET = Normalisation((0.485, 0.456, 0.406), (0.229, 0.224, 0.225))


class PretrainedBackbone(VisualBackbone):
    """A convolutional network up to a stride: pixels between two tokens, option `stride`, of which a smaller one sees
    smaller things and costs less.

    Raises ConfigError for another stride, and for images smaller than it.
    """

    normalisation: ClassVar[Normalisation] = IMAGENET
    mean: Tensor
    std: Tensor

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__(config, px)
        options = check_keys(config.options, ("stride",), (), f"options of backbone {config.name}")
        self.stride = options.get("stride", 32)
        if self.stride not in STRIDES:
            raise ConfigError(
                f"backbone {config.name}: stride = {self.stride!r}: must be one of {', '.join(map(str, STRIDES))}"
            )
        if px < self.stride:
            raise ConfigError(
                f"backbone {config.name} has one token per {self.stride} pixels and cannot see images of {px}: give it "
                "larger ones (eyes.px of the memory, policy.options.image_px of the policy), or take backbone small"
            )
        for name, values in zip(("mean", "std"), self.normalisation, strict=True):
            self.register_buffer(name, torch.tensor(values).reshape(3, 1, 1), persistent=False)

    def token_grid(self, px: int) -> tuple[int, int]:
        side = -(-px // self.stride)
        return side, side

    def normalised(self, images: Tensor) -> Tensor:
        """Images in 0..1 as the network was trained to see them."""
        return (images - self.mean) / self.std


def as_features(grid: Tensor) -> Features:
    """A grid `(N, d, rows, columns)` as tokens, and their mean."""
    return Features(grid.flatten(2).transpose(1, 2), grid.mean(dim=(2, 3)))
