"""A LeRobot policy as training sees any family: images, raw state and a readout to normalised chunks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.lerobot import config as building
from trace_memory_ros.policies.lerobot import processors
from trace_memory_ros.policies.lerobot.config import LerobotConfig
from trace_memory_ros.policies.lerobot.eyes import LerobotEyes, networks_of
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.pictures import fitted
from trace_memory_ros.policies.lerobot.policy import MemoryOptions, MemoryPolicy, memory_batch
from trace_memory_ros.policies.module import ChunkConfig, ChunkModule
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.lerobot import LerobotBackbone

ENVIRONMENT_PX = 16


class LerobotChunks(ChunkModule):
    """A LeRobot policy between its own processors, on one observation step.

    remembers: without, the memory is not shown to the policy, and LeRobot's own weights are what is trained. What goes
    in and out is in raw units, as everywhere in training; LeRobot's processors normalise it. A policy without cameras
    is given all images as its environment state, `ENVIRONMENT_PX` wide and -1..1. Wherever it takes images it takes
    their features too, where a memory shares its eyes.
    """

    family = "lerobot"

    def __init__(self, checkpoint: LerobotCheckpoint, config: ChunkConfig, remembers: bool = True) -> None:
        super().__init__(config)
        self.config = config
        self.remembers = remembers
        self.policy: MemoryPolicy = checkpoint.policy
        self.steps = self.policy.base.name == "diffusion"
        self._given: LerobotCheckpoint | None = checkpoint
        self._eyes: LerobotEyes | None = None

    @property
    def checkpoint(self) -> LerobotCheckpoint:
        """The policy with LeRobot's processors."""
        assert self._given is not None
        return self._given

    @property
    def adapter(self) -> Any:  # type: ignore[override]
        """What takes the memory in: hooks of LeRobot's own modules, which a policy without memory cannot begin near."""
        return self.policy.adapter

    @property
    def model(self) -> Any:
        """What is called: the policy with its memory, or LeRobot's alone."""
        return self.policy if self.remembers else self.policy.base

    @property
    def eyes(self) -> LerobotEyes:
        """What a memory may share. Raises NothingToShare, a ValueError, where the policy has no single backbone."""
        if self._eyes is None:
            statistics = _statistics_of(self.checkpoint.preprocessor)
            self._eyes = LerobotEyes(self.policy.base, self.config.cameras, statistics)
            self._eyes.backbone.held = self.policy.options.frozen
        return self._eyes

    @property
    def backbone(self) -> LerobotBackbone:
        return self.eyes.backbone

    def trunk(self) -> nn.Module:
        """LeRobot's vision backbones, whether or not a memory could share them."""
        return nn.ModuleList(networks_of(self.policy.base))

    def train(self, mode: bool = True) -> LerobotChunks:
        """As `nn.Module.train`; crops that LeRobot draws in training are drawn for a memory's eyes as well."""
        super().train(mode)
        if self._eyes is not None:
            self._eyes.backbone.augmenting = mode and not self.policy.options.frozen
        return self

    @torch.no_grad()
    def predict(self, images: Tensor | Features, state: Tensor, readout: Readout) -> Tensor:
        """Normalised chunks `(B, H, A)` as LeRobot executes them; a diffusion policy draws its noise."""
        batch = self._batch(images, state, readout)
        with self._looking(images), _whole_chunks(self.policy.base, self.config.chunk):
            if self.steps:
                ticks = [self.model.select_action(batch) for _ in range(self.config.chunk)]
                chunk = torch.stack(ticks, dim=1)
            else:
                chunk = self.model.predict_action_chunk(batch)
        return self.normalise_actions(self.checkpoint.postprocessor(chunk).to(state.device))

    def losses(
        self, images: Tensor | Features, state: Tensor, readout: Readout, target: Tensor, valid: Tensor
    ) -> dict[str, Tensor]:
        """LeRobot's own loss."""
        actions = {"action": self.denormalise_actions(target), "action_is_pad": ~valid}
        batch = self._batch(images, state, readout, **actions)
        if self.steps:
            batch["observation.state"] = batch["observation.state"][:, None]
        with self._looking(images):
            return {"lerobot": self.model(batch)[0]}

    @contextmanager
    def _looking(self, images: Tensor | Features) -> Iterator[None]:
        if not isinstance(images, Features):
            yield
            return
        with self.eyes.giving(lambda: images):
            yield

    def _batch(self, images: Tensor | Features, state: Tensor, readout: Readout, **more: Tensor) -> dict[str, Tensor]:
        memory = memory_batch(readout) if self.remembers else {}
        seen = self._seen(images, len(state))
        batch: dict[str, Tensor] = self.checkpoint.preprocessor({**seen, "observation.state": state, **memory, **more})
        return batch

    def _seen(self, images: Tensor | Features, count: int) -> dict[str, Tensor]:
        if isinstance(images, Features):
            # LeRobot wants pictures, which it then asks for the features of.
            blank = images.tokens.new_zeros(1).expand(count, 3, self.config.image_px, self.config.image_px)
            return {f"observation.images.{name}": blank for name in self.config.cameras}
        if features := self.policy.config.image_features:
            keys = [f"observation.images.{name}" for name in self.config.cameras]
            return {key: fitted(images[:, c], features[key].shape) for c, key in enumerate(keys)}
        small = functional.adaptive_avg_pool2d(images.flatten(0, 1), ENVIRONMENT_PX)
        return {"observation.environment_state": small.reshape(count, -1) * 2.0 - 1.0}


