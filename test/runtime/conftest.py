"""Checkpoints with random weights, small enough to be made in a test."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
import torch

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.checkpoint import CheckpointConfig, MemoryConfig, save
from trace_memory_ros.runtime.clock import ClockRule, PathLength
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.runtime.window import PathWindow
from trace_memory_ros.signature.layout import signature_size
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig

CONFIG = default_arm()
DEPTH = 2


def make_normaliser(width: int, seed: int, masked: int = 0) -> Standardiser:
    rng = np.random.default_rng(seed)
    return Standardiser(rng.normal(0, 0.1, width), rng.uniform(0.5, 1.5, width), np.arange(width) >= masked)


def write_checkpoint(
    folder: Path, mechanism: str, clock: ClockRule | None = None, seed: int = 0, window: PathWindow | None = None
) -> MemoryModel:
    """Write a checkpoint of `mechanism` with random weights and return the model it was made of."""
    torch.manual_seed(seed)
    clock = clock or PathLength(1.0, 0.02)
    encoder = EncoderConfig(cameras=3, visual_width=12, state_width=8, channels=4)
    depth = DEPTH if registry.build(mechanism, MemoryDims(20, 17, 8, 2)).uses_signature else 0
    size = signature_size(17, depth) if depth else 0
    memory = registry.build(mechanism, MemoryDims(encoder.content_dim, size, 16, 3))
    normalisers = {"state": make_normaliser(17, 1, masked=3)}
    if depth:
        normalisers |= {"xi": make_normaliser(size, 2), "delta": make_normaliser(size, 3)}
    model = MemoryModel(ContentEncoder(encoder), memory, **normalisers).eval()
    config = CheckpointConfig(
        memory=MemoryConfig.from_dict(registry.config_of(memory)),
        encoder=encoder,
        observation=CONFIG,
        clock=clock,
        signature_depth=depth,
        task="colour",
        signature_window=window,
    )
    save(folder, config, model.tensors(), "float32")
    return model


def random_episode(ticks: int = 36, seed: int = 0) -> list[Observation]:
    """A random walk of the arms, standing still for a third of it, before random pictures."""
    rng = np.random.default_rng(seed)
    steps = rng.normal(0, 0.1, (ticks, 17))
    steps[ticks // 3 : 2 * ticks // 3] *= 1e-3
    steps[:, :3] = 0
    path = np.cumsum(steps, axis=0)
    names = CONFIG.camera_names
    pictures = rng.integers(0, 256, (ticks, len(names), 48, 48, 3), dtype=np.uint8)
    return [
        Observation(
            tick=k,
            stamp_ns=10**9 + k * CONFIG.period_ns,
            images=dict(zip(names, pictures[k], strict=True)),
            state=path[k],
            input_stamps_ns=dict.fromkeys(names, 10**9 + k * CONFIG.period_ns),
            faults={},
        )
        for k in range(ticks)
    ]


@pytest.fixture
def make_checkpoint() -> Callable[..., MemoryModel]:
    """`write_checkpoint`."""
    return write_checkpoint


@pytest.fixture
def make_episode() -> Callable[..., list[Observation]]:
    """`random_episode`."""
    return random_episode
