"""Depth to grey, on one scale per camera."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.images.types import Image, ImageError, Range

DEPTH_RANGE_M: Range = (0.0, 4.0)
"""Of a camera whose configuration gives none."""


def depth_to_rgb(depth: NDArray[Any], range_m: Range | None = None) -> Image:
    """Depth `(h, w)`, uint16 in mm or float32 in m, to grey `(h, w, 3)` uint8: 0 at the near end of the range, 255 at
    its far end and beyond.

    One scale for all images of a camera, since a per-image one would turn the same thing into different pictures. No
    reading is 0: 0 mm, NaN, minus infinity. Plus infinity (nothing in range) is 255.
    """
    near, far = range_m or DEPTH_RANGE_M
    if depth.dtype == np.uint16:
        grey = _millimetre_levels(near, far)[depth]
    else:
        metres = np.nan_to_num(depth, nan=near, posinf=far, neginf=near)
        levels = (metres - near if near else metres) * (255.0 / (far - near))
        grey = np.rint(np.clip(levels, 0.0, 255.0)).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=-1)


def refuse_colour(what: str, range_m: Range | None) -> None:
    """Raise ImageError where a camera that is configured as depth sends something else."""
    if range_m is not None:
        raise ImageError(
            f"{what} is not depth, and the camera has range_m = [{range_m[0]:g}, {range_m[1]:g}]: leave range_m out, "
            "or name the topic of the depth (16UC1, 32FC1)"
        )


@cache
def _millimetre_levels(near: float, far: float) -> Image:
    """Grey level of every 16-bit depth in mm."""
    metres = np.arange(65536) / 1000.0
    grey = np.rint(np.clip((metres - near) * (255.0 / (far - near)), 0.0, 255.0)).astype(np.uint8)
    grey[0] = 0
    return grey
