"""The image trunks that the policy families of this package share: tokens of all places, or a vector per camera."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from trace_memory_ros.policies.places import Places
from trace_memory_ros.vision import registry
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.encoder import FEW, FeatureNorm, read_by
from trace_memory_ros.vision.salience import Salience

MOST_SIDE = 8
"""Of what is left of a fine grid for a policy that attends to all of it."""


class ImageTokens(nn.Module):
    """A backbone shared by the cameras: images `(B, C, 3, P, P)` or their features to tokens `(B, C * K, model)`.

    Each carries a learned embedding of its camera and place. All but `small`, which is as wide as the policy, are
    followed by a norm and a linear map; those of few numbers, of which there are many, by stride-2 convolutions until
    at most 8 by 8 are left, but where they say themselves where they are. grid: rows and columns of the backbone's
    tokens.
    """

    def __init__(self, cameras: int, image_px: int, model: int, backbone: BackboneConfig) -> None:
        super().__init__()
        self.stages = registry.build(trunk_config(backbone, model), image_px)
        self.cameras, self.grid = cameras, self.stages.token_grid(image_px)
        self.map: nn.Module = nn.Identity()
        self.salience: Salience | None = None
        places = self.grid[0] * self.grid[1]
        if self.stages.placed:
            self.map = nn.Sequential(FeatureNorm(self.stages.width), read_by(self.stages.width, model))
        elif self.stages.width < FEW:
            self.salience = Salience(cameras, places, self.stages.width)
            coarser = Coarser(self.grid, self.stages.width, model)
            self.map, places = nn.Sequential(FeatureNorm(self.stages.width), coarser), coarser.places
        elif not backbone.is_small:
            self.map = _narrowed(self.stages, model)
        self.count = cameras * places
        self.place = nn.Parameter(torch.randn(cameras, places, model) * 0.02)

    def forward(self, images: Tensor | Features) -> Tensor:
        features = images if isinstance(images, Features) else self.stages.features(images)
        return (self.map(features.tokens) + self.place).flatten(1, 2)

    def places(self, asked: int) -> Places:
        """Where these tokens are like what is asked for `(N, asked)`; of a pretrained backbone."""
        assert isinstance(self.map, nn.Sequential) and isinstance(self.map[0], FeatureNorm)
        return Places(self.map[0], asked, self.cameras, self.grid, self.salience, self.stages.placed)

    def calibrate(self, features: Features) -> None:
        """Standardise what another's backbone gives by the pictures given."""
        _calibrate(self.map, features.tokens)
        if self.salience is not None and isinstance(self.map, nn.Sequential):
            self.salience.calibrate(self.map[0](features.tokens))


class Coarser(nn.Module):
    """Tokens of a grid `(..., K, d)` to fewer `(..., K', model)` by stride-2 convolutions; K' is `places`."""

    def __init__(self, grid: tuple[int, int], width: int, model: int) -> None:
        super().__init__()
        self.grid, (rows, columns) = grid, grid
        layers: list[nn.Module] = []
        while max(rows, columns) > MOST_SIDE or not layers:
            layers += [nn.Conv2d(width, model, 3, stride=2, padding=1), nn.GroupNorm(4, model), nn.GELU()]
            rows, columns, width = -(-rows // 2), -(-columns // 2), model
        self.layers = nn.Sequential(*layers)
        self.places = rows * columns

    def forward(self, tokens: Tensor) -> Tensor:
        lead = tokens.shape[:-2]
        maps = tokens.flatten(0, -3).transpose(1, 2).unflatten(-1, self.grid)
        fewer: Tensor = self.layers(maps).flatten(2).transpose(1, 2)
        return fewer.unflatten(0, lead)


class ImageVectors(nn.Module):
    """A backbone shared by the cameras: images `(B, C, 3, P, P)` or their features to a vector each `(B, C, model)`."""

    def __init__(self, cameras: int, image_px: int, model: int, backbone: BackboneConfig) -> None:
        super().__init__()
        self.stages = registry.build(trunk_config(backbone, model), image_px)
        self.map = _narrowed(self.stages, model)
        self.count = cameras

    def forward(self, images: Tensor | Features) -> Tensor:
        features = images if isinstance(images, Features) else self.stages.features(images)
        vectors: Tensor = self.map(features.pooled)
        return vectors

    def calibrate(self, features: Features) -> None:
        """Standardise what another's backbone gives by the pictures given."""
        _calibrate(self.map, features.pooled)


def _narrowed(backbone: VisualBackbone, model: int) -> nn.Module:
    return nn.Sequential(FeatureNorm(backbone.width), nn.Linear(backbone.width, model))


def _calibrate(narrowed: nn.Module, values: Tensor) -> None:
    if isinstance(narrowed, nn.Sequential) and isinstance(narrowed[0], FeatureNorm):
        narrowed[0].calibrate(values)


def trunk_config(backbone: BackboneConfig, model: int) -> BackboneConfig:
    """A policy's backbone with everything that building it needs: `small` is as wide as the policy."""
    if not backbone.is_small:
        return backbone
    return BackboneConfig(backbone.name, options={"layout": "grid", "width": model, **backbone.options})
