"""Standardisation with statistics of the training split, for signatures, their increments and the state itself.

Source: TRACE (003) appendix A.4 and table 9. Clipping is ours: level n of a signature grows like t^n at worst, so an
episode longer than the training ones leaves the statistics behind by orders of magnitude. A clipped input keeps its
sign and saturates the learned maps instead of driving them far outside what they were fitted on. So is the least
spread of a signature's numbers: one that hardly varied in training, such as an area beside a channel that stood still,
would otherwise be scaled up until any other motion is far outside too.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import torch
from numpy.typing import ArrayLike, NDArray
from torch import Tensor

from trace_memory_ros.signature.layout import level_slices

Array = NDArray[np.float64]

STD_FLOOR = 1e-6
CLIP = 8.0
# Rounding gives a channel that never moves a spread of a few ulps of its mean: below this share it counts as constant.
CONSTANT_SHARE = 1e-12
LEAST_SHARE = 0.1
"""Of the root mean square of a signature level's standard deviations: what each of them counts as, at least."""


@dataclass(frozen=True, eq=False)
class Standardiser:
    """`clip((x - mean) / std, -clip, clip)` per channel; channels that are not `active` give 0.

    mean, std: `(w,)` float64, std >= 1e-6. active: `(w,)` bool. clip: in standard deviations.
    """

    mean: Array
    std: Array
    active: NDArray[np.bool_]
    clip: float = CLIP
    _scale: Array = field(init=False, repr=False)

    def __post_init__(self) -> None:
        shapes = {"mean": self.mean.shape, "std": self.std.shape, "active": self.active.shape}
        if self.mean.ndim != 1 or len(set(shapes.values())) != 1:
            raise ValueError(f"Standardiser shapes {shapes}: expected the same (w,) for all")
        if not (np.isfinite(self.mean).all() and np.isfinite(self.std).all()):
            raise ValueError("Standardiser has non-finite statistics: fit it again on finite data")
        if (self.std < STD_FLOOR).any():
            raise ValueError(f"Standardiser.std goes down to {self.std.min()}: must be at least {STD_FLOOR}")
        if not self.clip > 0:
            raise ValueError(f"Standardiser.clip = {self.clip}: must be positive")
        object.__setattr__(self, "_scale", np.where(self.active, 1.0 / self.std, 0.0))

    @property
    def width(self) -> int:
        """Number of channels w."""
        return self.mean.size

    def apply64(self, x: NDArray[np.floating[Any]]) -> Array:
        """Standardise `x` `(..., w)` in float64, as the streaming signature wants its states; NaN stays NaN."""
        self._check_width(x.shape)
        scaled: Array = np.subtract(x, self.mean, dtype=np.float64)
        scaled *= self._scale
        return np.clip(scaled, -self.clip, self.clip, out=scaled)

    def apply(self, x: NDArray[np.floating[Any]]) -> NDArray[np.float32]:
        """Standardise `x` `(..., w)` in float64 and round to float32, as learned maps want it."""
        return self.apply64(x).astype(np.float32)

    def clipped_share(self, x: Array) -> float:
        """Share of the active channels of `x` `(..., w)` at the clip or beyond: how far it left the training data."""
        return float(self.at_limit(self.apply(x))[..., self.active].mean()) if self.active.any() else 0.0

    def at_limit(self, standardised: NDArray[np.float32]) -> NDArray[np.bool_]:
        """Which of the numbers that `apply` gave `(..., w)` lie at the clip, or would beyond it."""
        found: NDArray[np.bool_] = np.abs(standardised) >= np.float32(self.clip)
        return found

    def to_tensors(self, prefix: str) -> dict[str, Tensor]:
        """Tensors for a safetensors file, names starting with `prefix`."""
        return {
            f"{prefix}mean": torch.tensor(self.mean),
            f"{prefix}std": torch.tensor(self.std),
            f"{prefix}active": torch.tensor(self.active),
            f"{prefix}clip": torch.tensor([self.clip], dtype=torch.float64),
        }

    @classmethod
    def from_tensors(cls, tensors: Mapping[str, Tensor], prefix: str) -> Standardiser:
        """The inverse of `to_tensors`; KeyError naming what is missing."""
        missing = [f"{prefix}{name}" for name in ("mean", "std", "active", "clip") if f"{prefix}{name}" not in tensors]
        if missing:
            raise KeyError(f"checkpoint lacks the tensors {missing}: it was written by another model or version")
        return cls(
            mean=tensors[f"{prefix}mean"].double().numpy(),
            std=tensors[f"{prefix}std"].double().numpy(),
            active=tensors[f"{prefix}active"].bool().numpy(),
            clip=float(tensors[f"{prefix}clip"].item()),
        )

    def _check_width(self, shape: tuple[int, ...]) -> None:
        if not shape or shape[-1] != self.width:
            raise ValueError(f"standardising shape {shape}: last dimension must be {self.width}")


