"""A trained ACT policy at run time: one temporally ensembled action per tick."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.policies.act import ActConfig, ActPolicy
from trace_memory_ros.policies.base import ConditionLike, ConditionMismatch, ObservationLike
from trace_memory_ros.policies.ensemble import TemporalEnsemble


class ActRunner:
    """Runs an `ActPolicy` on single observations (batch 1, no gradients)."""

    def __init__(self, policy: ActPolicy) -> None:
        self.policy = policy.eval()
        self.config = policy.config
        self.action_names = policy.config.action_names
        self._ensemble = TemporalEnsemble(self.config.chunk, self.config.ensemble_decay)

    @classmethod
    def from_tensors(cls, options: Mapping[str, object], tensors: Mapping[str, Tensor]) -> ActRunner:
        """Rebuild from the `policy` section of a checkpoint's config and its `policy.` tensors (prefix removed).

        Raises `ValueError` naming the tensors that are missing, superfluous or of another shape.
        """
        policy = ActPolicy(ActConfig(**options))  # type: ignore[arg-type]
        try:
            policy.load_state_dict(dict(tensors))
        except RuntimeError as error:
            raise ValueError(
                f"the checkpoint's policy tensors do not fit its policy options {dict(options)}: {error}. "
                "Train again, or restore the config.yaml that was written with these weights."
            ) from error
        return cls(policy)

    def reset(self) -> None:
        self._ensemble.reset()

    def act(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """This tick's action `(A,)`: rad for joints, 0..1 for suction.

        Raises `ConditionMismatch` when the condition's shape is not the one trained with, `ValueError` without a state.
        """
        return self._ensemble.push(self.chunk(observation, condition))

    def chunk(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """The chunk `(H, A)` predicted from this tick alone."""
        if observation.state is None:
            raise ValueError("the observation has no robot state: the policy cannot act on it")
        images = np.stack([observation.images[name] for name in self.config.cameras])
        with torch.inference_mode():
            pixels = torch.from_numpy(images).permute(0, 3, 1, 2).float().div_(255.0)[None]
            state = torch.from_numpy(observation.state.astype(np.float32))[None]
            normal = self.policy(pixels, state, self._memory(condition))
            return self.policy.denormalise_actions(normal)[0].numpy()

    def _memory(self, condition: ConditionLike) -> tuple[Tensor, Tensor, Tensor]:
        shape = self.config.condition
        tokens = np.asarray(condition.tokens, dtype=np.float32)
        got = (tokens.size, condition.vector.size, condition.address.size)
        want = (shape.tokens * shape.width, shape.width, shape.address)
        if got != want:
            raise ConditionMismatch(
                f"condition with {got[0]} token numbers, vector of {got[1]}, address of {got[2]}; this policy was "
                f"trained with {want[0]} ({shape.tokens} tokens of {shape.width}), {want[1]}, {want[2]}. "
                "Start memory_node and policy_node with the same checkpoint."
            )
        return (
            torch.from_numpy(tokens.reshape(1, shape.tokens, shape.width)),
            torch.from_numpy(np.asarray(condition.vector, dtype=np.float32))[None],
            torch.from_numpy(np.asarray(condition.address, dtype=np.float32))[None],
        )
