"""A camera's images over an episode: each kept once, in memory or in a file, at any rate of ticks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files import atomic
from trace_memory_ros.files.stored import AT_ONCE, StoredArray
from trace_memory_ros.observation.images import Image, shrunk


class Frames:
    """One camera over T ticks. pixels `(N, P, P, 3)` uint8, read from their file at each use where they are stored;
    index `(T,)`: which of them each tick holds.

    Raises ValueError where the two do not fit.
    """

    __slots__ = ("index", "pixels")

    def __init__(self, pixels: Image | StoredArray, index: NDArray[np.int64]) -> None:
        if pixels.ndim != 4 or pixels.shape[1] != pixels.shape[2] or pixels.shape[3] != 3 or pixels.dtype != np.uint8:
            raise ValueError(f"images of shape {pixels.shape}, type {pixels.dtype}: need (N, P, P, 3) uint8")
        if index.ndim != 1 or (len(index) and not 0 <= index.min() <= index.max() < len(pixels)):
            raise ValueError(f"index of shape {index.shape} does not point into {len(pixels)} images")
        self.pixels = pixels
        self.index = index

    @classmethod
    def of(cls, images: Image) -> Frames:
        """Of one image `(P, P, 3)` per tick."""
        return cls(images, np.arange(len(images)))

    @classmethod
    def held(cls, images: Sequence[Image]) -> Frames:
        """Of one image `(P, P, 3)` per tick, kept once for as long as it is the same."""
        kept = [0, *(k for k in range(1, len(images)) if not np.array_equal(images[k], images[k - 1]))]
        return cls(np.stack([images[k] for k in kept]), np.searchsorted(kept, np.arange(len(images)), side="right") - 1)

    def __len__(self) -> int:
        return len(self.index)

    def __getitem__(self, ticks: Any) -> Image:
        """Images `(..., P, P, 3)` at ticks, which may be a number, a slice or an array."""
        return np.asarray(self.pixels[self.index[ticks]])

    @property
    def px(self) -> int:
        """P."""
        return int(self.pixels.shape[1])

    def at(self, ticks: Any) -> Frames:
        """The episode of these ticks alone, in the order given; the same pixels."""
        return Frames(self.pixels, self.index[ticks])

    def shrunk(self, px: int) -> Frames:
        """The images at another side; of stored ones they are stored beside, once."""
        if px == self.px:
            return self
        if isinstance(self.pixels, StoredArray):
            return Frames(_stored_beside(self.pixels, px), self.index)
        return Frames(shrunk(self.pixels, px), self.index)

    @property
    def nbytes(self) -> int:
        """Bytes of all images."""
        return int(self.pixels.nbytes)

    def loaded(self) -> Frames:
        """The same in memory."""
        return Frames(np.asarray(self.pixels), self.index)


def _stored_beside(pixels: StoredArray, px: int) -> StoredArray:
    """The images at another side, in a file beside theirs."""
    path = pixels.path.with_suffix(f".{px}px.npy")
    if not path.exists():
        with atomic.replacing(path) as partial, partial.open("wb") as file:
            shape = (len(pixels), px, px, 3)
            np.lib.format.write_array_header_1_0(file, {"descr": "|u1", "fortran_order": False, "shape": shape})
            for first in range(0, len(pixels), AT_ONCE):
                file.write(shrunk(pixels[first : first + AT_ONCE], px).tobytes())
    return StoredArray(path)


Cameras = Mapping[str, Frames]
"""An episode's frames by camera, in configured order."""


def at(cameras: Cameras, ticks: Any) -> dict[str, Frames]:
    """The episode of these ticks alone."""
    return {name: frames.at(ticks) for name, frames in cameras.items()}


def resized(cameras: Cameras, px: int) -> dict[str, Frames]:
    """All cameras at one side."""
    return {name: frames.shrunk(px) for name, frames in cameras.items()}


def stacked(cameras: Cameras, ticks: Any) -> Image:
    """All cameras' images `(..., C, P, P, 3)` at ticks. Raises ValueError for cameras of unlike sizes."""
    sides = {name: frames.px for name, frames in cameras.items()}
    if len(set(sides.values())) > 1:
        raise ValueError(f"cameras of unlike sizes cannot be stacked: {sides}; give them one image_px")
    return np.stack([frames[ticks] for frames in cameras.values()], axis=-4)


def side_by_side(images: Mapping[str, Image], px: int) -> Image:
    """One instant of all cameras, each `px` wide and high, as one picture `(px, C * px, 3)`."""
    return np.concatenate([shrunk(image, px) for image in images.values()], axis=1)


def of_stack(names: tuple[str, ...], images: Image) -> dict[str, Frames]:
    """Frames by camera of images `(T, C, P, P, 3)`."""
    return {name: Frames.of(images[:, c]) for c, name in enumerate(names)}
