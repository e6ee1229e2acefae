"""What a LeRobot policy sees with, for a memory to share: one forward pass for both."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.lerobot import ACT, DIFFUSION, FEATURE_MAP, LerobotBackbone

IMAGES = "observation.images."
Look = Callable[[], Features]


class NothingToShare(ValueError):
    """A LeRobot policy has no single backbone whose features a memory could take; the message says why."""


class LerobotEyes:
    """The backbone of a LeRobot ACT or Diffusion policy, which computes features or is given them.

    cameras: in a memory's order. statistics: of LeRobot's normaliser, by feature. While features are given, LeRobot's
    own code runs as it is, but the network in it hands them out instead of computing: a function shadows the `forward`
    of that one object. Raises NothingToShare for a policy with none, or several.
    """

    def __init__(self, base: Any, cameras: Sequence[str], statistics: Mapping[str, Mapping[str, Any]]) -> None:
        features = _images(base)
        ours = [f"{IMAGES}{name}" for name in cameras]
        if sorted(features) != sorted(ours):
            raise NothingToShare(
                f"this {base.name} policy looks at {', '.join(features)}, the memory at {', '.join(ours)}: give both "
                "the same cameras"
            )
        (self.network,) = networks_of(base)
        self.cameras = tuple(cameras)
        self._order = [ours.index(key) for key in features]
        self._each = base.name == ACT
        side = next(iter(features.values())).shape[-1]
        self.backbone = LerobotBackbone(BackboneConfig("lerobot", options=_options(base)), side, self.network)
        for index, key in enumerate(ours):
            mean, std = _affine(base.config, statistics.get(key, {}))
            self.backbone.image_mean[index], self.backbone.image_std[index] = mean, std

    @contextmanager
    def giving(self, look: Look | None) -> Iterator[None]:
        """LeRobot's next pass takes features `(B, C, K, d)` from `look`, which is called when it asks; None: its own.

        Raises RuntimeError where LeRobot asks in another way than it was tested to.
        """
        if look is None:
            yield
            return
        handing = _Handing(self, look)
        self.network.forward = handing
        try:
            yield
        finally:
            del self.network.forward
        if handing.asked % (len(self._order) if self._each else 1):
            raise RuntimeError(f"LeRobot asked {handing.asked} times for features of {len(self._order)} cameras")

    def maps(self, features: Features) -> Tensor:
        """Feature maps `(B, C, d, rows, columns)`, cameras in LeRobot's order."""
        return self.backbone.grid_of(features)[:, self._order]

    @property
    def one_at_a_time(self) -> bool:
        """Whether LeRobot looks at one camera after the other."""
        return self._each


class _Handing:
    """Stands in for the network's forward while features are given."""

    def __init__(self, eyes: LerobotEyes, look: Look) -> None:
        self.eyes = eyes
        self.look = look
        self.asked = 0
        self._maps: Tensor | None = None

    def __call__(self, images: Tensor) -> Any:
        if self._maps is None:
            self._maps = self.eyes.maps(self.look())
        camera, self.asked = self.asked % self._maps.shape[1], self.asked + 1
        found = self._maps[:, camera] if self.eyes.one_at_a_time else self._maps.flatten(0, 1)
        if len(found) != len(images):
            raise RuntimeError(f"LeRobot asked for features of {len(images)} images, {len(found)} are given")
        return {FEATURE_MAP: found} if self.eyes.one_at_a_time else found


def networks_of(base: Any) -> list[nn.Module]:
    """What an ACT or Diffusion policy looks at images with: one for all cameras, one for each, or nothing."""
    if not base.config.image_features:
        return []
    if base.name == ACT:
        return [base.model.backbone]
    encoder = base.diffusion.rgb_encoder
    encoders: list[Any] = list(encoder) if base.config.use_separate_rgb_encoder_per_camera else [encoder]
    return [one.backbone for one in encoders]


def _images(base: Any) -> Mapping[str, Any]:
    config = base.config
    if base.name not in (ACT, DIFFUSION):
        raise NothingToShare(f"a memory cannot share the eyes of a {base.name} policy, only of act and diffusion")
    features: Mapping[str, Any] = config.image_features
    if not features:
        raise NothingToShare(f"this {base.name} policy has no cameras: choose other eyes for the memory")
    if config.n_obs_steps != 1:
        raise NothingToShare(
            f"this {base.name} policy looks at {config.n_obs_steps} ticks at once, a memory at one: train it with "
            "n_obs_steps = 1, or choose other eyes for the memory"
        )
    if base.name == DIFFUSION and config.use_separate_rgb_encoder_per_camera:
        raise NothingToShare(
            "this diffusion policy has a backbone per camera, a memory one for all: train it with "
            "use_separate_rgb_encoder_per_camera = false, or choose other eyes for the memory"
        )
    if any(shape[-1] != shape[-2] for shape in (one.shape for one in features.values())):
        raise NothingToShare(f"this {base.name} policy's images are not square, a memory's are")
    return features


def _options(base: Any) -> dict[str, Any]:
    """What `vision.lerobot.LerobotEyes` says of a policy."""
    config = base.config
    common = {"policy": base.name, "network": config.vision_backbone, "cameras": len(config.image_features)}
    if base.name == ACT:
        return {**common, "norm": "frozen", "dilated": bool(config.replace_final_stride_with_dilation)}
    return {
        **common,
        "norm": "group" if config.use_group_norm else "batch",
        "resize": _sides(getattr(config, "resize_shape", None)),
        "crop": _sides(config.crop_shape),
        "random_crop": bool(config.crop_is_random),
    }


def _sides(shape: Sequence[int] | None) -> list[int] | None:
    return None if shape is None else [int(side) for side in shape]


def _affine(config: Any, statistics: Mapping[str, Any]) -> tuple[Tensor, Tensor]:
    """LeRobot's normalisation of an image as mean and spread `(3, 1, 1)`; bit for bit where it has a mean."""
    mode = str(getattr(config.normalization_mapping.get("VISUAL"), "value", "IDENTITY"))
    values = {name: torch.as_tensor(value, dtype=torch.float32) for name, value in statistics.items()}
    if mode == "IDENTITY" or not values:
        return torch.zeros(3, 1, 1), torch.ones(3, 1, 1)
    if mode == "MEAN_STD":
        return values["mean"].reshape(3, 1, 1), (values["std"] + 1e-8).reshape(3, 1, 1)
    ends = {"MIN_MAX": ("min", "max"), "QUANTILES": ("q01", "q99"), "QUANTILE10": ("q10", "q90")}.get(mode)
    if ends is None:
        raise NothingToShare(f"images are normalised by {mode}, which a memory does not know")
    low, high = (values[name].reshape(3, 1, 1) for name in ends)
    return (low + high) / 2, torch.where(high == low, torch.full_like(high, 0.5e-8), (high - low) / 2)
