"""Every image's way into the package: message fields to RGB, RGB to the square sizes that policy and memory see.

Raw images are read through cv_bridge where a ROS install has a sound one, else through rosbags-image, after their
rows were brought to native byte order without padding here, so that both give the same. Compressed images go to the
decoder that both wrap.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import cv2
import numpy as np
from numpy.typing import NDArray

Image = NDArray[np.uint8]
Buffer = bytes | bytearray | memoryview | NDArray[np.uint8]

DEPTH_RANGE_M = 4.0
"""Depth that becomes white."""

# Encoding -> (NumPy type of a channel, channels).
_LAYOUTS: dict[str, tuple[str, int]] = {
    "rgb8": ("uint8", 3),
    "bgr8": ("uint8", 3),
    "rgba8": ("uint8", 4),
    "bgra8": ("uint8", 4),
    "mono8": ("uint8", 1),
    "16UC1": ("uint16", 1),
    "32FC1": ("float32", 1),
}
_DEPTHS = ("16UC1", "32FC1")
# How a whole file ends: a cut JPEG or PNG decodes to a half-grey picture without an error.
_ENDINGS = {"jpeg": b"\xff\xd9", "jpg": b"\xff\xd9", "png": b"IEND\xaeB`\x82"}


class ImageError(ValueError):
    """An image cannot be used; the message names encoding, size and remedy."""


@dataclass
class _Message:
    """The fields of sensor_msgs/Image that decoders read."""

    data: Any
    encoding: str
    height: int
    width: int
    step: int
    is_bigendian: int


def decode(data: Buffer, encoding: str, height: int, width: int, step: int, is_bigendian: int) -> Image:
    """The fields of a sensor_msgs/Image to `(height, width, 3)` uint8 RGB.

    Colours and grey keep their values, alpha is dropped. Depth (16UC1 in mm, 32FC1 in m) becomes grey on the fixed
    scale of `depth_to_rgb`. The result may share memory with `data`. Raises ImageError.
    """
    check_layout(data, encoding, height, width, step)
    rows = _rows(data, encoding, height, width, step, bool(is_bigendian))
    native = int(sys.byteorder == "big")
    message = _Message(rows.data, encoding, height, width, rows.nbytes // height, native)
    return _decoder()(message, None) if encoding not in _DEPTHS else depth_to_rgb(_decoder()(message, encoding))


def check_layout(data: Buffer, encoding: str, height: int, width: int, step: int) -> None:
    """Raise the ImageError that `decode` would raise, without looking at a pixel; after it, decoding cannot fail."""
    if encoding not in _LAYOUTS:
        raise ImageError(
            f"image encoding {encoding!r} ({width}x{height}) is not supported: publish one of {', '.join(_LAYOUTS)}, "
            "for example through image_proc"
        )
    wide, size = _row_bytes(encoding, width), np.frombuffer(data, np.uint8).size
    least = step * (height - 1) + wide
    if height < 1 or width < 1 or step < wide or size < least:
        raise ImageError(
            f"{encoding} image of {width}x{height}, step {step}, {size} bytes: needs a size of at least 1x1, "
            f"step >= {wide} and >= {least} bytes; check the publisher"
        )


def decode_compressed(data: Buffer, format: str) -> Image:  # noqa: A002 - the message's own field name
    """The fields of a sensor_msgs/CompressedImage, JPEG or PNG, to `(height, width, 3)` uint8 RGB.

    A `16UC1` PNG is depth in mm. Orientation tags are ignored. Raises ImageError.
    """
    name = format.lower()
    codec = next((codec for codec in _ENDINGS if codec in name), None)
    if codec is None or "compresseddepth" in name:
        raise ImageError(f"compressed image format {format!r} is not supported: publish jpeg or png")
    content = np.frombuffer(data, np.uint8)
    if _ENDINGS[codec] not in content[-64:].tobytes():
        raise ImageError(
            f"compressed image of format {format!r}, {content.size} bytes, is cut off or not {codec}: check the "
            "publisher"
        )
    depth = format.split(";")[0].strip() == "16UC1"
    flags = cv2.IMREAD_UNCHANGED if depth else cv2.IMREAD_COLOR | cv2.IMREAD_IGNORE_ORIENTATION
    try:
        image = cv2.imdecode(content, flags)
    except cv2.error:  # a header that claims more pixels than OpenCV takes
        image = None
    if image is None:
        raise ImageError(
            f"compressed image of format {format!r}, {content.size} bytes, cannot be decoded: check the publisher"
        )
    if not depth:
        return np.asarray(cv2.cvtColor(image, cv2.COLOR_BGR2RGB), dtype=np.uint8)
    if image.dtype != np.uint16 or image.ndim != 2:
        raise ImageError(
            f"compressed image of format {format!r} holds {image.dtype} {image.shape}: depth needs a 16-bit grey png"
        )
    return depth_to_rgb(image)


def depth_to_rgb(depth: NDArray[Any]) -> Image:
    """Depth `(h, w)`, uint16 in mm or float32 in m, to grey `(h, w, 3)` uint8: 0 at 0 m, 255 at 4 m and beyond.

    One scale for all images, since a per-image one would turn the same thing into different pictures. No reading is 0:
    0 mm, NaN, minus infinity. Plus infinity (nothing in range) is 255.
    """
    if depth.dtype == np.uint16:
        grey = _millimetre_levels()[depth]
    else:
        levels = np.nan_to_num(depth, nan=0.0, posinf=DEPTH_RANGE_M, neginf=0.0) * (255.0 / DEPTH_RANGE_M)
        grey = np.rint(np.clip(levels, 0.0, 255.0)).astype(np.uint8)
    return np.repeat(grey[..., None], 3, axis=-1)


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


def _row_bytes(encoding: str, width: int) -> int:
    kind, channels = _LAYOUTS[encoding]
    return width * channels * np.dtype(kind).itemsize


def _rows(data: Buffer, encoding: str, height: int, width: int, step: int, bigendian: bool) -> NDArray[Any]:
    """The pixels as `(height, width * channels)` in native byte order without row padding."""
    dtype = np.dtype(_LAYOUTS[encoding][0])
    flat = np.frombuffer(data, np.uint8)
    shaped = np.lib.stride_tricks.as_strided(flat, (height, _row_bytes(encoding, width)), (step, 1), writeable=False)
    rows = np.ascontiguousarray(shaped).view(dtype)
    return rows.byteswap() if bigendian != (sys.byteorder == "big") and dtype.itemsize > 1 else rows


def _through_rosbags(message: _Message, encoding: str | None) -> NDArray[Any]:
    from rosbags.image import message_to_cvimage

    image: NDArray[Any] = message_to_cvimage(message, encoding or "rgb8")  # type: ignore[arg-type]
    return image


def _through_cv_bridge(message: _Message, encoding: str | None) -> NDArray[Any]:
    from cv_bridge import CvBridge

    image: NDArray[Any] = CvBridge().imgmsg_to_cv2(message, encoding or "rgb8")
    return image


@cache
def _decoder() -> Callable[[_Message, str | None], NDArray[Any]]:
    """cv_bridge if it is there and reads 16 bits as 16 bits, which ROS 1 ports on PyPI don't; else rosbags-image."""
    probe = _Message(np.array([[1, 258]], np.uint16).data, "16UC1", 1, 2, 4, int(sys.byteorder == "big"))
    try:
        if _through_cv_bridge(probe, "16UC1").tolist() == [[1, 258]]:
            return _through_cv_bridge
    except Exception:  # whatever is wrong with it, the other reader works
        pass
    return _through_rosbags


@cache
def _millimetre_levels() -> Image:
    """Grey level of every 16-bit depth in mm."""
    metres = np.arange(65536) / 1000.0
    return np.rint(np.clip(metres * (255.0 / DEPTH_RANGE_M), 0.0, 255.0)).astype(np.uint8)
