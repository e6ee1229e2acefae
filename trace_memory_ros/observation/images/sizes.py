"""RGB to the square sizes that policy and memory see."""

from __future__ import annotations

import cv2
import numpy as np

from trace_memory_ros.observation.images.types import Image, ImageError


def prepare(rgb: Image, px: int) -> Image:
    """`(h, w, 3)` uint8 to `(px, px, 3)` by area averaging; the aspect is squeezed, nothing is cropped.

    Raises ImageError for another shape or type.
    """
    if rgb.ndim != 3 or rgb.shape[2] != 3 or rgb.dtype != np.uint8 or 0 in rgb.shape:
        raise ImageError(f"image of shape {rgb.shape}, type {rgb.dtype}: expected (h, w, 3) uint8 RGB")
    if rgb.shape[:2] == (px, px):
        return rgb.copy()
    return np.asarray(cv2.resize(rgb, (px, px), interpolation=cv2.INTER_AREA), dtype=np.uint8)


def thumbnails(images: Image, px: int) -> Image:
    """Policy images `(..., P, P, 3)` uint8 to the memory's `(..., px, px, 3)`, each by `prepare`."""
    flat = images.reshape(-1, *images.shape[-3:])
    small = np.empty((len(flat), px, px, 3), np.uint8)
    for target, image in zip(small, flat, strict=True):
        target[:] = prepare(image, px)
    return small.reshape(*images.shape[:-3], px, px, 3)
