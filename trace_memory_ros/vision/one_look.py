"""One pass for two who see the same: a memory and a policy in one process."""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain

import torch
from torch import Tensor

from trace_memory_ros.vision.base import Features, VisualBackbone


class OneLook:
    """Features of the pictures that were looked at last: whoever asks next with the same pixels does not look again.

    Pixels are compared, not trusted, so that a policy that acts on another picture than the memory's sees that one.
    """

    def __init__(self) -> None:
        self._images: Tensor | None = None
        self._features: Features | None = None

    def features(self, images: Tensor, look: Callable[[Tensor], Features]) -> Features:
        """What `look` makes of images `(..., 3, h, w)`, kept from the last call where they are the same."""
        if self._features is None or self._images is None or not _same(images, self._images):
            self._features = look(images)
            self._images = images.clone()
        return self._features


def share(one: VisualBackbone, other: VisualBackbone) -> bool:
    """Let two backbones of the same weights look once at the same pictures; False, and nothing done, for unlike ones.

    For use after training: features are kept without what computed them.
    """
    if one.px != other.px or type(one) is not type(other) or one.config != other.config:
        return False
    ours, theirs = _tensors(one), _tensors(other)
    if ours.keys() != theirs.keys() or not all(_same(ours[name], theirs[name]) for name in ours):
        return False
    one.one_look = other.one_look = OneLook()
    return True


def _tensors(backbone: VisualBackbone) -> dict[str, Tensor]:
    return dict(chain(backbone.named_parameters(), backbone.named_buffers()))


def _same(one: Tensor, other: Tensor) -> bool:
    return one.shape == other.shape and one.dtype == other.dtype and torch.equal(one, other)
