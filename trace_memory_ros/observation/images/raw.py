"""The encodings of sensor_msgs/Image to RGB, as cv_bridge converts them, and those that it does not know."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import cv2
import numpy as np
from numpy.lib.stride_tricks import as_strided
from numpy.typing import NDArray

from trace_memory_ros.observation.images.depth import depth_to_rgb, refuse_colour
from trace_memory_ros.observation.images.types import Buffer, Image, ImageError, Range, levels_of_16_bits

Pixels = NDArray[Any]
ToRgb = Callable[[Pixels], Pixels]


@dataclass(frozen=True)
class _Encoding:
    """How pixels lie, and what makes RGB of them.

    kind: NumPy type of a value. channels: values per pixel. to_rgb: of `(rows, width[, channels])`, which keeps the
    type; None for depth. least: smallest side. even: which of height and width must be even. chroma: for a second plane
    behind the first, its rows per row and its row's length per the first's.
    """

    kind: str
    channels: int
    to_rgb: ToRgb | None = None
    least: int = 1
    even: tuple[str, ...] = ()
    chroma: tuple[float, int] = (0, 1)

    def row_bytes(self, width: int) -> int:
        return width * self.channels * np.dtype(self.kind).itemsize

    def total_bytes(self, height: int, width: int, step: int) -> int:
        """Without the padding of the last row."""
        wide, (per_row, length) = self.row_bytes(width), self.chroma
        second = int(height * per_row)
        last = length * (step * (second - 1) + wide) + step if second else wide
        return step * (height - 1) + last


def decode(
    data: Buffer,
    encoding: str,
    height: int,
    width: int,
    step: int,
    is_bigendian: int,
    range_m: Range | None = None,
) -> Image:
    """The fields of a sensor_msgs/Image to `(height, width, 3)` uint8 RGB.

    Colours and grey keep their values, 16 bits scaled to 8; alpha is dropped. Depth (16UC1 in mm, 32FC1 in m) becomes
    grey on the scale of `depth_to_rgb`; for a camera with a `range_m` mono16 is depth too. The result may share memory
    with `data`. Raises ImageError.
    """
    check_layout(data, encoding, height, width, step, range_m)
    pixels = _pixels(data, _ENCODINGS[encoding], height, width, step, bool(is_bigendian))
    return to_rgb(pixels, encoding, range_m)


def check_layout(data: Buffer, encoding: str, height: int, width: int, step: int, range_m: Range | None = None) -> None:
    """Raise the ImageError that `decode` would raise, without looking at a pixel; after it, decoding cannot fail."""
    layout = _ENCODINGS.get(encoding)
    if layout is None:
        raise ImageError(
            f"image encoding {encoding!r} ({width}x{height}) is not supported: publish one of "
            f"{', '.join(ENCODINGS)}, for example through image_proc"
        )
    if not _is_depth(encoding, range_m):
        refuse_colour(f"{encoding} image of {width}x{height}", range_m)
    wide, size = layout.row_bytes(width), np.frombuffer(data, np.uint8).size
    least, side = layout.total_bytes(height, width, step), layout.least
    if height < side or width < side or step < wide or size < least:
        raise ImageError(
            f"{encoding} image of {width}x{height}, step {step}, {size} bytes: needs a size of at least {side}x{side}, "
            f"step >= {wide} and >= {least} bytes; check the publisher"
        )
    odd = [name for name, value in (("width", width), ("height", height)) if name in layout.even and value % 2]
    if odd:
        raise ImageError(
            f"{encoding} image of {width}x{height}: pixels share their colour in pairs, so {' and '.join(odd)} must be "
            "even; set the camera to an even size, or publish rgb8"
        )


def to_rgb(pixels: Pixels, encoding: str, range_m: Range | None = None) -> Image:
    """Native pixels `(h, w[, channels])` of an encoding to `(h, w, 3)` uint8 RGB."""
    convert = _ENCODINGS[encoding].to_rgb
    if convert is None or _is_depth(encoding, range_m):
        return depth_to_rgb(pixels, range_m)
    rgb = convert(pixels)
    return levels_of_16_bits(rgb) if rgb.dtype == np.uint16 else np.asarray(rgb, dtype=np.uint8)


def _is_depth(encoding: str, range_m: Range | None) -> bool:
    return encoding in DEPTHS or (encoding == "mono16" and range_m is not None)


def _pixels(data: Buffer, layout: _Encoding, height: int, width: int, step: int, bigendian: bool) -> Pixels:
    """`(rows, width[, channels])` in native byte order without padding, a second plane behind the first."""
    flat, wide = np.frombuffer(data, np.uint8), layout.row_bytes(width)
    rows = _unpadded(flat, height, wide, step)
    if layout.chroma[0]:
        per_row, length = layout.chroma
        second = _unpadded(flat[step * height :], int(height * per_row), length * wide, length * step)
        rows = np.concatenate([rows, second.reshape(-1, wide)])
    values = np.ascontiguousarray(rows).view(layout.kind)
    if bigendian != (sys.byteorder == "big") and values.dtype.itemsize > 1:
        values = values.byteswap()
    return values if layout.channels == 1 else values.reshape(len(values), width, layout.channels)


def _unpadded(flat: NDArray[np.uint8], rows: int, wide: int, step: int) -> NDArray[np.uint8]:
    return np.ascontiguousarray(as_strided(flat, (rows, wide), (step, 1), writeable=False))


def _by(code: int) -> ToRgb:
    return lambda pixels: cv2.cvtColor(pixels, code)


def _nv24(planes: Pixels) -> Pixels:
    """Each pixel doubled both ways makes a full chroma plane the quarter one of an NV12 of twice the size."""
    height, width = len(planes) // 3, planes.shape[1]
    luma = planes[:height].repeat(2, axis=0).repeat(2, axis=1)
    twice = np.concatenate([luma, planes[height:].reshape(height, 2 * width)])
    return np.ascontiguousarray(cv2.cvtColor(twice, cv2.COLOR_YUV2RGB_NV12)[::2, ::2])


def _table() -> dict[str, _Encoding]:
    swapped, grey = _by(cv2.COLOR_BGR2RGB), _by(cv2.COLOR_GRAY2RGB)
    colours: dict[str, tuple[int, ToRgb]] = {
        "rgb": (3, lambda pixels: pixels),
        "bgr": (3, swapped),
        "rgba": (4, _by(cv2.COLOR_RGBA2RGB)),
        "bgra": (4, _by(cv2.COLOR_BGRA2RGB)),
        "mono": (1, grey),
    }
    bayer = {  # OpenCV names a pattern by its second row
        "bayer_rggb": cv2.COLOR_BayerBG2RGB,
        "bayer_bggr": cv2.COLOR_BayerRG2RGB,
        "bayer_gbrg": cv2.COLOR_BayerGR2RGB,
        "bayer_grbg": cv2.COLOR_BayerGB2RGB,
    }
    found: dict[str, _Encoding] = {}
    for bits in ("8", "16"):
        found |= {name + bits: _Encoding("uint" + bits, *colour) for name, colour in colours.items()}
        found |= {name + bits: _Encoding("uint" + bits, 1, _by(code), least=3) for name, code in bayer.items()}
    # Where the order is not said, OpenCV's: RViz shows them so too.
    found["8UC1"] = _Encoding("uint8", 1, grey)
    found["8UC3"] = _Encoding("uint8", 3, swapped)
    found["8UC4"] = _Encoding("uint8", 4, _by(cv2.COLOR_BGRA2RGB))
    found["uyvy"] = found["yuv422"] = _Encoding("uint8", 2, _by(cv2.COLOR_YUV2RGB_UYVY), even=("width",))
    found["yuyv"] = found["yuv422_yuy2"] = _Encoding("uint8", 2, _by(cv2.COLOR_YUV2RGB_YUY2), even=("width",))
    for name, code in (("nv12", cv2.COLOR_YUV2RGB_NV12), ("nv21", cv2.COLOR_YUV2RGB_NV21)):
        found[name] = _Encoding("uint8", 1, _by(code), even=("width", "height"), chroma=(0.5, 1))
    found["nv24"] = _Encoding("uint8", 1, _nv24, chroma=(1, 2))
    return found | {"16UC1": _Encoding("uint16", 1), "32FC1": _Encoding("float32", 1)}


_ENCODINGS = _table()
ENCODINGS = tuple(_ENCODINGS)
DEPTHS = ("16UC1", "32FC1")
