"""H.264 and H.265 as far as losses show in them: key frames, parameter sets, and the numbers that pictures carry.

FFmpeg's decoders conceal what is missing: after a lost packet they give wrong pictures without a word. So the numbers
are read here: in H.264 `frame_num` counts reference pictures (ITU-T H.264, 7.4.3); in H.265 the picture order count
goes up by one from picture to picture where none is reordered (ITU-T H.265, 8.3.1).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field

H264, H265 = "h264", "hevc"
_START = re.compile(rb"\x00\x00\x01")
_H264_SLICE, _H264_KEY, _H264_SETS = range(1, 6), 5, (7, 8)
_H265_SLICE, _H265_KEY, _H265_SETS = range(32), range(16, 24), (32, 33, 34)
_H265_INSTANT = (19, 20)
_HEAD_BYTES = 64
_WITH_CHROMA = (44, 83, 86, 100, 110, 118, 122, 128, 134, 135, 138, 139, 244)


UNKNOWN = -1
"""A number that no picture has."""


class BitstreamError(ValueError):
    """Data that ends within a number, or refers to parameter sets that were not sent."""


class Bits:
    """Reads a NAL unit's payload from its first bit. Raises BitstreamError."""

    def __init__(self, payload: bytes) -> None:
        clean = payload.replace(b"\0\0\3", b"\0\0")
        self._value, self._left = int.from_bytes(clean, "big"), 8 * len(clean)

    def take(self, count: int) -> int:
        """u(count)."""
        self._left -= count
        if self._left < 0:
            raise BitstreamError("a header is cut off")
        return self._value >> self._left & ((1 << count) - 1)

    def unsigned(self) -> int:
        """ue(v), an Exp-Golomb number."""
        zeros = 0
        while not self.take(1):
            zeros += 1
        return (1 << zeros) - 1 + self.take(zeros)

    def signed(self) -> int:
        """se(v)."""
        code = self.unsigned()
        return (code + 1) // 2 if code % 2 else -(code // 2)


@dataclass(frozen=True)
class Access:
    """What one packet holds. picture: whether there is one. sets: its parameter sets, as they were sent.

    number: of the picture, from 0 to `modulus` and again, or UNKNOWN. reference: whether the next one's is higher.
    gaps: whether numbers may be left out.
    """

    picture: bool
    key: bool
    sets: bytes
    number: int = 0
    modulus: int = 1
    reference: bool = True
    gaps: bool = False


def nal_units(data: bytes) -> Iterator[bytes]:
    """The NAL units of Annex B data, without start codes. Raises BitstreamError where there is none."""
    starts = [found.end() for found in _START.finditer(data)]
    if not starts:
        raise BitstreamError("no start code of Annex B is in it")
    for begin, end in zip(starts, [*(start - 3 for start in starts[1:]), len(data)], strict=True):
        unit = data[begin:end].rstrip(b"\0")
        if unit:
            yield unit


@dataclass
class H264Reader:
    """Reads the packets of one H.264 stream in order."""

    _sequences: dict[int, tuple[int, int, bool]] = field(default_factory=dict)
    _pictures: dict[int, int] = field(default_factory=dict)

    def read(self, data: bytes) -> Access:
        """Raises BitstreamError."""
        sets, first, key = b"", b"", False
        for unit in nal_units(data):
            kind = unit[0] & 31
            if kind in _H264_SETS:
                sets += b"\0\0\0\1" + unit
                self._keep(kind, Bits(unit[1:]))
            elif kind in _H264_SLICE:
                key |= kind == _H264_KEY
                first = first or unit
        if not first:
            return Access(False, False, sets)
        bits = Bits(first[1:_HEAD_BYTES])
        bits.unsigned()  # first macroblock
        bits.unsigned()  # slice type
        known = self._sequences.get(self._pictures.get(bits.unsigned(), -1))
        if known is None:
            return _without_sets(key, sets)
        planes, length, gaps = known
        bits.take(planes)
        number = bits.take(length)
        return Access(True, key, sets, number, 1 << length, bool(first[0] >> 5 & 3), gaps)

    def _keep(self, kind: int, bits: Bits) -> None:
        if kind == _H264_SETS[1]:
            picture = bits.unsigned()
            self._pictures[picture] = bits.unsigned()
            return
        profile = bits.take(8)
        bits.take(16)  # constraints and level
        sequence, planes = bits.unsigned(), 0
        if profile in _WITH_CHROMA:
            chroma = bits.unsigned()
            planes = 2 * bits.take(1) if chroma == 3 else 0
            bits.unsigned()  # depths of luma and chroma
            bits.unsigned()
            bits.take(1)
            if bits.take(1):
                _skip_scaling_lists(bits, 12 if chroma == 3 else 8)
        length = bits.unsigned() + 4
        order = bits.unsigned()
        if order == 0:
            bits.unsigned()
        elif order == 1:
            bits.take(1)
            bits.signed()
            bits.signed()
            for _ in range(bits.unsigned()):
                bits.signed()
        bits.unsigned()  # reference frames
        self._sequences[sequence] = planes, length, bool(bits.take(1))


