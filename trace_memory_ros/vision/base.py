"""The contract of a visual backbone: pictures in, tokens and one pooled vector out."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trace_memory_ros.vision.config import BackboneConfig

if TYPE_CHECKING:
    from trace_memory_ros.vision.one_look import OneLook


class Features(NamedTuple):
    """What a backbone makes of images: tokens `(..., K, d)`, places row by row, and pooled `(..., d)`.

    Where only pooled features were kept, K is 0.
    """

    tokens: Tensor
    pooled: Tensor

    def flatten(self) -> Features:
        """The first two dimensions as one."""
        return Features(self.tokens.flatten(0, 1), self.pooled.flatten(0, 1))


class VisualBackbone(nn.Module):
    """Images `(N, 3, h, w)`, uint8 or float in 0..1, to `Features`; normalisation and resizing belong to it.

    config: what it was built from. px: side of the images that it is made for; others may work. width: d. colours: how
    many of a token's first numbers are a colour. placed: whether its last two say where it is (`placed.py`). revision:
    goes up when its code gives the same pixels other features, so that those kept are computed anew. Always in
    evaluation mode, since what a batch norm has averaged is part of the weights: features of an image depend on that
    image alone. The same weights and pixels give the same features in training and live. one_look: what another
    backbone of the same weights has just seen, where `one_look.share` was called.
    """

    width: int
    colours: int = 0
    placed: bool = False
    revision: int = 0

    def __init__(self, config: BackboneConfig, px: int) -> None:
        super().__init__()
        self.config = config
        self.px = px
        self.one_look: OneLook | None = None

    def token_grid(self, px: int) -> tuple[int, int]:
        """Rows and columns of the tokens of an image `px` wide and high; K is their product."""
        raise NotImplementedError

    def look(self, images: Tensor) -> Features:
        """Features of float images `(N, 3, h, w)` in 0..1."""
        raise NotImplementedError

    def forward(self, images: Tensor) -> Features:
        """Features of images `(N, 3, h, w)`. Raises ValueError for another shape or type."""
        if images.ndim != 4 or images.shape[1] != 3 or not (images.dtype == torch.uint8 or images.is_floating_point()):
            raise ValueError(
                f"images of shape {tuple(images.shape)}, type {images.dtype}: give (N, 3, h, w), uint8 or float in 0..1"
            )
        return self.look(images.float().div_(255.0) if images.dtype == torch.uint8 else images)

    def features(self, images: Tensor) -> Features:
        """Features of images with any leading dimensions `(..., 3, h, w)`: tokens `(..., K, d)`, pooled `(..., d)`."""
        return self._features(images) if self.one_look is None else self.one_look.features(images, self._features)

    def _features(self, images: Tensor) -> Features:
        found = self(images.flatten(0, -4))
        return Features(*(part.reshape(*images.shape[:-3], *part.shape[1:]) for part in found))

    def train(self, mode: bool = True) -> VisualBackbone:
        """Evaluation mode, always; whether weights are learned is `config.frozen`."""
        super().train(False)
        return self

    def freeze(self) -> VisualBackbone:
        """Make every weight a constant that is neither trained nor part of `state_dict`: its file holds it."""
        for module in list(self.modules()):
            if isinstance(module, nn.BatchNorm2d):
                # What it has averaged is a constant as well; otherwise a state dict would have to count batches.
                module.track_running_stats = False
            named = [*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)]
            for name, tensor in named:
                delattr(module, name)
                module.register_buffer(name, tensor.detach(), persistent=False)
        return self

    def pretrained(self, source: Path | None) -> tuple[dict[str, Tensor], str]:
        """Weights of elsewhere by this network's names, and where they are from.

        source: their file; None for where they usually come from. Raises WeightsError where they are not to be had.
        """
        raise NotImplementedError


@torch.no_grad()
def features_of(backbone: VisualBackbone, images: NDArray[np.uint8], batch: int = 16) -> Features:
    """Features of images `(N, P, P, 3)` uint8: tokens `(N, K, d)`, pooled `(N, d)` float32, on the CPU.

    A function of the backbone's weights and the pixels alone, hence what may be kept on disk for a frozen one.
    """
    weight = next(chain(backbone.parameters(), backbone.buffers()), torch.zeros(()))
    parts = []
    for first in range(0, len(images), batch):
        pixels = torch.from_numpy(np.ascontiguousarray(images[first : first + batch])).movedim(-1, -3)
        parts.append(Features(*(part.cpu() for part in backbone(pixels.to(weight.device)))))
    if not parts:
        rows, columns = backbone.token_grid(images.shape[1])
        return Features(torch.zeros(0, rows * columns, backbone.width), torch.zeros(0, backbone.width))
    return Features(torch.cat([p.tokens for p in parts]), torch.cat([p.pooled for p in parts]))
