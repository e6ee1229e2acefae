"""What compressed_depth_image_transport publishes: 12 bytes of parameters, then a 16-bit PNG or an RVL stream.

Of 16UC1 the stream holds millimetres. Of 32FC1 it holds q = A / depth + B, where A and B are the header's two floats
and 0 stands for no reading.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.images.depth import depth_to_rgb
from trace_memory_ros.observation.images.files import PNG, described, file_head, unpack
from trace_memory_ros.observation.images.sizes import prepare
from trace_memory_ros.observation.images.types import Crop, Image, ImageError, Range

HEADER = struct.Struct("<iff")
RVL_HEADER = struct.Struct("<II")
"""Width and height, before the code."""
_NAME = "compresseddepth"
_MILLIMETRES, _INVERSE = ("16UC1", "mono16"), ("32FC1",)
_MOST_PIXELS = 2**26


@dataclass(frozen=True)
class PackedDepth:
    """A whole stream whose values have not been looked at."""

    data: memoryview
    format: str
    encoding: str
    size: tuple[int, int]
    range_m: Range | None

    def policy_image(self, px: int, crop: Crop | None = None) -> Image:
        """`(px, px, 3)` uint8 grey. Raises ImageError where the stream is damaged."""
        return prepare(self.rgb(), px, crop)

    def rgb(self) -> Image:
        """`(h, w, 3)` uint8 grey in full size. Raises ImageError where the stream is damaged."""
        return depth_to_rgb(self.depth(), self.range_m)

    def depth(self) -> NDArray[Any]:
        """`(h, w)` uint16 in mm, or float32 in m with NaN for no reading."""
        values = self._values()
        if self.encoding in _MILLIMETRES:
            return values
        _, scale, offset = HEADER.unpack_from(self.data)
        with np.errstate(divide="ignore", invalid="ignore"):
            metres = np.float32(scale) / (values.astype(np.float32) - np.float32(offset))
        return np.where(values == 0, np.float32(np.nan), metres)

    def _values(self) -> NDArray[np.uint16]:
        stream = self.data[HEADER.size :]
        if _is_rvl(self.format):
            # Loads a compiler, which few cameras need.
            from trace_memory_ros.observation.images import rvl

            values = rvl.decode(bytes(stream[RVL_HEADER.size :]), self.size[0] * self.size[1])
            if values is not None:
                return values.reshape(self.size)
            raise ImageError(f"{described(self.format, len(self.data))} cannot be decoded: check the publisher")
        return np.asarray(unpack(stream, cv2.IMREAD_UNCHANGED, self.format), dtype=np.uint16)


def is_compressed_depth(format: str) -> bool:  # noqa: A002 - the message's own field name
    """Whether a CompressedImage's format names this transport."""
    return _NAME in format.lower()


def open_depth(data: memoryview, format: str, range_m: Range | None = None) -> PackedDepth:  # noqa: A002
    """Check head and end. Raises ImageError."""
    encoding, what = format.split(";")[0].strip(), described(format, len(data))
    if encoding not in (*_MILLIMETRES, *_INVERSE):
        raise ImageError(f"{what}: its format must begin with 16UC1 or 32FC1; publish depth of one of them")
    stream = data[HEADER.size :]
    size = _rvl_size(stream) if _is_rvl(format) else _png_size(stream)
    if size is None or min(size) < 1 or size[0] * size[1] > _MOST_PIXELS:
        kind = "RVL stream" if _is_rvl(format) else "16-bit grey png"
        raise ImageError(f"{what} is cut off, or holds no {kind} after {HEADER.size} bytes: check the publisher")
    return PackedDepth(data, format, encoding, size, range_m)


def _is_rvl(format: str) -> bool:  # noqa: A002
    return format.lower().partition(_NAME)[2].strip() == "rvl"


def _png_size(stream: memoryview) -> tuple[int, int] | None:
    head = file_head(stream)
    if isinstance(head, str) or (head.codec, head.bits, head.channels) != (PNG, 16, 1):
        return None
    return head.height, head.width


def _rvl_size(stream: memoryview) -> tuple[int, int] | None:
    if len(stream) <= RVL_HEADER.size:
        return None
    width, height = RVL_HEADER.unpack_from(stream)
    return height, width
