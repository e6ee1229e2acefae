"""A LeRobot policy with a memory at run time: single observations in, one action per tick out."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.observation.images import Image, shrunk
from trace_memory_ros.policies.base import ConditionLike, ObservationLike
from trace_memory_ros.policies.lerobot.eyes import LerobotEyes
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint, load
from trace_memory_ros.policies.lerobot.names import IMAGES, camera_names
from trace_memory_ros.policies.lerobot.pictures import fitted, side_for
from trace_memory_ros.policies.lerobot.policy import memory_batch
from trace_memory_ros.policies.lerobot.prefix import EXPERTS
from trace_memory_ros.policies.runner import readout_of
from trace_memory_ros.vision.base import VisualBackbone


class LerobotRunner:
    """Runs a `MemoryPolicy` between LeRobot's processors, at batch 1; chunks are executed as LeRobot's queues do.

    Camera `name` of an observation is LeRobot's `observation.images.name`, or what training on a dataset calls `name`.
    Raises ValueError for a policy that takes an environment state, and for a vision-language-action policy without a
    task. eyes: what a memory may share; where one does, LeRobot takes the features of the memory's look. image_px: side
    that larger images are shrunk to, as in a training of this package; None for a policy that was trained elsewhere.
    """

    def __init__(
        self, checkpoint: LerobotCheckpoint, eyes: LerobotEyes | None = None, image_px: int | None = None
    ) -> None:
        if checkpoint.policy.config.env_state_feature:
            raise ValueError("the policy takes an environment state, which observations do not have: train on cameras")
        if checkpoint.policy.base.name in EXPERTS and not checkpoint.task:
            raise ValueError(
                f"a {checkpoint.policy.base.name} policy is told what to do, and its checkpoint has no task: save it "
                "as LerobotCheckpoint(..., task='put the part back')"
            )
        self.checkpoint = checkpoint
        self._eyes, self._image_px = eyes, image_px
        self.policy = checkpoint.policy.eval()
        self.action_names = checkpoint.action_names
        self.condition = self.policy.options.condition

    @classmethod
    def from_folder(cls, folder: str | Path) -> LerobotRunner:
        """What `save` of `files` wrote. Raises LerobotCheckpointError, LerobotMissing."""
        return cls(load(folder))

    @property
    def eyes(self) -> VisualBackbone | None:
        """What it sees with, where a memory may share that."""
        return None if self._eyes is None else self._eyes.backbone

    def reset(self) -> None:
        self.policy.reset()

    def act(self, observation: ObservationLike, condition: ConditionLike) -> NDArray[np.float32]:
        """This tick's action `(A,)`, in the units of the training actions.

        Raises ConditionMismatch for a condition of another shape; ValueError without a state, or naming an image that
        is missing or of another size than the policy's.
        """
        memory = memory_batch(readout_of(condition, self.condition))
        told = {"task": [self.checkpoint.task]} if self.checkpoint.task else {}
        px, images = self._image_px, observation.images
        images = images if px is None else {name: shrunk(image, px) for name, image in images.items()}
        batch = self.checkpoint.preprocessor({**self._seen(images, observation.state), **memory, **told})
        with self._looking(images):
            action: Tensor = self.checkpoint.postprocessor(self.policy.select_action(batch))
        return action[0].numpy().astype(np.float32)

    def _looking(self, images: Mapping[str, Image]) -> AbstractContextManager[None]:
        """Where a memory shares the eyes, LeRobot takes their features of these images."""
        eyes = self._eyes
        if eyes is None or eyes.backbone.one_look is None:
            return nullcontext()
        pictures = np.stack([images[name] for name in eyes.cameras])
        return eyes.giving(lambda: eyes.backbone.features(_pixels(pictures)[None]))

    def _seen(self, images: Mapping[str, Image], state: NDArray[np.float64] | None) -> dict[str, Tensor]:
        if state is None:
            raise ValueError("the observation has no robot state: the policy cannot act on it")
        batch = {"observation.state": torch.from_numpy(state.astype(np.float32))[None]}
        features = self.policy.config.image_features
        for name, key in camera_names(features).items():
            feature, exact = features[key], key.removeprefix(IMAGES)
            image = images.get(exact if exact in images else name)
            if image is None:
                raise ValueError(
                    f"the policy looks at {key}, the observation has the cameras {', '.join(images)}: name "
                    "the cameras alike in the observation's configuration"
                )
            side = side_for(feature.shape)
            if image.shape != (side, side, 3):
                raise ValueError(
                    f"{key}: the policy takes {tuple(feature.shape)}, the observation's image is {image.shape}: set "
                    f"the observation's image_px to {side}"
                )
            batch[key] = fitted(_pixels(image)[None], feature.shape)
        return batch


def _pixels(images: NDArray[np.uint8]) -> Tensor:
    return torch.from_numpy(images).movedim(-1, -3).float().div_(255.0)
