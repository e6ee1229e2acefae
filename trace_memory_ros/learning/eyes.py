"""Which backbones a training's memory and policy see with, and at what size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from trace_memory_ros.files.strict import ConfigError, require_choice, require_int, require_text
from trace_memory_ros.learning.build import Design
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.vision import weights
from trace_memory_ros.vision.config import FROM_NOTHING, POLICY, SMALL, BackboneConfig
from trace_memory_ros.vision.encoder import POOLINGS


@dataclass(frozen=True)
class BackboneSection:
    """A backbone by name, and its own options.

    frozen: None for all that come with pretrained weights. weights: a file, `random`, or None for where that backbone's
    usually come from.
    """

    name: str = SMALL
    frozen: bool | None = None
    weights: str | None = None
    options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        require_text(self.name, "backbone name")

    def chosen(self, px: int) -> BackboneConfig:
        """The backbone with its weights found. Raises ConfigError or WeightsError."""
        pretrained = self.name not in FROM_NOTHING and self.weights != weights.RANDOM
        frozen = pretrained if self.frozen is None else self.frozen
        return weights.choose(self.name, frozen, self.options, self.weights, px)


@dataclass(frozen=True)
class EyesSection(BackboneSection):
    """The memory's backbone; `policy` for that of the policy, whose features then serve both.

    pooling: how a picture's features become one vector. px: side of what the memory sees; None for the observation's
    thumbnail_px, or with `policy` for what the policy sees.
    """

    pooling: str = POOLINGS[0]
    px: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        require_choice(self.pooling, POOLINGS, "eyes.pooling")
        if self.px is not None:
            require_int(self.px, "eyes.px", 1)


def with_eyes(design: Design, eyes: EyesSection, policy: BackboneSection) -> Design:
    """A design that sees as asked for. Raises ConfigError for sizes that the cameras do not have."""
    seen = design.observation
    shared = eyes.name == POLICY
    if eyes.px is not None or shared:
        _check_kept(seen, eyes.px or 0)
        seen = replace(seen, thumbnail_px=eyes.px or design.policy_px)
    if shared and seen.thumbnail_px != design.policy_px:
        raise ConfigError(
            f"eyes: policy means that memory and policy see the same images, but eyes.px = {seen.thumbnail_px} and the "
            f"policy's image_px = {design.policy_px}: leave eyes.px out, or set policy.options.image_px to it"
        )
    options = dict(design.policy_options)
    if policy != BackboneSection():
        options["backbone"] = policy.chosen(design.policy_px)
    backbone = BackboneConfig(POLICY) if shared else eyes.chosen(seen.thumbnail_px)
    return replace(design, observation=seen, backbone=backbone, pooling=eyes.pooling, policy_options=options)


def _check_kept(seen: ObservationConfig, px: int) -> None:
    small = [f"{name} of {seen.px_of(name)}" for name in seen.camera_names if seen.px_of(name) < px]
    if small:
        raise ConfigError(
            f"eyes.px = {px} is more than is kept of camera {', '.join(small)}: raise image_px of the observation or "
            "the camera in --config, or lower eyes.px"
        )
