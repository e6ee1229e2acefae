"""What a policy is to training, whichever family it belongs to: chunks of actions, and losses on them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.policies.adapters import Adapter, ConditionShape
from trace_memory_ros.policies.places import Places
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig


@dataclass(frozen=True)
class ChunkConfig:
    """What the sizes of every family begin with. chunk: ticks H; memory_*: the readout's tokens, width and address.

    image_px: side that every camera's images are given at. backbone: what looks at them.
    """

    cameras: tuple[str, ...]
    action_names: tuple[str, ...]
    state: int = 17
    image_px: int = 48
    chunk: int = 20
    model: int = 64
    memory_tokens: int = 0
    memory_width: int = 64
    memory_address: int = 0
    backbone: BackboneConfig = field(default_factory=BackboneConfig, kw_only=True)

    def __post_init__(self) -> None:
        object.__setattr__(self, "backbone", BackboneConfig.from_dict(self.backbone, f"{type(self).__name__}.backbone"))
        object.__setattr__(self, "cameras", tuple(self.cameras))
        object.__setattr__(self, "action_names", tuple(self.action_names))
        who = type(self).__name__
        for name in ("chunk", "state", "image_px"):
            if getattr(self, name) < 1:
                raise ValueError(f"{who}.{name} = {getattr(self, name)}: must be at least 1")

    @property
    def condition(self) -> ConditionShape:
        """Shape of the readout that the policy is conditioned on."""
        return ConditionShape(self.memory_tokens, self.memory_width, self.memory_address)

    def to_dict(self) -> dict[str, Any]:
        """Plain mapping for a checkpoint's config, the readout's shape last."""
        plain = {k: list(v) if isinstance(v, tuple) else v for k, v in asdict(self).items()}
        del plain["backbone"]
        if self.backbone != BackboneConfig():
            plain["backbone"] = self.backbone.to_dict()
        return dict(sorted(plain.items(), key=lambda item: item[0].startswith("memory_")))


class ChunkModule(nn.Module):
    """Images, state and a memory readout to a chunk of normalised actions `(B, H, A)`; the base of every family.

    A family has an image trunk, an adapter and normalisers, and says what its objective is. places: where the present
    holds what the memory asks for, if that is told to the policy.
    """

    family: str
    """Name that checkpoints know it by."""
    config: Any
    adapter: Adapter
    state_mean: Tensor
    state_std: Tensor
    action_mean: Tensor
    action_std: Tensor

    def __init__(self, config: ChunkConfig) -> None:
        super().__init__()
        self.places: Places | None = None
        for name, size in (("state", config.state), ("action", len(config.action_names))):
            self.register_buffer(f"{name}_mean", torch.zeros(size))
            self.register_buffer(f"{name}_std", torch.ones(size))

    def predict(self, images: Tensor, state: Tensor, readout: Readout) -> Tensor:
        """Normalised chunks `(B, H, A)` as they would be executed.

        images `(B, C, 3, P, P)` in 0..1, state `(B, d_s)` raw SI units, readout fields `(B, ...)`.
        """
        raise NotImplementedError

    def losses(
        self, images: Tensor, state: Tensor, readout: Readout, target: Tensor, valid: Tensor
    ) -> dict[str, Tensor]:
        """The family's imitation objective, by name, unweighted.

        target: normalised actions `(B, H, A)`; valid: `(B, H)`, ticks that exist.
        """
        raise NotImplementedError

    def trunk(self) -> nn.Module:
        """What turns images into features: a recipe's `frozen_trunk` keeps it as it is."""
        raise NotImplementedError

    @property
    def backbone(self) -> VisualBackbone:
        """What looks at the images, which a memory may share. Raises ValueError where the family has none to share."""
        raise ValueError(f"policies of family {self.family} have no backbone to share: choose another for the memory")

    def image_features(self, images: Tensor) -> Features:
        """The backbone's features of images `(B, C, 3, P, P)`: tokens `(B, C, K, d)`, pooled `(B, C, d)`.

        A family with a backbone takes these wherever it takes images.
        """
        return self.backbone.features(images)

    def normalise_state(self, state: Tensor) -> Tensor:
        """State `(..., d_s)` in standard deviations from the train split's mean."""
        return (state - self.state_mean) / self.state_std

    def normalise_actions(self, actions: Tensor) -> Tensor:
        """Actions `(..., A)` in standard deviations from the train split's mean."""
        return (actions - self.action_mean) / self.action_std

    def denormalise_actions(self, actions: Tensor) -> Tensor:
        """The inverse of `normalise_actions`."""
        return actions * self.action_std + self.action_mean
