"""Checkpoints of the made-up robot with random weights, made in a fraction of a second; policies that misbehave."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

from studies.faults.robot import ACTIONS, HEADERS_ONLY, OBSERVATION, PERIOD_MS
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.policies.act.policy import ActConfig, ActPolicy
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig, MemoryConfig, PolicyConfig
from trace_memory_ros.runtime.clock import EveryTicks
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.signature.layout import signature_size
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig

SLOTS = 4
SMALL_STEP = 0.02
"""Standard deviation of what a random policy adds to the joints, rad."""
STATE_SPREAD = 1.0
"""Standard deviation of the state: joints in radians, up to 4.3 of them, stay within what is not cut off."""
FAMILY = "misbehaved"

SOURCE = '''"""A policy that is slow, raises, or answers nonsense, as its options say."""

import time

import numpy as np

from trace_memory_ros.policies.adapters import ConditionShape


class Misbehaved:
    def __init__(self, options, tensors):
        self.action_names = tuple(options["action_names"])
        self.condition = ConditionShape(**options["condition"])
        self.seconds, self.value, self.after = options["seconds"], options["value"], options["after"]
        self.answers = 0

    def reset(self):
        pass

    def act(self, observation, condition):
        self.answers += 1
        if self.answers <= self.after:
            return np.zeros(len(self.action_names), np.float32)
        time.sleep(self.seconds)
        if self.value == "raise":
            raise RuntimeError("made-up failure")
        return np.full(len(self.action_names), float(self.value), np.float32)
'''


@dataclass(frozen=True)
class Sizes:
    """What a made-up checkpoint holds: small, so that ticks cost little.

    eyes, policy: options of encoder and policy, whose own defaults hold for the others.
    """

    memory: str = "trace"
    width: int = 16
    depth: int = 2
    tick_period_ms: int = PERIOD_MS
    eyes: Mapping[str, Any] = field(default_factory=lambda: {"visual_width": 8, "state_width": 8})
    policy: Mapping[str, Any] = field(
        default_factory=lambda: {
            "chunk": 4,
            "model": 16,
            "heads": 2,
            "feedforward": 16,
            "encoder_layers": 1,
            "decoder_layers": 1,
        }
    )


def made_up_checkpoint(
    folder: Path,
    seed: int = 0,
    misbehaved: Mapping[str, Any] | None = None,
    headers_only: bool = False,
    sizes: Sizes | None = None,
) -> Path:
    """Write a memory with random weights and a transformer policy, or a misbehaved one, into `folder`.

    misbehaved: `seconds` an action takes, its `value` (a number, or `raise`), `after` how many good answers.
    headers_only: without the stream that is stamped when received.
    """
    sizes = sizes or Sizes()
    if (folder / "config.yaml").exists():
        return folder
    depth = sizes.depth if _routed(sizes.memory) else 0
    torch.manual_seed(seed)
    observation = replace(HEADERS_ONLY if headers_only else OBSERVATION, tick_period_ms=sizes.tick_period_ms)
    visual = EncoderConfig(len(observation.cameras), observation.thumbnail_px, observation.state_dim, **sizes.eyes)
    signature = signature_size(observation.path_dim, depth) if depth else 0
    memory = registry.build(sizes.memory, MemoryDims(visual.content_dim, signature, sizes.width, SLOTS)).eval()
    spreads = [_spread(signature, spread) for spread in (5.0, 1.0)] if depth else []
    model = MemoryModel(ContentEncoder(visual), memory, _spread(observation.state_dim, STATE_SPREAD), *spreads)
    tensors = model.tensors()
    shape = ConditionShape(memory.slot_count, sizes.width, memory.address_width)
    if misbehaved is None:
        act = _policy(shape, observation, sizes.policy)
        policy = PolicyConfig("act", act.config.to_dict())
        tensors |= {f"policy.{name}": value for name, value in act.state_dict().items()}
    else:
        condition = {"tokens": shape.tokens, "width": shape.width, "address": shape.address}
        policy = PolicyConfig(FAMILY, {"action_names": list(ACTIONS.names), "condition": condition, **misbehaved})
    described = MemoryConfig.from_dict(registry.config_of(memory))
    config = CheckpointConfig(described, visual, observation, EveryTicks(2), depth, "made_up", policy, actions=ACTIONS)
    checkpoint.save(folder, config, tensors)
    return folder


def write_misbehaved(folder: Path) -> str:
    """A folder for PYTHONPATH that brings the family `misbehaved`, as an installed package does."""
    known = folder / "misbehaved-1.0.dist-info"
    known.mkdir(parents=True, exist_ok=True)
    (known / "METADATA").write_text("Metadata-Version: 2.1\nName: misbehaved\nVersion: 1.0\n", encoding="utf-8")
    entry = f"[trace_memory_ros.policies]\n{FAMILY} = misbehaved:Misbehaved\n"
    (known / "entry_points.txt").write_text(entry, encoding="utf-8")
    (folder / "misbehaved.py").write_text(SOURCE, encoding="utf-8")
    return str(folder)


def _routed(memory: str) -> bool:
    """Whether a signature says where it writes."""
    return registry.build(memory, MemoryDims(1, 1, 4, SLOTS)).uses_signature


def _policy(shape: ConditionShape, observation: ObservationConfig, options: Mapping[str, Any]) -> ActPolicy:
    act = ActPolicy(
        ActConfig(
            cameras=observation.camera_names,
            action_names=ACTIONS.names,
            state=observation.state_dim,
            image_px=observation.image_px,
            **options,
            memory_tokens=shape.tokens,
            memory_width=shape.width,
            memory_address=shape.address,
        )
    )
    act.action_std.fill_(SMALL_STEP)
    return act


def _spread(width: int, spread: float) -> Standardiser:
    return Standardiser(np.zeros(width), np.full(width, spread), np.ones(width, dtype=bool))
