"""Common Data Representation, read in place: numbers, texts and sequences of a message, in either byte order."""

from __future__ import annotations

import struct
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

SECOND_NS = 1_000_000_000
ENCAPSULATION_BYTES = 4
_ORDERS = {0: ">", 1: "<"}


class CdrError(ValueError):
    """A payload that is cut off or is no CDR; says at which byte."""


class Header(NamedTuple):
    """A std_msgs/Header."""

    stamp_ns: int
    frame_id: str


class Cdr:
    """Reads one payload's fields in order. at: byte after the encapsulation header. Methods raise CdrError."""

    __slots__ = ("at", "data", "order")

    def __init__(self, payload: bytes | memoryview) -> None:
        if len(payload) < ENCAPSULATION_BYTES:
            raise CdrError(f"a payload of {len(payload)} bytes has no encapsulation header")
        if payload[0] != 0 or payload[1] not in _ORDERS:
            raise CdrError(f"payload begins with {bytes(payload[:4]).hex()}: neither big- nor little-endian CDR")
        self.order = _ORDERS[payload[1]]
        self.data = memoryview(payload)[ENCAPSULATION_BYTES:]
        self.at = 0

    def unpack(self, kinds: str, align: int) -> tuple[float, ...]:
        """Numbers by struct letters, the first aligned to `align` bytes."""
        begin = -(-self.at // align) * align
        size = struct.calcsize(self.order + kinds)
        if begin + size > len(self.data):
            raise self._cut(size, begin)
        self.at = begin + size
        return struct.unpack_from(self.order + kinds, self.data, begin)

    def unsigned(self) -> int:
        """A uint32."""
        return int(self.unpack("I", 4)[0])

    def raw(self, size: int) -> memoryview:
        """The next `size` bytes, not copied."""
        end = self.at + size
        if end > len(self.data):
            raise self._cut(size, self.at)
        self.at = end
        return self.data[end - size : end]

    def text(self) -> str:
        """A string."""
        # CDR counts the closing zero; some writers leave an empty string without one.
        return bytes(self.raw(self.unsigned())).removesuffix(b"\x00").decode("utf-8", "replace")

    def texts(self) -> tuple[str, ...]:
        """A sequence of strings."""
        count = self.unsigned()
        if 4 * count > len(self.data) - self.at:
            raise self._cut(4 * count, self.at)
        return tuple(self.text() for _ in range(count))

    def numbers(self, letter: str, count: int) -> NDArray[Any]:
        """`count` numbers of one struct letter, aligned to their size."""
        kind = np.dtype(f"{self.order}{letter}")
        if not count:
            return np.zeros(0, kind)
        begin = -(-self.at // kind.itemsize) * kind.itemsize
        if begin + kind.itemsize * count > len(self.data):
            raise self._cut(kind.itemsize * count, begin)
        self.at = begin + kind.itemsize * count
        return np.frombuffer(self.data, kind, count, begin)

    def doubles(self, count: int | None = None) -> NDArray[np.float64]:
        """`count` float64, or a sequence of them."""
        count = self.unsigned() if count is None else count
        return self.numbers("d", count).astype(np.float64)

    def stamp_ns(self) -> int:
        """A builtin_interfaces/Time or Duration, ns."""
        seconds, nanoseconds = self.unpack("iI", 4)
        return int(seconds) * SECOND_NS + int(nanoseconds)

    def header(self) -> Header:
        """A std_msgs/Header."""
        return Header(self.stamp_ns(), self.text())

    def _cut(self, needed: int, begin: int) -> CdrError:
        left = max(len(self.data) - begin, 0)
        return CdrError(
            f"payload of {len(self.data) + ENCAPSULATION_BYTES} bytes is cut off: {needed} bytes are "
            f"needed at byte {begin + ENCAPSULATION_BYTES}, {left} are left"
        )


def header_stamp_ns(payload: bytes | memoryview) -> int:
    """Stamp of a message that begins with a header, ns. Raises CdrError."""
    return Cdr(payload).stamp_ns()
