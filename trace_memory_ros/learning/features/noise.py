"""Augmentation of kept features: noise in their own standard deviations, the slow part alike over an episode."""

from __future__ import annotations

from collections.abc import Callable

from torch import Tensor

from trace_memory_ros.learning.recipe import Augmentation
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.placed import WHERE, there

Draw = Callable[..., Tensor]
"""Noise of unit variance of a shape."""


def feature_noise(
    seen: Features, mask: Tensor, strength: Augmentation, draw: Draw, placed: bool = False
) -> Callable[[Features], Features]:
    """What perturbs features `(B, T, C, ...)` of a batch whose writes saw `seen`, `mask` `(B, T)` of which are real.

    Standard deviations are those of each channel in `seen`; both parts are perturbed for themselves, and nothing that
    is of nothing. placed: where a token says that it is stays exact, for a policy has to go there.
    """
    if not (strength.feature_offset or strength.feature_noise):
        return lambda features: features
    scales = [_spread(part[mask]) for part in seen]
    if placed:
        scales[0][-WHERE:] = 0.0
    slow = [
        strength.feature_offset * scale * draw(len(part), 1, *([1] * (part.ndim - 3)), part.shape[-1])
        for part, scale in zip(seen, scales, strict=True)
    ]

    def perturbed(features: Features) -> Features:
        return Features(
            *(
                part + there(part)[..., None] * (drift + strength.feature_noise * scale * draw(*part.shape))
                for part, drift, scale in zip(features, slow, scales, strict=True)
            )
        )

    return perturbed


def _spread(part: Tensor) -> Tensor:
    """Standard deviation `(d,)` of each channel; 0 where there is nothing."""
    flat = part[there(part)]
    return flat.std(dim=0) if len(flat) > 1 else part.new_zeros(part.shape[-1])
