"""Diffusion over action chunks, conditioned on memory by one added vector (Diffusion Policy; TRACE table 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch
from diffusers.schedulers.scheduling_ddim import DDIMScheduler
from diffusers.schedulers.scheduling_ddpm import DDPMScheduler
from torch import Tensor, nn

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import DiffusionAdapter
from trace_memory_ros.policies.diffusion.unet import GROUPS, ActionUNet
from trace_memory_ros.policies.images import ImageTokens, ImageVectors
from trace_memory_ros.policies.module import ChunkConfig, ChunkModule
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import WEIGHTLESS

PREDICTIONS = ("sample", "epsilon", "v_prediction")
WITHIN = 5.0
"""Standard deviations that a clean chunk which follows from foretold noise is held within. The first step divides by
the share of the clean chunk in pure noise, which is nearly 0: what the network is wrong by would be thousandfold."""
EXECUTE_MS, LEAD_MS = 800, 100
"""How long a chunk is executed, and how long before its end the next one is begun."""


@dataclass(frozen=True)
class DiffusionConfig(ChunkConfig):
    """Sizes and schedule of the policy.

    width: of the global condition. token_channels: what is kept of each image token of backbone `small`; of others the
    pooled features are taken, `model` wide. channels: of the U-Net,
    finest level first. noise_steps: of training; inference_steps: of them that inference takes (DDIM). draws: noises
    per encoded observation and training step, since encoding costs most. execute: ticks of a chunk that are executed
    before the next takes over; lead: ticks before that at which the next one is begun.
    """

    width: int = 96
    token_channels: int = 16
    channels: tuple[int, ...] = (32, 64)
    kernel: int = 5
    time_width: int = 32
    noise_steps: int = 100
    inference_steps: int = 5
    prediction: str = "sample"
    draws: int = 4
    execute: int = 8
    lead: int = 1

    def __post_init__(self) -> None:
        super().__post_init__()
        object.__setattr__(self, "channels", tuple(self.channels))
        for name in ("width", "token_channels", "noise_steps", "inference_steps", "draws", "execute"):
            if getattr(self, name) < 1:
                raise ValueError(f"DiffusionConfig.{name} = {getattr(self, name)}: must be at least 1")
        if self.kernel < 1 or self.kernel % 2 == 0:
            raise ValueError(f"DiffusionConfig.kernel = {self.kernel}: must be odd, so that a chunk keeps its length")
        if self.time_width < 4 or self.time_width % 2:
            raise ValueError(f"DiffusionConfig.time_width = {self.time_width}: must be even and at least 4")
        if not self.channels or any(c < 1 or c % GROUPS for c in self.channels):
            raise ValueError(f"DiffusionConfig.channels = {self.channels}: at least one, each a multiple of {GROUPS}")
        if self.chunk % 2 ** (len(self.channels) - 1):
            raise ValueError(
                f"DiffusionConfig.chunk = {self.chunk} cannot be halved {len(self.channels) - 1} times, as the U-Net "
                f"with channels {self.channels} does: choose a multiple of {2 ** (len(self.channels) - 1)}"
            )
        if self.inference_steps > self.noise_steps:
            raise ValueError(
                f"DiffusionConfig.inference_steps = {self.inference_steps}: more than noise_steps = {self.noise_steps}"
            )
        if self.prediction not in PREDICTIONS:
            raise ValueError(f"DiffusionConfig.prediction = {self.prediction!r}: choose from {', '.join(PREDICTIONS)}")
        if not 0 <= self.lead < self.execute or self.execute + self.lead > self.chunk:
            raise ValueError(
                f"DiffusionConfig.lead = {self.lead}, execute = {self.execute}, chunk = {self.chunk}: lead must be "
                "less than execute, and both together no more than the chunk"
            )
        if self.backbone.name in WEIGHTLESS:
            raise ValueError(
                f"DiffusionConfig.backbone = {self.backbone.name}: of these diffusion would take the mean of a picture "
                "alone; choose another policy.backbone, or policy act"
            )


def at_period(period_ms: int) -> dict[str, Any]:
    """The options that depend on the tick period."""
    return {"execute": max(2, round(EXECUTE_MS / period_ms)), "lead": max(1, round(LEAD_MS / period_ms))}


class DiffusionPolicy(ChunkModule):
    """Images, state and a memory readout condition the denoising of a chunk of normalised actions `(B, H, A)`."""

    family = "diffusion"
    config: DiffusionConfig
    adapter: DiffusionAdapter

    def __init__(self, config: DiffusionConfig) -> None:
        super().__init__(config)
        self.config = config
        actions, seen = len(config.action_names), config.model
        small = config.backbone.is_small
        trunk = ImageTokens if small else ImageVectors
        self.image_tokens = trunk(len(config.cameras), config.image_px, config.model, config.backbone)
        kept = config.token_channels if small else config.model
        self.token_map = nn.Linear(config.model, kept)
        self.state_map = nn.Sequential(nn.Linear(config.state, 2 * seen), nn.GELU(), nn.Linear(2 * seen, seen))
        self.observed = nn.Sequential(
            nn.Linear(self.image_tokens.count * kept + seen, config.width),
            nn.LayerNorm(config.width),
            nn.GELU(),
            nn.Linear(config.width, config.width),
        )
        self.adapter = DiffusionAdapter(config.condition, config.width, 2 * config.model)
        self.unet = ActionUNet(actions, config.width, config.channels, config.kernel, config.time_width)
        schedule = dict(
            num_train_timesteps=config.noise_steps,
            beta_schedule="squaredcos_cap_v2",
            prediction_type=config.prediction,
            clip_sample=False,
        )
        self.training_schedule = DDPMScheduler(**schedule)
        held = {"clip_sample": True, "clip_sample_range": WITHIN} if config.prediction == "epsilon" else {}
        self.inference_schedule = DDIMScheduler(
            **{**schedule, **held}, set_alpha_to_one=True, timestep_spacing="trailing"
        )

    def trunk(self) -> nn.Module:
        """What both families see with."""
        return self.image_tokens

    @property
    def backbone(self) -> VisualBackbone:
        return self.image_tokens.stages

    def global_condition(self, images: Tensor | Features, state: Tensor, readout: Readout | None) -> Tensor:
        """What denoising is conditioned on `(B, c)`: the observation's, and on top of it what memory adds, if given."""
        tokens = self.token_map(self.image_tokens(images)).flatten(1)
        seen = torch.cat([tokens, self.state_map(self.normalise_state(state))], dim=-1)
        observed = self.observed(seen)
        if readout is None:
            return observed
        return observed + self.adapter(readout.tokens, readout.read_weights, readout.vector, readout.address)

    def losses(
        self, images: Tensor | Features, state: Tensor, readout: Readout, target: Tensor, valid: Tensor
    ) -> dict[str, Tensor]:
        """Mean squared error of the denoiser at random diffusion steps (DDPM), over the ticks that exist."""
        condition = self.global_condition(images, state, readout).repeat_interleave(self.config.draws, dim=0)
        exists = valid[..., None].repeat_interleave(self.config.draws, dim=0)
        clean = target.repeat_interleave(self.config.draws, dim=0).masked_fill(~exists, 0.0)
        noise = torch.randn_like(clean)
        step = torch.randint(0, self.config.noise_steps, clean.shape[:1], device=clean.device)
        schedule = self.training_schedule
        predicted = self.unet(schedule.add_noise(clean, noise, step), step, condition)
        wanted = {"sample": clean, "epsilon": noise}.get(self.config.prediction)
        if wanted is None:
            wanted = schedule.get_velocity(clean, noise, step)
        error = (predicted - wanted).square() * exists
        return {"denoising": error.sum() / (exists.sum() * predicted.shape[-1]).clamp(min=1)}

    @torch.no_grad()
    def predict(self, images: Tensor | Features, state: Tensor, readout: Readout) -> Tensor:
        """Normalised chunks `(B, H, A)`, all from the same noise."""
        condition = self.global_condition(images, state, readout)
        return self.denoise(condition, self.draw_noise(0).to(condition.device).expand(len(condition), -1, -1))

    def draw_noise(self, seed: int) -> Tensor:
        """The noise that denoising begins with `(1, H, A)`."""
        shape = (1, self.config.chunk, len(self.config.action_names))
        return torch.randn(shape, generator=torch.Generator().manual_seed(seed))

    def denoise(self, condition: Tensor, noise: Tensor) -> Tensor:
        """From noise `(B, H, A)` to normalised chunks, in `inference_steps` deterministic steps (DDIM)."""
        schedule, chunk = self.inference_schedule, noise
        schedule.set_timesteps(self.config.inference_steps)
        for step in schedule.timesteps:
            predicted = self.unet(chunk, step.to(chunk.device).expand(len(chunk)), condition)
            chunk = schedule.step(predicted, step, chunk, eta=0.0).prev_sample
        return chunk