class RunningMoments:
    """Mean and variance of `width` channels over rows that arrive in pieces (Welford 1962, Chan et al. 1979)."""

    def __init__(self, width: int) -> None:
        if width < 1:
            raise ValueError(f"RunningMoments width = {width}: must be at least 1")
        self.count = 0
        self.mean: Array = np.zeros(width)
        self._squares: Array = np.zeros(width)

    def add(self, rows: ArrayLike) -> None:
        """Take in `rows` `(..., width)`; ValueError if one is not finite or of another width."""
        array = np.asarray(rows, dtype=np.float64)
        if array.ndim == 0 or array.shape[-1] != self.mean.size:
            raise ValueError(f"rows of shape {array.shape}: last dimension must be {self.mean.size}")
        array = array.reshape(-1, self.mean.size)
        if not np.isfinite(array).all():
            bad = np.flatnonzero(~np.isfinite(array).all(axis=0))[:8].tolist()
            raise ValueError(f"rows have non-finite values, first in channels {bad}: leave these samples out")
        if len(array):
            mean = array.mean(axis=0)
            self._combine(len(array), mean, np.square(array - mean).sum(axis=0))

    def merge(self, other: RunningMoments) -> None:
        """Take in all that `other` has seen."""
        if other.mean.size != self.mean.size:
            raise ValueError(f"merging moments of {other.mean.size} channels into {self.mean.size}")
        if other.count:
            self._combine(other.count, other.mean, other._squares)

    def _combine(self, count: int, mean: Array, squares: Array) -> None:
        total = self.count + count
        shift = mean - self.mean
        self._squares = self._squares + squares + np.square(shift) * (self.count * count / total)
        self.mean = self.mean + shift * (count / total)
        self.count = total

    def std(self) -> Array:
        """Population standard deviation `(width,)`."""
        return np.sqrt(self._squares / max(self.count, 1))

    def standardiser(self, mask: ArrayLike | None = None, clip: float = CLIP) -> Standardiser:
        """Freeze the statistics; mask `(width,)` bool is False on channels to zero, such as the base of a fixed arm.

        Channels that never varied give 0 as well. ValueError before the first row or for a mask of another shape.
        """
        if self.count == 0:
            raise ValueError("no rows seen: fit the standardiser on the training split first")
        std = self.std()
        active = std > CONSTANT_SHARE * np.abs(self.mean)
        if mask is not None:
            allowed = np.asarray(mask, dtype=bool)
            if allowed.shape != std.shape:
                raise ValueError(f"mask of shape {allowed.shape}: expected {std.shape}")
            active &= allowed
        return Standardiser(mean=self.mean.copy(), std=np.maximum(std, STD_FLOOR), active=active, clip=clip)


def signature_standardiser(moments: RunningMoments, dim: int, depth: int) -> Standardiser:
    """Of signatures `(..., S)` of a path of `dim` channels, or of their increments; each level has a least spread.

    Raises ValueError before the first row, or where `moments` are not of a signature of that depth.
    """
    fitted, levels = moments.standardiser(), level_slices(dim, depth)
    if fitted.width != levels[-1].stop:
        size = f"a signature of {dim} channels at depth {depth} has {levels[-1].stop}"
        raise ValueError(f"moments of {fitted.width} numbers: {size}")
    std = fitted.std.copy()
    for level in levels:
        varied = fitted.std[level][fitted.active[level]]
        if varied.size:
            std[level] = np.maximum(std[level], LEAST_SHARE * np.sqrt(np.square(varied).mean()))
    return replace(fitted, std=std)
