"""What a compressed image file says of itself without being decompressed: its size, and whether it is all there.

A cut JPEG or PNG decodes to a half-grey picture without an error, so its end is looked for. What lies behind the end,
such as the padding of a buffer of fixed size, is no fault.
"""

from __future__ import annotations

import re
import struct
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.images.types import ImageError

JPEG, PNG, WEBP, TIFF = "jpeg", "png", "webp", "tiff"
_MAGIC = {
    JPEG: (b"\xff\xd8\xff",),
    PNG: (b"\x89PNG\r\n\x1a\n",),
    WEBP: (b"RIFF",),
    TIFF: (b"II*\0", b"MM\0*"),
}
# Within compressed data FF is followed by 00 or by a restart marker; both are passed over, as are fill bytes.
_JPEG_MARKER = re.compile(rb"\xff[^\x00\x01\xff\xd0-\xd7]", re.DOTALL)
_SOI, _EOI, _SOS = 0xD8, 0xD9, 0xDA
_JPEG_SIZES = frozenset(range(0xC0, 0xD0)) - {0xC4, 0xC8, 0xCC}
_TAIL_BYTES = 64
_TIFF_WIDTH, _TIFF_HEIGHT, _TIFF_BITS, _TIFF_STRIPS, _TIFF_TILES = 256, 257, 258, (273, 279), (324, 325)
_TIFF_SHORT, _TIFF_LONG = 3, 4


class FileHead(NamedTuple):
    """bits: per value. channels: as stored; a palette counts as three."""

    codec: str
    height: int
    width: int
    bits: int
    channels: int


def file_head(data: memoryview) -> FileHead | str:
    """A file's head, or what is wrong with it, and the remedy: it is cut off or of no known codec."""
    begin = bytes(data[:12])
    for codec, magic in _MAGIC.items():
        if begin.startswith(magic) and (codec != WEBP or begin[8:] == b"WEBP"):
            try:
                head = _READERS[codec](data)
            except (struct.error, IndexError):
                head = None
            return head or f"is cut off, or no whole {codec}: check the publisher"
    return "begins as no JPEG, PNG, WebP or TIFF file: publish jpeg or png, for example by image_transport"


def unpack(data: memoryview, flags: int, format: str) -> NDArray[Any]:  # noqa: A002 - the message's own field name
    """A file's pixels by OpenCV's `flags`. Raises ImageError."""
    try:
        image = cv2.imdecode(np.frombuffer(data, np.uint8), flags)
    except cv2.error:  # a header that claims more pixels than OpenCV takes
        image = None
    if image is None:
        raise ImageError(f"{described(format, len(data))} cannot be decoded: check the publisher")
    return image


def described(format: str, size: int) -> str:  # noqa: A002
    """A compressed image for a fault; without its size, which differs in each, so that one outage is one fault."""
    return f"compressed image of format {format!r}" if size else f"empty compressed image of format {format!r}"


def _jpeg(data: memoryview) -> FileHead | None:
    at, head, scanned = 2, None, False
    while found := _JPEG_MARKER.search(data, at):
        marker, at = data[found.end() - 1], found.end()
        if marker == _EOI:
            return head if scanned else None
        if marker == _SOI:
            return None
        if marker in _JPEG_SIZES:
            bits, height, width, channels = struct.unpack_from(">BHHB", data, at + 2)
            head = FileHead(JPEG, height, width, bits, channels)
        elif marker == _SOS:
            scanned = True
            # An end where one is looked for first spares a walk through the compressed data.
            if bytes(data[max(at, len(data) - _TAIL_BYTES) :]).rstrip(b"\0").endswith(bytes((0xFF, _EOI))):
                return head
        at += int(struct.unpack_from(">H", data, at)[0])
    return None


def _png(data: memoryview) -> FileHead | None:
    kind, width, height, bits, colour = struct.unpack_from(">4sIIBB", data, 12)
    if kind != b"IHDR":
        return None
    at = 8
    while at + 12 <= len(data):
        length, kind = struct.unpack_from(">I4s", data, at)
        at += 12 + length
        if kind == b"IEND":
            return FileHead(PNG, height, width, bits, {0: 1, 4: 2, 6: 4}.get(colour, 3)) if at <= len(data) else None
    return None


def _webp(data: memoryview) -> FileHead | None:
    length, _, kind = struct.unpack_from("<I4s4s", data, 4)
    if 8 + length > len(data):
        return None
    if kind == b"VP8X":
        width, height = (1 + int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
    elif kind == b"VP8L":
        packed = struct.unpack_from("<I", data, 21)[0]
        width, height = 1 + (packed & 0x3FFF), 1 + (packed >> 14 & 0x3FFF)
    else:
        width, height = (value & 0x3FFF for value in struct.unpack_from("<HH", data, 26))
    return FileHead(WEBP, height, width, 8, 3)


def _tiff(data: memoryview) -> FileHead | None:
    order = "<" if data[0] == ord("I") else ">"
    first = struct.unpack_from(order + "I", data, 4)[0]
    tags: dict[int, tuple[int, ...]] = {}
    for i in range(struct.unpack_from(order + "H", data, first)[0]):
        at = first + 2 + 12 * i
        tag, kind, count = struct.unpack_from(order + "HHI", data, at)
        if kind not in (_TIFF_SHORT, _TIFF_LONG):
            continue
        letter, size = ("H", 2) if kind == _TIFF_SHORT else ("I", 4)
        if count * size > 4:
            at = struct.unpack_from(order + "I", data, at + 8)[0] - 8
        if count * size > len(data):
            return None
        tags[tag] = struct.unpack_from(f"{order}{count}{letter}", data, at + 8)
    for begins, lengths in (_TIFF_STRIPS, _TIFF_TILES):
        if begins in tags and lengths in tags and _TIFF_WIDTH in tags and _TIFF_HEIGHT in tags:
            ends = (begin + length for begin, length in zip(tags[begins], tags[lengths], strict=False))
            bits = tags.get(_TIFF_BITS, (1,))
            whole = max(ends, default=0) <= len(data)
            return FileHead(TIFF, tags[_TIFF_HEIGHT][0], tags[_TIFF_WIDTH][0], bits[0], len(bits)) if whole else None
    return None


_READERS = {JPEG: _jpeg, PNG: _png, WEBP: _webp, TIFF: _tiff}
