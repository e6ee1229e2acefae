"""What the readers of images share."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Buffer = bytes | bytearray | memoryview | NDArray[np.uint8]
Range = tuple[float, float]
"""The depths in m that become 0 and 255."""
Crop = tuple[float, float, float, float]
"""Left, top, right and bottom of what is kept of an image, as shares of its width and height."""


class ImageError(ValueError):
    """An image cannot be used; the message names encoding, size and remedy."""


def levels_of_16_bits(image: NDArray[Any]) -> Image:
    """uint16 values to uint8, 65535 to 255, rounded to the nearest."""
    return np.asarray(_LEVELS[image], dtype=np.uint8)


_LEVELS = ((np.arange(65536, dtype=np.uint32) + 128) // 257).astype(np.uint8)
