"""sensor_msgs/CompressedImage to RGB: head and end are checked at once, pixels made when the picture is needed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.images.compressed_depth import PackedDepth, is_compressed_depth, open_depth
from trace_memory_ros.observation.images.depth import refuse_colour
from trace_memory_ros.observation.images.files import JPEG, TIFF, FileHead, described, file_head, unpack
from trace_memory_ros.observation.images.raw import DEPTHS, ENCODINGS, to_rgb
from trace_memory_ros.observation.images.sizes import prepare
from trace_memory_ros.observation.images.types import Buffer, Crop, Image, ImageError, Range

REDUCED_SIDES = 2
"""A JPEG is unpacked at the smallest scale at which what is kept has sides this many times the policy image's."""
_REDUCED = {8: cv2.IMREAD_REDUCED_COLOR_8, 4: cv2.IMREAD_REDUCED_COLOR_4, 2: cv2.IMREAD_REDUCED_COLOR_2}
_COLOUR = cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
_BAYER, _GREY = "bayer", "mono"
_BY_CHANNELS = {1: "mono", 3: "bgr", 4: "bgra"}
_VIDEO = re.compile(r"h\.?26[45]|hevc|avc|av1|vp[89]", re.IGNORECASE)


@dataclass(frozen=True)
class PackedImage:
    """A whole file whose pixels have not been looked at.

    encoding: of the image before it was packed, where the format says it. range_m: of a camera of depth.
    """

    data: memoryview
    format: str
    encoding: str
    head: FileHead
    range_m: Range | None

    @property
    def size(self) -> tuple[int, int]:
        """Height and width."""
        return self.head.height, self.head.width

    @property
    def _mosaic(self) -> bool:
        """Whether it is packed as the sensor has it, each pixel of one colour, which making it smaller would lose."""
        grey = _GREY in self.format.partition(";")[2]
        return self.encoding.startswith(_BAYER) and self.head.channels == 1 and not grey

    def policy_image(self, px: int, crop: Crop | None = None) -> Image:
        """`(px, px, 3)` uint8 RGB. Raises ImageError where the pixels are damaged."""
        scale = 1 if self._mosaic else reduction(self.head, px, crop)
        if scale == 1:
            return prepare(self.rgb(), px, crop)
        small = prepare(self._unpack(_REDUCED[scale] | cv2.IMREAD_IGNORE_ORIENTATION), px, crop)
        return np.asarray(cv2.cvtColor(small, cv2.COLOR_BGR2RGB), dtype=np.uint8)

    def rgb(self) -> Image:
        """`(h, w, 3)` uint8 in full size. Raises ImageError where the pixels are damaged."""
        if self.head.bits <= 8 and self.head.codec != TIFF and not self._mosaic:
            return to_rgb(self._unpack(_COLOUR), "bgr8")
        pixels = self._unpack(cv2.IMREAD_UNCHANGED)
        encoding = self._encoding_of(pixels)
        if encoding not in ENCODINGS:
            raise ImageError(
                f"{described(self.format, len(self.data))} holds {pixels.dtype} {pixels.shape}: publish 8 or 16 bits "
                "of grey or colour"
            )
        return to_rgb(pixels, encoding, self.range_m)

    def _encoding_of(self, pixels: NDArray[Any]) -> str:
        channels, bits = 1 if pixels.ndim == 2 else pixels.shape[2], 8 * pixels.dtype.itemsize
        if pixels.dtype.kind != "u":
            return f"{bits}FC{channels}"
        if channels == 1 and self.encoding in DEPTHS:
            return f"{bits}UC1"
        if self._mosaic:
            return f"{self.encoding.rstrip('0123456789')}{bits}"
        return f"{_BY_CHANNELS.get(channels, channels)}{bits}"

    def _unpack(self, flags: int) -> NDArray[Any]:
        return unpack(self.data, flags, self.format)


def open_compressed(data: Buffer, format: str, range_m: Range | None = None) -> PackedImage | PackedDepth:  # noqa: A002 - the message's own field name
    """The fields of a sensor_msgs/CompressedImage: JPEG, PNG, WebP, TIFF, or compressedDepth.

    What the file is its first bytes say; the format, what its values mean: 16UC1 is depth in mm, a Bayer pattern is
    resolved. With a `range_m` a grey 16-bit PNG is depth whatever the format says. Raises ImageError for what is cut
    off or not supported.
    """
    content = np.frombuffer(data, np.uint8).data
    if is_compressed_depth(format):
        return open_depth(content, format, range_m)
    head, what = file_head(content), described(format, len(content))
    if isinstance(head, str):
        if _VIDEO.search(format):
            raise ImageError(
                f"{what} is video: publish it as foxglove_msgs/msg/CompressedVideo or FFMPEGPacket with transport "
                "video, or publish jpeg or png"
            )
        raise ImageError(f"{what} {head}")
    encoding = format.split(";")[0].strip()
    if min(head.height, head.width) < (3 if encoding.startswith(_BAYER) else 1):
        raise ImageError(f"{what} says that it is {head.width}x{head.height}: check the publisher")
    _check_depth(head, encoding, what, range_m)
    return PackedImage(content, format, encoding, head, range_m)


def decode_compressed(data: Buffer, format: str, range_m: Range | None = None) -> Image:  # noqa: A002
    """The fields of a sensor_msgs/CompressedImage to `(h, w, 3)` uint8 RGB in full size. Raises ImageError.

    Orientation tags are ignored, alpha is dropped, 16 bits are scaled to 8.
    """
    return open_compressed(data, format, range_m).rgb()


def reduction(head: FileHead, px: int, crop: Crop | None = None) -> int:
    """1, 2, 4 or 8: by how much a JPEG may be unpacked smaller for a policy image of `px`; 1 for other files."""
    if head.codec != JPEG:
        return 1
    left, top, right, bottom = crop or (0.0, 0.0, 1.0, 1.0)
    side = int(min((bottom - top) * head.height, (right - left) * head.width))
    return next((scale for scale in _REDUCED if side // scale >= REDUCED_SIDES * px), 1)


def _check_depth(head: FileHead, encoding: str, what: str, range_m: Range | None) -> None:
    """Raise ImageError where a file that must hold depth cannot."""
    deep = head.channels == 1 and (head.bits == 16 or (head.bits == 32 and head.codec == TIFF))
    if encoding in DEPTHS and not (deep and (head.bits == 16) == (encoding == "16UC1")):
        raise ImageError(
            f"{what} holds uint{head.bits} in {head.channels} channels: depth needs a 16-bit grey png of 16UC1; take "
            "the topic that ends in /compressedDepth"
        )
    if not deep:
        refuse_colour(what, range_m)
