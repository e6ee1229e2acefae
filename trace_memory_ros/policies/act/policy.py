"""Action-chunking transformer conditioned on memory tokens (ACT; TRACE table 13, regression row)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import RegressionAdapter
from trace_memory_ros.policies.images import ImageTokens
from trace_memory_ros.policies.module import ChunkConfig, ChunkModule
from trace_memory_ros.vision.base import Features, VisualBackbone

DECAY, DECAY_MS = 0.05, 100
"""How much less a chunk counts in the ensemble that is begun so much later; ACT has 0.01 at ticks of 20 ms."""


@dataclass(frozen=True)
class ActConfig(ChunkConfig):
    """Sizes of the policy. `latent` > 0 adds the CVAE of ACT and its KL term; ensemble_decay: per tick.

    places: tell the policy where in its images that lies which the memory asks for; not with backbone
    `small`.
    """

    heads: int = 4
    feedforward: int = 128
    encoder_layers: int = 2
    decoder_layers: int = 2
    latent: int = 0
    ensemble_decay: float = DECAY
    places: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        leasts = {"heads": 1, "feedforward": 1, "encoder_layers": 1, "decoder_layers": 1, "latent": 0}
        for name, least in leasts.items():
            if getattr(self, name) < least:
                raise ValueError(f"ActConfig.{name} = {getattr(self, name)}: must be at least {least}")
        if self.model % self.heads:
            raise ValueError(f"ActConfig.model = {self.model} is not divisible by heads = {self.heads}")
        if self.places and self.backbone.is_small:
            raise ValueError("ActConfig.places needs features that stay: choose another policy.backbone than small")


def at_period(period_ms: int) -> dict[str, Any]:
    """The options that depend on the tick period."""
    return {"ensemble_decay": DECAY * (period_ms / DECAY_MS)}


class ActPolicy(ChunkModule):
    """Images, standardised state and a memory readout to a chunk of normalised actions `(B, H, A)`."""

    family = "act"
    config: ActConfig
    adapter: RegressionAdapter

    def __init__(self, config: ActConfig) -> None:
        super().__init__(config)
        self.config = config
        actions = len(config.action_names)
        self.image_tokens = ImageTokens(len(config.cameras), config.image_px, config.model, config.backbone)
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
        if config.places:
            asked = config.memory_width + config.memory_address
            self.places = self.image_tokens.places(asked)
            self.place_token = nn.Linear(self.places.width, config.model)

    def forward(
        self,
        images: Tensor | Features,
        state: Tensor,
        memory: tuple[Tensor, Tensor, Tensor],
        latent: Tensor | None = None,
    ) -> Tensor:
        """images `(B, C, 3, P, P)` in 0..1, state `(B, d_s)` raw SI units, memory (tokens, vector, address).

        latent `(B, z)` or None for its prior mean. Returns normalised actions `(B, H, A)`.
        """
        normal = self.normalise_state(state)
        seen = images if isinstance(images, Features) else self.backbone.features(images)
        tokens = [self.image_tokens(seen), self.state_token(normal)[:, None], self.adapter(*memory)]
        if self.places is not None:
            places = self.places(torch.cat(memory[1:], dim=-1), seen.tokens)
            tokens.append(self.place_token(places)[:, None])
        if self.config.latent:
            z = latent if latent is not None else state.new_zeros(len(state), self.config.latent)
            tokens.append(self.latent_token(z)[:, None])
        queries = self.queries.expand(len(state), -1, -1)
        return self.head(self.decoder(queries, self.encoder(torch.cat(tokens, dim=1))))

    def trunk(self) -> nn.Module:
        """What both families see with."""
        return self.image_tokens

    @property
    def backbone(self) -> VisualBackbone:
        return self.image_tokens.stages

    def infer_latent(self, actions: Tensor, state: Tensor) -> tuple[Tensor, Tensor]:
        """A sample of the CVAE posterior `(B, z)` given normalised actions `(B, H, A)`, and its KL to the prior."""
        normal = self.normalise_state(state)
        mean, log_var = self.posterior(torch.cat([actions.flatten(1), normal], dim=-1)).chunk(2, dim=-1)
        kl = 0.5 * (mean.square() + log_var.exp() - 1.0 - log_var).sum(-1).mean()
        return mean + torch.randn_like(mean) * (0.5 * log_var).exp(), kl

    def predict(self, images: Tensor | Features, state: Tensor, readout: Readout) -> Tensor:
        """Normalised chunks `(B, H, A)` with the CVAE latent at its prior mean."""
        return self(images, state, (readout.tokens, readout.vector, readout.address))

    def losses(
        self, images: Tensor | Features, state: Tensor, readout: Readout, target: Tensor, valid: Tensor
    ) -> dict[str, Tensor]:
        """Chunk L1 and, with a latent, its KL (ACT)."""
        memory = (readout.tokens, readout.vector, readout.address)
        if not self.config.latent:
            return {"chunk_l1": chunk_l1(self(images, state, memory), target, valid)}
        latent, kl = self.infer_latent(target, state)
        return {"kl": kl, "chunk_l1": chunk_l1(self(images, state, memory, latent), target, valid)}


def chunk_l1(predicted: Tensor, target: Tensor, valid: Tensor) -> Tensor:
    """Mean absolute error of `(B, H, A)` chunks over the `(B, H)` ticks that exist (the loss of ACT)."""
    weight = valid[..., None].to(predicted.dtype)
    return ((predicted - target).abs() * weight).sum() / (weight.sum() * predicted.shape[-1]).clamp(min=1.0)
