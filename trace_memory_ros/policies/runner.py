"""Trained policies at run time: single observations in, one action per tick out."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Self, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.observation.images import shrunk
from trace_memory_ros.policies.act.ensemble import TemporalEnsemble
from trace_memory_ros.policies.act.policy import ActConfig, ActPolicy
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.base import ConditionLike, ObservationLike, check_condition
from trace_memory_ros.policies.module import ChunkModule
from trace_memory_ros.policies.receding import RecedingHorizon
from trace_memory_ros.vision.base import VisualBackbone
from trace_memory_ros.vision.bounded import outline
from trace_memory_ros.vision.config import SMALL

Module = TypeVar("Module", bound=nn.Module)


class ChunkRunner:
    """Runs a `ChunkModule` on single observations (batch 1, no gradients); subclasses say what chunks become."""

    policy: ChunkModule

    def __init__(self, policy: ChunkModule) -> None:
        self.policy = policy.eval()
        self.action_names: tuple[str, ...] = policy.config.action_names
        self.condition: ConditionShape = policy.config.condition

    @property
    def eyes(self) -> VisualBackbone | None:
        """What it sees with, where a memory may share that."""
        try:
            return self.policy.backbone
        except ValueError:
            return None

    @classmethod
    def build(cls, options: Mapping[str, object]) -> ChunkModule:
        """The untrained module that a checkpoint's `policy` options describe."""
        raise NotImplementedError

    @classmethod
    def from_tensors(cls, options: Mapping[str, object], tensors: Mapping[str, Tensor]) -> Self:
        """Rebuild from the `policy` section of a checkpoint's config and its `policy.` tensors (prefix removed).

        Raises `ValueError` naming the options that are unknown, or the tensors that are missing, superfluous or of
        another shape.
        """

        def build() -> ChunkModule:
            outline(lambda: cls.build(options), tensors.values(), "the policy", _has_backbone(options))
            return cls.build(options)

        return cls(rebuilt(build, tensors, f"{cls.__name__}'s", f" {dict(options)}"))

    def chunk(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """The chunk `(H, A)` predicted from this tick alone: rad for joints, 0..1 for suction.

        Raises `ConditionMismatch` when the condition's shape is not the one trained with, `ValueError` without a state.
        """
        if observation.state is None:
            raise ValueError("the observation has no robot state: the policy cannot act on it")
        config = self.policy.config
        images = np.stack([shrunk(observation.images[name], config.image_px) for name in config.cameras])
        with torch.inference_mode():
            pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float().div_(255.0)[None]
            state = torch.from_numpy(observation.state.astype(np.float32))[None]
            normal = self.policy.predict(pixels, state, readout_of(condition, self.condition))
            return self.policy.denormalise_actions(normal)[0].numpy()


class ActRunner(ChunkRunner):
    """Runs an `ActPolicy`: a chunk at every tick, chunks ensembled over time."""

    policy: ActPolicy

    def __init__(self, policy: ActPolicy) -> None:
        super().__init__(policy)
        self.config = policy.config
        self._ensemble = TemporalEnsemble(self.config.chunk, self.config.ensemble_decay)

    @classmethod
    def build(cls, options: Mapping[str, Any]) -> ActPolicy:
        return ActPolicy(ActConfig(**options))

    def reset(self) -> None:
        self._ensemble.reset()

    def act(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """This tick's action `(A,)`; raises as `chunk` does."""
        return self._ensemble.push(self.chunk(observation, condition))


class RecedingRunner(ChunkRunner):
    """Runs a policy whose chunks take long: each is executed for a while, and the next computed meanwhile.

    Where there is no one to compute it meanwhile (`act`), the tick that begins a chunk takes longer; what is executed
    when is the same.
    """

    def __init__(self, policy: ChunkModule) -> None:
        super().__init__(policy)
        self.config = policy.config
        self.horizon = RecedingHorizon(self.config.execute, self.config.lead)
        self._tick = 0

    def reset(self) -> None:
        self.horizon.reset()
        self._tick = 0

    def act(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """This tick's action `(A,)`; raises as `chunk` does."""
        tick = self._tick
        if self.horizon.due(tick):
            chunk = self.chunk(observation, condition)
            self.horizon.begin(tick)
            self.horizon.offer(tick, chunk)
        action = self.horizon.action(tick)
        assert action is not None
        self._tick += 1
        return action


def rebuilt(build: Callable[[], Module], tensors: Mapping[str, Tensor], whose: str, options: str = "") -> Module:
    """A checkpoint's policy: what `build` makes of its options, with its tensors.

    whose: options they have to be. options: what they are, as words of the message. Raises ValueError where options or
    tensors are not the policy's.
    """
    try:
        policy = build()
    except TypeError as error:
        raise ValueError(
            f"the checkpoint's policy options{options} are not {whose}: {error}. "
            "Restore the config.yaml that was written with these weights, or install the version that wrote it."
        ) from error
    try:
        policy.load_state_dict(dict(tensors))
    except RuntimeError as error:
        raise ValueError(
            f"the checkpoint's policy tensors do not fit its policy options{options}: {error}. "
            "Train again, or restore the config.yaml that was written with these weights."
        ) from error
    return policy


def _has_backbone(options: Mapping[str, Any]) -> bool:
    backbone = options.get("backbone", SMALL)
    return (backbone.get("name") if isinstance(backbone, Mapping) else backbone) != SMALL


def readout_of(condition: ConditionLike, shape: ConditionShape) -> Readout:
    """A condition as a batch of one. Raises `ConditionMismatch`."""
    check_condition(condition, shape)
    tokens, vector, weights, address = (
        torch.from_numpy(np.asarray(part, np.float32))[None]
        for part in (condition.tokens, condition.vector, condition.read_weights, condition.address)
    )
    return Readout(tokens.reshape(1, shape.tokens, shape.width), vector, weights, address)