@dataclass
class H265Reader:
    """Reads the packets of one H.265 stream in order."""

    _sequences: dict[int, tuple[int, int]] = field(default_factory=dict)
    _pictures: dict[int, tuple[int, int, int]] = field(default_factory=dict)

    def read(self, data: bytes) -> Access:
        """Raises BitstreamError."""
        sets, first, key = b"", b"", False
        for unit in nal_units(data):
            kind = unit[0] >> 1 & 63
            if kind in _H265_SETS:
                sets += b"\0\0\0\1" + unit
                self._keep(kind, Bits(unit[2:]))
            elif kind in _H265_SLICE and not first:
                key, first = kind in _H265_KEY, unit
        if not first:
            return Access(False, False, sets)
        return self._slice(first, key, sets)

    def _slice(self, unit: bytes, key: bool, sets: bytes) -> Access:
        kind, bits = unit[0] >> 1 & 63, Bits(unit[2:_HEAD_BYTES])
        first = bits.take(1)
        if not first:
            raise BitstreamError("it begins within a picture")
        bits.take(int(key))
        sequence, extra, shown = self._pictures.get(bits.unsigned(), (-1, 0, 0))
        known = self._sequences.get(sequence)
        if known is None:
            return _without_sets(key, sets)
        planes, length = known
        bits.take(extra)
        bits.unsigned()  # slice type
        bits.take(shown + planes)
        number = 0 if kind in _H265_INSTANT else bits.take(length)
        return Access(True, key, sets, number, 1 << length)

    def _keep(self, kind: int, bits: Bits) -> None:
        if kind == _H265_SETS[2]:
            picture, sequence = bits.unsigned(), bits.unsigned()
            bits.take(1)
            shown = bits.take(1)
            self._pictures[picture] = sequence, bits.take(3), shown
        elif kind == _H265_SETS[1]:
            bits.take(4)
            layers = bits.take(3)
            bits.take(1)
            _skip_profile(bits, layers)
            sequence = bits.unsigned()
            planes = 2 * bits.take(1) if bits.unsigned() == 3 else 0
            bits.unsigned()  # width and height
            bits.unsigned()
            if bits.take(1):
                for _ in range(4):
                    bits.unsigned()
            bits.unsigned()  # depths of luma and chroma
            bits.unsigned()
            self._sequences[sequence] = planes, bits.unsigned() + 4


def _without_sets(key: bool, sets: bytes) -> Access:
    """Of a picture whose parameter sets are not known: at the start of a stream, before its first key frame."""
    if key:
        raise BitstreamError("its parameter sets were not sent")
    return Access(True, False, sets, UNKNOWN)


def _skip_scaling_lists(bits: Bits, count: int) -> None:
    for i in range(count):
        if not bits.take(1):
            continue
        last = following = 8
        for _ in range(16 if i < 6 else 64):
            if following:
                following = (last + bits.signed()) % 256
            last = following or last


def _skip_profile(bits: Bits, layers: int) -> None:
    bits.take(96)
    given = [(bits.take(1), bits.take(1)) for _ in range(layers)]
    bits.take(2 * (8 - layers) if layers else 0)
    for profile, level in given:
        bits.take(88 * profile + 8 * level)
