"""RGB to the square sizes that policy and memory see."""

from __future__ import annotations

import cv2
import numpy as np

from trace_memory_ros.observation.images.types import Crop, Image, ImageError


def prepare(rgb: Image, px: int, crop: Crop | None = None) -> Image:
    """What `crop` keeps of `(h, w, 3)` uint8, to `(px, px, 3)` by area averaging; the aspect is squeezed.

    Raises ImageError for another shape or type.
    """
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or 0 in rgb.shape:
        raise ImageError(f"image of shape {rgb.shape}, type {rgb.dtype}: expected (h, w, 3) uint8 RGB")
    kept = rgb if crop is None else rgb[window(rgb.shape[0], crop[1], crop[3]), window(rgb.shape[1], crop[0], crop[2])]
    if kept.shape[:2] == (px, px):
        return kept.copy()
    return np.asarray(cv2.resize(kept, (px, px), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def window(size: int, begin: float, end: float) -> slice:
    """The rows or columns of `size` between two shares, at least one."""
    first = min(round(begin * size), size - 1)
    return slice(first, max(round(end * size), first + 1))


def shrunk(images: Image, px: int) -> Image:
    """Images `(..., P, P, 3)` uint8 to `(..., px, px, 3)`, each by `prepare`."""
    flat = images.reshape(-1, *images.shape[-3:])
    small = np.empty((len(flat), px, px, 3), np.uint8)
    for target, image in zip(small, flat, strict=True):
        target[:] = prepare(image, px)
    return small.reshape(*images.shape[:-3], px, px, 3)
