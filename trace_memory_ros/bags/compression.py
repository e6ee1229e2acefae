"""Decompression that can neither run out of memory nor hand back less than was promised without saying so."""

from __future__ import annotations

import sys
from pathlib import Path

import lz4.frame
from isal import isal_zlib

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

ZSTD_MAGIC = b"\x28\xb5\x2f\xfd"
LARGEST_BYTES = 2**30
"""Largest message or chunk that is unpacked; nothing real comes near."""
_STEP = 2**22


class CompressionError(ValueError):
    """Compressed bytes that cannot be unpacked; says why."""


def unpack_zstd(data: bytes | memoryview) -> bytes:
    """One zstd message of unknown size. Raises CompressionError."""
    return _unpack(zstd.ZstdDecompressor(), data, LARGEST_BYTES, "zstd")


def unpack_chunk(data: bytes | memoryview, compression: str, size: int, crc: int) -> bytes | memoryview:
    """An mcap chunk of `size` bytes; crc 0 means that none was recorded. Raises CompressionError."""
    if size > LARGEST_BYTES:
        raise CompressionError(f"claims to unpack to {size} bytes")
    raw: bytes | memoryview
    if compression == "zstd":
        raw = _unpack(zstd.ZstdDecompressor(), data, size, "zstd")
    elif compression == "lz4":
        raw = _unpack(lz4.frame.LZ4FrameDecompressor(), data, size, "lz4")
    elif compression == "":
        raw = data
    else:
        raise CompressionError(f"is packed with {compression!r}; known are zstd and lz4")
    if len(raw) != size:
        raise CompressionError(f"unpacks to {len(raw)} bytes, {size} were promised")
    if crc and checksum(raw) != crc:
        raise CompressionError("does not match its checksum")
    return raw


def checksum(data: bytes | memoryview) -> int:
    """The CRC-32 of mcap."""
    return int(isal_zlib.crc32(data))


def unpack_file(source: Path, target: Path) -> str:
    """Unpack a zstd file; returns what went wrong, empty when all of it came through."""
    engine = zstd.ZstdDecompressor()
    with source.open("rb") as packed, target.open("wb") as out:
        while block := packed.read(_STEP):
            try:
                out.write(engine.decompress(block, _STEP))
                # What is packed well unpacks to a thousand times its size.
                while not engine.needs_input and (not engine.eof or engine.unused_data):
                    rest = engine.unused_data
                    engine = zstd.ZstdDecompressor() if engine.eof else engine
                    out.write(engine.decompress(rest, _STEP))
            except (zstd.ZstdError, EOFError) as error:
                return f"zstd data are damaged ({error})"
        if not engine.eof:
            return f"zstd data end early, after {packed.tell()} bytes"
    return ""


def _unpack(engine: object, data: bytes | memoryview, limit: int, name: str) -> bytes:
    # One byte more than allowed shows that the size which the header claims is wrong.
    try:
        raw: bytes = engine.decompress(data, limit + 1)  # type: ignore[attr-defined]
    except (zstd.ZstdError, RuntimeError, EOFError, MemoryError, ValueError) as error:
        raise CompressionError(f"{name} data are damaged ({error})") from error
    if len(raw) > limit:
        raise CompressionError(f"unpacks to more than {limit} bytes")
    if not engine.eof:  # type: ignore[attr-defined]
        raise CompressionError(f"{name} data end early")
    return raw
