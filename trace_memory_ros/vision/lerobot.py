"""The networks that LeRobot's ACT and Diffusion policies see with, built by torchvision alone.

A memory that shares such a policy's eyes runs where LeRobot is not installed. Source: LeRobot 0.4,
`policies/act/modeling_act.py` and `policies/diffusion/modeling_diffusion.py`.
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

import torch
from torch import Tensor, nn

from trace_memory_ros.files.strict import ConfigError, require_choice, require_int
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.torchvision import torchvision
from trace_memory_ros.vision.weights import WeightsError

ACT, DIFFUSION = "act", "diffusion"
NORMS = ("frozen", "batch", "group")
FEATURE_MAP = "feature_map"


@dataclass(frozen=True)
class LerobotEyes:
    """Options of backbone `lerobot`. policy: which of LeRobot's it belongs to. network: a ResNet of torchvision.

    cameras: C, whose images follow one another. norm: batch norms that never learn, that go on averaging in a training
    of LeRobot's, or group norms. dilated: the last stage keeps its resolution. resize, crop: rows and columns; what is
    cropped lies in the middle, or anywhere in training where `random_crop`.
    """

    policy: str
    network: str = "resnet18"
    cameras: int = 1
    norm: str = "frozen"
    dilated: bool = False
    resize: Sequence[int] | None = None
    crop: Sequence[int] | None = None
    random_crop: bool = False

    def __post_init__(self) -> None:
        require_choice(self.policy, (ACT, DIFFUSION), "backbone lerobot: policy")
        require_choice(self.norm, NORMS, "backbone lerobot: norm")
        require_int(self.cameras, "backbone lerobot: cameras", 1)
        if not str(self.network).startswith("resnet"):
            raise ConfigError(f"backbone lerobot: network = {self.network!r}: must be a ResNet of torchvision")
        for name in ("resize", "crop"):
            sides = getattr(self, name)
            if sides is not None and (len(sides) != 2 or not all(isinstance(s, int) and s > 0 for s in sides)):
                raise ConfigError(f"backbone lerobot: {name} = {sides!r}: must be rows and columns")


class LerobotBackbone(VisualBackbone):
    """Images of C cameras in turn, `(N * C, 3, h, w)` in 0..1, to the feature maps that LeRobot's policy computes.

    image_mean, image_std `(C, 3, 1, 1)`: LeRobot's normaliser of each camera's images, as `(image - mean) / std`.
    network: LeRobot's own module, whose weights are then shared; None to build one. held: no gradient reaches the
    weights. augmenting: crops lie anywhere, as in a training of LeRobot's. Batch norms always work with what they have
    averaged, so that features depend on the image alone.
    """

    image_mean: Tensor
    image_std: Tensor

    def __init__(self, config: BackboneConfig, px: int, network: nn.Module | None = None) -> None:
        super().__init__(config, px)
        self.options = LerobotEyes(**config.options)
        self.network = _network(self.options) if network is None else network
        self.width = _channels(self.network)
        self.held = self.augmenting = False
        shape = (self.options.cameras, 3, 1, 1)
        self.register_buffer("image_mean", torch.zeros(shape))
        self.register_buffer("image_std", torch.ones(shape))

    def token_grid(self, px: int) -> tuple[int, int]:
        rows, columns = self.options.crop or self.options.resize or (px, px)
        stride = 16 if self.options.dilated else 32
        return -(-rows // stride), -(-columns // stride)

    def look(self, images: Tensor) -> Features:
        grid = self.maps(images)
        return Features(grid.flatten(2).transpose(1, 2), grid.mean(dim=(2, 3)))

    def maps(self, images: Tensor) -> Tensor:
        """Feature maps `(N * C, d, rows, columns)` of images of the cameras in turn. Raises ValueError for others."""
        cameras = self.options.cameras
        if len(images) % cameras:
            raise ValueError(f"{len(images)} images for a backbone of {cameras} cameras: give those of all, in turn")
        by_camera = images.unflatten(0, (-1, cameras))
        seen = (by_camera - self.image_mean) / self.image_std
        if self.training or any(module.training for module in self.network.modules()):
            self.network.eval()
        with torch.no_grad() if self.held else nullcontext():
            if self.options.policy == ACT:
                # A pass per camera, as LeRobot's: sums of another batch differ in their last bits.
                found = torch.stack([self.network(seen[:, c])[FEATURE_MAP] for c in range(cameras)], dim=1)
                return found.flatten(0, 1)
            grid: Tensor = self.network(self._cropped(seen.flatten(0, 1)))
            return grid

    def grid_of(self, features: Features) -> Tensor:
        """Tokens `(..., K, d)` as the feature maps `(..., d, rows, columns)` that they were."""
        return features.tokens.transpose(-1, -2).unflatten(-1, self.token_grid(self.px))

    def pretrained(self, source: Path | None) -> tuple[dict[str, Tensor], str]:
        raise WeightsError(
            "backbone lerobot comes with a LeRobot policy: ask for --policy lerobot --eyes policy, or for resnet18"
        )

    def _cropped(self, images: Tensor) -> Tensor:
        transforms = torchvision("torchvision.transforms")
        if self.options.resize is not None:
            images = transforms.Resize(tuple(self.options.resize))(images)
        if self.options.crop is None:
            return images
        anywhere = self.augmenting and self.options.random_crop
        crop = transforms.RandomCrop if anywhere else transforms.CenterCrop
        cropped: Tensor = crop(tuple(self.options.crop))(images)
        return cropped


def _network(options: LerobotEyes) -> nn.Module:
    """What LeRobot builds, with random weights."""
    try:
        models = torchvision("torchvision.models")
    except ModuleNotFoundError as error:
        raise ConfigError(
            f'backbone lerobot needs {error.name}, which an extra brings: pip install "trace_memory_ros[vision]"'
        ) from error
    build = getattr(models, options.network)
    if options.policy == ACT:
        norm = torchvision("torchvision.ops.misc").FrozenBatchNorm2d
        whole = build(weights=None, norm_layer=norm, replace_stride_with_dilation=[False, False, bool(options.dilated)])
        getter = torchvision("torchvision.models._utils").IntermediateLayerGetter
        network: nn.Module = getter(whole, return_layers={"layer4": FEATURE_MAP})
        return network
    group = _group_norm if options.norm == "group" else None
    return nn.Sequential(*list(build(weights=None, norm_layer=group).children())[:-2])


def _group_norm(channels: int) -> nn.GroupNorm:
    return nn.GroupNorm(channels // 16, channels)


def _channels(network: nn.Module) -> int:
    """d: what the last convolution of a ResNet puts out."""
    convolutions = [module for module in network.modules() if isinstance(module, nn.Conv2d)]
    return int(max(module.out_channels for module in convolutions))
