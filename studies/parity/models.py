"""Checkpoints for parity runs: trained where the package ships one, else with random weights of full size."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

import trace_memory_ros
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.memory.trace.config import TraceConfig
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig, MemoryConfig
from trace_memory_ros.runtime.clock import PathLength
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.signature.layout import signature_size
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig

TASK = "origin"
WIDTH, SLOTS, DEPTH = 64, 4, 3
SPREAD_RAD = 0.5


def shipped(memory: str) -> Path | None:
    """The trained checkpoint of a memory that lies beside the package; None where there is none."""
    folder = Path(trace_memory_ros.__file__).resolve().parents[1] / "weights" / f"{TASK}_{memory}"
    return folder if folder.is_dir() else None


def random_checkpoint(
    folder: Path, memory: str, seed: int = 0, base_masked: bool = False, paper: bool = False, transport: str = "raw"
) -> Path:
    """Write a checkpoint of `memory` with random weights and a path-length clock into `folder`.

    paper: TRACE at the paper's size, 11.9 million parameters, with an encoder to match. transport: of all cameras.
    """
    torch.manual_seed(seed)
    observation = default_arm(base_masked)
    cameras = tuple(replace(camera, transport=transport) for camera in observation.cameras)
    observation = replace(observation, cameras=cameras)
    sizes: dict[str, Any] = {"visual_width": 512, "state_width": 512} if paper else {}
    encoder = ContentEncoder(
        EncoderConfig(len(observation.cameras), observation.thumbnail_px, observation.state_dim, **sizes)
    )
    content = encoder.config.content_dim
    depth = DEPTH if registry.build(memory, MemoryDims(content, 1, WIDTH, SLOTS)).uses_signature else 0
    dims = MemoryDims(content, signature_size(observation.path_dim, depth) if depth else 0, WIDTH, SLOTS)
    options = asdict(TraceConfig.paper()) if paper else None
    module = registry.build(memory, TraceConfig.paper_dims() if paper else dims, options).eval()
    signature = (_spread(dims.signature, 10.0), _spread(dims.signature, 1.0)) if depth else ()
    model = MemoryModel(encoder, module, _spread(observation.state_dim, SPREAD_RAD), *signature)
    config = CheckpointConfig(
        memory=MemoryConfig.from_dict(registry.config_of(module)),
        encoder=encoder.config,
        observation=observation,
        clock=PathLength(1.0, 1.0),
        signature_depth=depth,
        task=TASK,
    )
    checkpoint.save(folder, config, model.tensors())
    return folder


def _spread(width: int, spread: float) -> Standardiser:
    return Standardiser(np.zeros(width), np.full(width, spread), np.ones(width, dtype=bool))
