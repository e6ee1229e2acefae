"""A LeRobot policy as training sees any family: images, raw state and a readout to normalised chunks."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint
from trace_memory_ros.policies.lerobot.policy import MemoryPolicy, memory_batch
from trace_memory_ros.policies.module import ChunkConfig, ChunkModule

ENVIRONMENT_PX = 16


class LerobotChunks(ChunkModule):
    """A LeRobot policy between its own processors, on one observation step.

    remembers: without, the memory is not shown to the policy, and LeRobot's own weights are what is trained. What goes
    in and out is in raw units, as everywhere in training; LeRobot's processors normalise it. A policy without cameras
    is given all images as its environment state, `ENVIRONMENT_PX` wide and -1..1.
    """

    def __init__(self, checkpoint: LerobotCheckpoint, config: ChunkConfig, remembers: bool) -> None:
        super().__init__(config)
        self.config = config
        self.remembers = remembers
        self.policy: MemoryPolicy = checkpoint.policy
        self.checkpoint = checkpoint
        self.steps = self.policy.base.name == "diffusion"

    @property
    def model(self) -> Any:
        """What is called: the policy with its memory, or LeRobot's alone."""
        return self.policy if self.remembers else self.policy.base

    @torch.no_grad()
    def predict(self, images: Tensor, state: Tensor, readout: Readout) -> Tensor:
        """Normalised chunks `(B, H, A)` as LeRobot executes them; a diffusion policy draws its noise."""
        batch = self._batch(images, state, readout)
        self.model.reset()
        if self.steps:
            first = self.model.select_action(batch)
            chunk = torch.stack([first, *(self.model.select_action(batch) for _ in range(self.config.chunk - 1))], 1)
        else:
            chunk = self.model.predict_action_chunk(batch)
        return self.normalise_actions(self.checkpoint.postprocessor(chunk))

    def losses(
        self, images: Tensor, state: Tensor, readout: Readout, target: Tensor, valid: Tensor
    ) -> dict[str, Tensor]:
        """LeRobot's own loss."""
        actions = {"action": self.denormalise_actions(target), "action_is_pad": ~valid}
        batch = self._batch(images, state, readout, **actions)
        if self.steps:
            batch["observation.state"] = batch["observation.state"][:, None]
        return {"lerobot": self.model(batch)[0]}

    def _batch(self, images: Tensor, state: Tensor, readout: Readout, **more: Tensor) -> dict[str, Tensor]:
        if self.policy.config.image_features:
            seen = {f"observation.images.{name}": images[:, c] for c, name in enumerate(self.config.cameras)}
        else:
            small = functional.adaptive_avg_pool2d(images.flatten(0, 1), ENVIRONMENT_PX)
            seen = {"observation.environment_state": small.reshape(len(images), -1) * 2.0 - 1.0}
        memory = memory_batch(readout) if self.remembers else {}
        batch: dict[str, Tensor] = self.checkpoint.preprocessor({**seen, "observation.state": state, **memory, **more})
        return batch
