"""Action-chunking transformer conditioned on memory tokens (ACT; TRACE table 13, regression row)."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.policies.adapters import ConditionShape, RegressionAdapter


@dataclass(frozen=True)
class ActConfig:
    """Sizes of the policy. `latent` > 0 adds the CVAE of ACT and its KL term."""

    cameras: tuple[str, ...]
    action_names: tuple[str, ...]
    state: int = 17
    image_px: int = 48
    chunk: int = 20
    model: int = 64
    heads: int = 4
    feedforward: int = 128
    encoder_layers: int = 2
    decoder_layers: int = 2
    latent: int = 0
    ensemble_decay: float = 0.05
    memory_tokens: int = 0
    memory_width: int = 64
    memory_address: int = 0

    def __post_init__(self) -> None:
        object.__setattr__(self, "cameras", tuple(self.cameras))
        object.__setattr__(self, "action_names", tuple(self.action_names))
        if self.model % self.heads:
            raise ValueError(f"ActConfig.model = {self.model} is not divisible by heads = {self.heads}")
        if self.image_px % 16:
            raise ValueError(f"ActConfig.image_px = {self.image_px}: must be a multiple of 16 (four stride-2 stages)")
        for name in ("chunk", "encoder_layers", "decoder_layers", "state"):
            if getattr(self, name) < 1:
                raise ValueError(f"ActConfig.{name} = {getattr(self, name)}: must be at least 1")

    @property
    def condition(self) -> ConditionShape:
        return ConditionShape(self.memory_tokens, self.memory_width, self.memory_address)

    def to_dict(self) -> dict[str, object]:
        return {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}


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


class ActPolicy(nn.Module):
    """Images, standardised state and a memory readout to a chunk of normalised actions `(B, H, A)`."""

    state_mean: Tensor
    state_std: Tensor
    action_mean: Tensor
    action_std: Tensor

    def __init__(self, config: ActConfig) -> None:
        super().__init__()
        self.config = config
        actions = len(config.action_names)
        self.image_tokens = ImageTokens(len(config.cameras), config.image_px, config.model)
        self.state_token = nn.Sequential(
            nn.Linear(config.state, 4 * config.model), nn.GELU(), nn.Linear(4 * config.model, config.model)
        )
        self.adapter = RegressionAdapter(config.condition, config.model, 2 * config.model)
        if config.latent:
            self.posterior = nn.Sequential(
                nn.Linear(config.chunk * actions + config.state, 128), nn.GELU(), nn.Linear(128, 2 * config.latent)
            )
            self.latent_token = nn.Linear(config.latent, config.model)
        layer: dict[str, Any] = dict(dropout=0.0, activation="gelu", batch_first=True, norm_first=True)
        sizes = (config.model, config.heads, config.feedforward)
        self.encoder = nn.TransformerEncoder(
            nn.TransformerEncoderLayer(*sizes, **layer),
            config.encoder_layers,
            nn.LayerNorm(config.model),
            enable_nested_tensor=False,
        )
        self.decoder = nn.TransformerDecoder(
            nn.TransformerDecoderLayer(*sizes, **layer), config.decoder_layers, nn.LayerNorm(config.model)
        )
        self.queries = nn.Parameter(torch.randn(config.chunk, config.model) * 0.2)
        self.head = nn.Linear(config.model, actions)
        for name, size in (("state", config.state), ("action", actions)):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_std", torch.ones(size))

    def forward(
        self, images: Tensor, state: Tensor, memory: tuple[Tensor, Tensor, Tensor], latent: Tensor | None = None
    ) -> Tensor:
        """images `(B, C, 3, P, P)` in 0..1, state `(B, d_s)` raw SI units, memory (tokens, vector, address).

        latent `(B, z)` or None for its prior mean. Returns normalised actions `(B, H, A)`.
        """
        normal = (state - self.state_mean) / self.state_std
        tokens = [self.image_tokens(images), self.state_token(normal)[:, None], self.adapter(*memory)]
        if self.config.latent:
            z = latent if latent is not None else images.new_zeros(images.shape[0], self.config.latent)
            tokens.append(self.latent_token(z)[:, None])
        queries = self.queries.expand(images.shape[0], -1, -1)
        return self.head(self.decoder(queries, self.encoder(torch.cat(tokens, dim=1))))

    def infer_latent(self, actions: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """A sample of the CVAE posterior `(B, z)` given normalised actions `(B, H, A)`, and its KL to the prior."""
        normal = (state - self.state_mean) / self.state_std
        mean, log_var = self.posterior(torch.cat([actions.flatten(1), normal], dim=-1)).chunk(2, dim=-1)
        kl = 0.5 * (mean.square() + log_var.exp() - 1.0 - log_var).sum(-1).mean()
        return mean + torch.randn_like(mean) * (0.5 * log_var).exp(), kl

    def normalise_actions(self, actions: Tensor) -> Tensor:
        return (actions - self.action_mean) / self.action_std

    def denormalise_actions(self, actions: Tensor) -> Tensor:
        return actions * self.action_std + self.action_mean


def chunk_l1(predicted: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Mean absolute error of `(B, H, A)` chunks over the `(B, H)` ticks that exist (the loss of ACT)."""
    weight = valid[..., None].to(predicted.dtype)
    return ((predicted - target).abs() * weight).sum() / (weight.sum() * predicted.shape[-1]).clamp(min=1.0)
