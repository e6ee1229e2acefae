"""A conditional U-Net over time: what denoises a chunk of actions (Diffusion Policy, its CNN backbone)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

GROUPS = 8


class TimeEmbedding(nn.Module):
    """Diffusion step `(B,)` -> sines and cosines of it, through a small MLP `(B, width)`."""

    frequencies: Tensor

    def __init__(self, width: int) -> None:
        super().__init__()
        half = width // 2
        steps = torch.exp(torch.arange(half) * (-math.log(10_000.0) / (half - 1)))
        self.register_buffer("frequencies", steps, persistent=False)
        self.layers = nn.Sequential(nn.Linear(width, 2 * width), nn.SiLU(), nn.Linear(2 * width, width))

    def forward(self, step: Tensor) -> Tensor:
        angle = step[:, None].float() * self.frequencies
        return self.layers(torch.cat([angle.sin(), angle.cos()], dim=-1))


class ConditionedBlock(nn.Module):
    """Two convolutions over time, scaled and shifted by the condition between (FiLM): `(B, C, T)` -> `(B, C', T)`."""

    def __init__(self, channels_in: int, channels_out: int, condition: int, kernel: int) -> None:
        super().__init__()
        self.first = _convolve(channels_in, channels_out, kernel)
        self.film = nn.Linear(condition, 2 * channels_out)
        self.second = _convolve(channels_out, channels_out, kernel)
        self.past = nn.Conv1d(channels_in, channels_out, 1) if channels_in != channels_out else nn.Identity()

    def forward(self, x: Tensor, condition: Tensor) -> Tensor:
        scale, shift = self.film(condition)[..., None].chunk(2, dim=1)
        return self.second(self.first(x) * (1.0 + scale) + shift) + self.past(x)


def _convolve(channels_in: int, channels_out: int, kernel: int) -> nn.Sequential:
    return nn.Sequential(
        nn.Conv1d(channels_in, channels_out, kernel, padding=kernel // 2),
        nn.GroupNorm(GROUPS, channels_out),
        nn.SiLU(),
    )


class ActionUNet(nn.Module):
    """Noisy chunk `(B, H, A)`, diffusion step `(B,)` and global condition `(B, c)` -> what the objective asks for.

    H must be a multiple of `2 ** (len(channels) - 1)`.
    """

    def __init__(self, actions: int, condition: int, channels: tuple[int, ...], kernel: int, time_width: int) -> None:
        super().__init__()
        self.time = TimeEmbedding(time_width)
        width = condition + time_width
        sizes = (actions, *channels)
        self.down = nn.ModuleList(
            ConditionedBlock(a, b, width, kernel) for a, b in zip(sizes[:-1], sizes[1:], strict=True)
        )
        self.shrink = nn.ModuleList(nn.Conv1d(c, c, 3, stride=2, padding=1) for c in channels[:-1])
        self.middle = ConditionedBlock(channels[-1], channels[-1], width, kernel)
        upward = list(zip(channels[:0:-1], channels[-2::-1], strict=True))
        self.grow = nn.ModuleList(nn.ConvTranspose1d(a, b, 4, stride=2, padding=1) for a, b in upward)
        self.up = nn.ModuleList(ConditionedBlock(2 * b, b, width, kernel) for _, b in upward)
        self.head = nn.Conv1d(channels[0], actions, 1)

    def forward(self, noisy: Tensor, step: Tensor, condition: Tensor) -> Tensor:
        condition = torch.cat([self.time(step), condition], dim=-1)
        x = noisy.transpose(1, 2)
        kept: list[Tensor] = []
        for level, block in enumerate(self.down):
            x = block(x, condition)
            if level < len(self.shrink):
                kept.append(x)
                x = self.shrink[level](x)
        x = self.middle(x, condition)
        for grow, block in zip(self.grow, self.up, strict=True):
            x = block(torch.cat([grow(x), kept.pop()], dim=1), condition)
        return self.head(x).transpose(1, 2)
