"""From a checkpoint to a policy that is ready to act."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.policies.runner import ActRunner
from trace_memory_ros.runtime.checkpoint import Checkpoint, CheckpointError

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class _Nothing:
    """A condition of zeros."""

    tokens: FloatArray
    vector: FloatArray
    address: FloatArray


def load_policy(loaded: Checkpoint) -> ActRunner:
    """The checkpoint's policy. Raises `CheckpointError` when it has none or one of an unknown family."""
    policy = loaded.policy
    if policy.family != "act":
        raise CheckpointError(f"{loaded.folder} holds a policy of family {policy.family!r}: this node runs act")
    return ActRunner.from_tensors(policy.options, loaded.tensors_of("policy."))


def warm_up(policy: ActRunner, config: ObservationConfig) -> None:
    """Act a few times on black images, then forget it: first calls are slow."""
    shape = policy.config.condition
    condition = _Nothing(
        np.zeros((shape.tokens, shape.width), np.float32),
        np.zeros(shape.width, np.float32),
        np.zeros(shape.address, np.float32),
    )
    black = np.zeros((config.image_px, config.image_px, 3), np.uint8)
    observation = Observation(0, 0, dict.fromkeys(config.camera_names, black), np.zeros(config.state_dim), {}, {})
    for _ in range(3):
        policy.act(observation, condition)
    policy.reset()
