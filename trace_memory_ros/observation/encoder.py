"""The memory's eyes: thumbnails and state to one content feature e_t = [v_t, p_t] (TRACE A.9)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trace_memory_ros.files.strict import ConfigError, check_keys, require_int


@dataclass(frozen=True)
class EncoderConfig:
    """Sizes of a `ContentEncoder`. cameras: C. visual_width, state_width: widths of v_t and p_t; d_e is their sum."""

    cameras: int
    thumbnail_px: int = 16
    state_dim: int = 17
    visual_width: int = 64
    state_width: int = 32
    channels: int = 16

    def __post_init__(self) -> None:
        for field in fields(self):
            require_int(getattr(self, field.name), f"EncoderConfig.{field.name}", 1)
        if self.thumbnail_px % 4:
            raise ConfigError(
                f"EncoderConfig.thumbnail_px = {self.thumbnail_px}: two stride-2 convolutions need a multiple of 4"
            )

    @property
    def content_dim(self) -> int:
        """d_e."""
        return self.visual_width + self.state_width

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping; `from_dict` inverts it."""
        return asdict(self)

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], where: str = "encoder") -> EncoderConfig:
        """Read a mapping strictly. Raises ConfigError."""
        names = [f.name for f in fields(cls)]
        return cls(**check_keys(data, names, ("cameras",), where))


class ContentEncoder(nn.Module):
    """e_t = [v_t, p_t]: v_t = mean over cameras of rho(f_vis(o_c) + embedding_c), p_t = phi_s(state) (TRACE A.9).

    f_vis is shared by the cameras; the embedding tells them apart, so that left and right wrist don't average out.
    """

    def __init__(self, config: EncoderConfig) -> None:
        super().__init__()
        self.config = config
        wide = 2 * config.channels
        side = config.thumbnail_px // 4
        self.vision = nn.Sequential(
            nn.Conv2d(3, config.channels, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Conv2d(config.channels, wide, 3, stride=2, padding=1),
            nn.ReLU(),
            nn.Flatten(),
            nn.Linear(wide * side * side, config.visual_width),
        )
        self.camera = nn.Parameter(0.1 * torch.randn(config.cameras, config.visual_width))
        width = config.state_width
        self.proprioception = nn.Sequential(nn.Linear(config.state_dim, width), nn.ReLU(), nn.Linear(width, width))
        self.rho = nn.GELU()

    def forward(self, thumbnails: Tensor, state: Tensor) -> Tensor:
        """`(..., C, 3, px, px)` float in 0..1 and standardised `(..., d_s)` to `(..., d_e)`.

        Raises ValueError naming the given and the configured shape.
        """
        self._check(thumbnails, state)
        lead = state.shape[:-1]
        features = self.vision(thumbnails.reshape(-1, *thumbnails.shape[-3:]))
        features = features.reshape(*lead, self.config.cameras, self.config.visual_width)
        visual = self.rho(features + self.camera).mean(dim=-2)
        return torch.cat([visual, self.proprioception(state)], dim=-1)

    def _check(self, thumbnails: Tensor, state: Tensor) -> None:
        lead = tuple(state.shape[:-1])
        px = self.config.thumbnail_px
        want = (*lead, self.config.cameras, 3, px, px)
        if tuple(thumbnails.shape) != want or state.shape[-1] != self.config.state_dim:
            raise ValueError(
                f"encoder input: thumbnails {tuple(thumbnails.shape)} and state {tuple(state.shape)}, configured for "
                f"{want} and (..., {self.config.state_dim}); prepare them with this checkpoint's observation config"
            )


def pixels_of(images: NDArray[np.uint8]) -> Tensor:
    """Images `(..., P, P, 3)` uint8 as the networks take them: `(..., 3, P, P)` float32 in 0..1."""
    return torch.from_numpy(images).movedim(-1, -3).float().div_(255.0)
