"""Convolutions without pretrained weights, for pictures of a few dozen pixels: cheap, trained with all the rest."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn

from trace_memory_ros.files.strict import require_choice, require_int
from trace_memory_ros.vision.base import Features, VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig

LAYOUTS = ("grid", "vector")


@dataclass(frozen=True)
class SmallOptions:
    """layout: `grid` for one token per 16 pixels, `vector` for one of a whole picture. width: d.

    channels: of the first of the two convolutions that `vector` has.
    """

    layout: str = "grid"
    width: int = 64
    channels: int = 16

    def __post_init__(self) -> None:
        require_choice(self.layout, LAYOUTS, "backbone small: layout")
        require_int(self.width, "backbone small: width", 1)
        require_int(self.channels, "backbone small: channels", 1)


class SmallBackbone(VisualBackbone):
    """Stride-2 convolutions at any size: four to a grid of tokens, or two and a linear map of all their places.

    A grid's pooled vector is the mean of its tokens. Images of a `vector` must be `px` wide.
    """

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__(config, px)
        self.options = SmallOptions(**config.options)
        self.width = self.options.width
        # Layers are numbered, as in checkpoints from before there were backbones to choose from.
        for number, layer in enumerate(self._grid() if self.options.layout == "grid" else self._vector(px)):
            self.add_module(str(number), layer)

    def token_grid(self, px: int) -> tuple[int, int]:
        side = -(-px // 16) if self.options.layout == "grid" else 1
        return side, side

    def look(self, images: Tensor) -> Features:
        x = images * 2.0 - 1.0 if self.options.layout == "grid" else images
        for layer in self.children():
            x = layer(x)
        if self.options.layout == "vector":
            return Features(x[:, None], x)
        tokens = x.flatten(2).transpose(1, 2)
        return Features(tokens, tokens.mean(dim=1))

    def _grid(self) -> Iterable[nn.Module]:
        for channels_in, channels_out, kernel in ((3, 16, 5), (16, 32, 3), (32, 64, 3), (64, self.width, 3)):
            yield nn.Conv2d(channels_in, channels_out, kernel, stride=2, padding=kernel // 2)
            yield nn.GroupNorm(4, channels_out)
            yield nn.GELU()

    def _vector(self, px: int) -> Iterable[nn.Module]:
        narrow, side = self.options.channels, -(-px // 4)
        yield nn.Conv2d(3, narrow, 3, stride=2, padding=1)
        yield nn.ReLU()
        yield nn.Conv2d(narrow, 2 * narrow, 3, stride=2, padding=1)
        yield nn.ReLU()
        yield nn.Flatten()
        yield nn.Linear(2 * narrow * side * side, self.width)
