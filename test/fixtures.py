"""Small checkpoints with random weights: everything that a trained one has, in a fraction of a second."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch

from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.observation.config import ObservationConfig, default_arm
from trace_memory_ros.policies.act.policy import ActConfig, ActPolicy
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig, MemoryConfig, PolicyConfig
from trace_memory_ros.runtime.clock import ClockRule, EveryTicks
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig

DEPTH = 2
WIDTH = 8
SLOTS = 3


def standardiser(width: int, seed: int, masked: int = 0) -> Standardiser:
    """Random statistics of `width` channels, the first `masked` of them inactive."""
    rng = np.random.default_rng(seed)
    active = np.arange(width) >= masked
    return Standardiser(0.1 * rng.standard_normal(width), rng.uniform(0.5, 2.0, width), active)


def tiny_checkpoint(
    folder: Path,
    mechanism: str = "trace",
    seed: int = 0,
    observation: ObservationConfig | None = None,
    clock: ClockRule | None = None,
    policy: bool = True,
    task: str = "origin",
    options: Mapping[str, Any] | None = None,
    actions: ActionConfig | None = None,
) -> str:
    """Write a checkpoint with random weights into `folder` and return its model_id.

    Signature depth 2, three slots of width 8, a one-layer policy with chunks of 4 ticks that stays near the arms'
    middle. options: of the mechanism. actions: what the policy's outputs are; None for the arms' on one topic.
    """
    torch.manual_seed(seed)
    observation = observation or default_arm()
    encoder = EncoderConfig(
        cameras=len(observation.cameras),
        thumbnail_px=observation.thumbnail_px,
        state_dim=observation.state_dim,
        visual_width=8,
        state_width=4,
        channels=4,
    )
    uses_signature = registry.build(mechanism, MemoryDims(encoder.content_dim, 1, WIDTH, SLOTS)).uses_signature
    depth = DEPTH if uses_signature else 0
    signature = sum(observation.path_dim**level for level in range(1, depth + 1))
    dims = MemoryDims(content=encoder.content_dim, signature=signature, width=WIDTH, slots=SLOTS)
    memory = registry.build(mechanism, dims, options).eval()
    statistics = (standardiser(observation.state_dim, seed, masked=3),)
    statistics += tuple(standardiser(signature, seed + i) for i in (1, 2)) if uses_signature else ()
    model = MemoryModel(ContentEncoder(encoder), memory, *statistics)
    tensors = model.tensors()
    options = None
    if policy:
        names = ACTION_NAMES if actions is None else actions.names
        act = ActPolicy(_policy_config(observation, names, memory.slot_count, memory.address_width))
        act.action_std.fill_(0.05)
        options = PolicyConfig("act", act.config.to_dict())
        tensors |= {f"policy.{name}": value for name, value in act.state_dict().items()}
    described = MemoryConfig.from_dict(registry.config_of(memory))
    config = CheckpointConfig(
        described, encoder, observation, clock or EveryTicks(2), depth, task, options, actions=actions
    )
    return checkpoint.save(folder, config, tensors)


def damage(checkpoint: Path, folder: Path) -> Path:
    """A copy of `checkpoint` in `folder` whose weights lack their end."""
    folder.mkdir()
    for file in checkpoint.iterdir():
        content = file.read_bytes()
        (folder / file.name).write_bytes(content[:-100] if file.suffix == ".safetensors" else content)
    return folder


def _policy_config(observation: ObservationConfig, names: tuple[str, ...], tokens: int, address: int) -> ActConfig:
    return ActConfig(
        cameras=observation.camera_names,
        action_names=names,
        state=observation.state_dim,
        image_px=observation.image_px,
        chunk=4,
        model=16,
        heads=2,
        feedforward=16,
        encoder_layers=1,
        decoder_layers=1,
        memory_tokens=tokens,
        memory_width=WIDTH,
        memory_address=address,
    )
