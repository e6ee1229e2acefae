"""The image trunk that the policy families of this package share."""

from __future__ import annotations

import torch
from torch import Tensor, nn


class ImageTokens(nn.Module):
    """Shared CNN over cameras: `(B, C, 3, P, P)` in 0..1 -> `(B, C * (P/16)^2, model)`."""

    def __init__(self, cameras: int, image_px: int, model: int) -> None:
        super().__init__()
        stages = [(3, 16, 5), (16, 32, 3), (32, 64, 3), (64, model, 3)]
        layers: list[nn.Module] = []
        for channels_in, channels_out, kernel in stages:
            layers += [
                nn.Conv2d(channels_in, channels_out, kernel, stride=2, padding=kernel // 2),
                nn.GroupNorm(4, channels_out),
                nn.GELU(),
            ]
        self.stages = nn.Sequential(*layers)
        self.place = nn.Parameter(torch.randn(cameras, (image_px // 16) ** 2, model) * 0.02)

    def forward(self, images: Tensor) -> Tensor:
        batch, cameras = images.shape[:2]
        features = self.stages(images.flatten(0, 1) * 2.0 - 1.0)
        tokens = features.flatten(2).transpose(1, 2).reshape(batch, cameras, *self.place.shape[1:])
        return (tokens + self.place).flatten(1, 2)