class BuiltChunks(LerobotChunks):
    """A LeRobot policy that is built from a configuration, and whose weights lie in a checkpoint of this package.

    config: afterwards holds LeRobot's whole configuration and its normaliser's statistics. Raises what `config.begin`
    does.
    """

    config: LerobotConfig

    def __init__(self, config: LerobotConfig) -> None:
        begun = building.begin(config)
        options = MemoryOptions(config.condition, config.frozen, config.hidden, config.first_gate)
        policy = MemoryPolicy(begun.base, options)
        self._made_for: list[tuple[Tensor, int]] = []
        super().__init__(LerobotCheckpoint(policy, None, None, config.action_names), config)
        self.config = LerobotConfig(**building.resolved(config, begun))

    @property
    def checkpoint(self) -> LerobotCheckpoint:
        """The policy with LeRobot's processors, by statistics of its own or by the normalisers of this training."""
        buffers = (self.state_mean, self.state_std, self.action_mean, self.action_std)
        if not self._made_for or any(
            made is not buffer or version != buffer._version
            for (made, version), buffer in zip(self._made_for, buffers, strict=True)
        ):
            assert self._given is not None
            own = self.config.statistics
            cameras = self.config.cameras
            statistics = building.new_statistics(self, cameras) if own is None else building.tensors_of(own)
            make = lerobot("lerobot.policies.factory").make_pre_post_processors
            pre, post = make(self.policy.base.config, dataset_stats=statistics)
            # LeRobot's configuration says the CPU, where a checkpoint runs.
            processors.place(pre, self.state_mean.device)
            self._given = LerobotCheckpoint(self.policy, pre, post, self.config.action_names)
            self._made_for = [(buffer, buffer._version) for buffer in buffers]
        return super().checkpoint


def _statistics_of(preprocessor: Any) -> dict[str, Mapping[str, Any]]:
    return {key: one for step in preprocessor.steps for key, one in getattr(step, "_tensor_stats", {}).items()}


@contextmanager
def _whole_chunks(base: Any, chunk: int) -> Iterator[None]:
    """Let LeRobot hand out all ticks of a chunk, from empty queues, and leave them empty."""
    executed = base.config.n_action_steps
    base.config.n_action_steps = chunk
    base.reset()
    try:
        yield
    finally:
        base.config.n_action_steps = executed
        base.reset()
