"""Ways to break a bag: in its files' bytes, in its messages' bytes, in its messages' fields."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np

from studies import tiny_bags as tiny
from studies.tiny_bags import Entry
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.layout import METADATA
from trace_memory_ros.bags.recording import RecordingConfig

Rng = np.random.Generator
Files = dict[str, bytes]

TICKS = 8
EXTREMES = (0, 1, 2**7, 2**15, 2**16, 2**31 - 1, 2**31, 2**32 - 1, 2**62, 2**63 - 1, 2**63, 2**64 - 1)
NUMBERS = (np.nan, np.inf, -np.inf, 0.0, 1e308, -1e-308)
ENCODINGS = ("", "mono8", "bgr8", "rgba8", "16UC1", "32FC1", "bayer_rggb8", "yuv422", "x" * 300)
NAMES = ("", "elbow", "shoulder", "\x00", "é", "x" * 300)


@dataclass(frozen=True)
class Kind:
    """A sound bag to begin from. by_status: cut into episodes by EpisodeStatus, with branches."""

    storage: str
    compression: str
    by_status: bool = False

    @property
    def recording(self) -> RecordingConfig:
        """The configuration that decodes it."""
        return tiny.BY_STATUS if self.by_status else tiny.RECORDING

    def entries(self) -> list[Entry]:
        """Its messages."""
        entries = tiny.recording_of(TICKS)
        return [*entries, *tiny.episode_entries(TICKS, 0, 1)] if self.by_status else entries


KINDS = (
    *(Kind("mcap", compression) for compression in ("none", "file", "message", "chunk")),
    *(Kind("sqlite3", compression) for compression in ("none", "file", "message")),
    Kind("mcap", "none", by_status=True),
    Kind("sqlite3", "none", by_status=True),
)


def files_of(entries: list[Entry], kind: Kind) -> Files:
    """What recording `entries` leaves in the bag's folder."""
    with TemporaryDirectory() as folder:
        bag = tiny.write(Path(folder) / "bag", entries, kind.storage, kind.compression)
        return {path.name: path.read_bytes() for path in bag.iterdir()}


@cache
def _sound(kind: Kind) -> Mapping[str, bytes]:
    return files_of(kind.entries(), kind)


def flip_bytes(data: bytes, rng: Rng) -> bytes:
    """A few bytes become others."""
    out = bytearray(data)
    for at in rng.integers(0, len(out), rng.integers(1, 17)):
        out[at] = rng.integers(0, 256)
    return bytes(out)


def truncate(data: bytes, rng: Rng) -> bytes:
    """The end is lost."""
    return data[: rng.integers(0, len(data))]


def cut_out(data: bytes, rng: Rng) -> bytes:
    """A piece in the middle is lost."""
    a, b = sorted(rng.integers(0, len(data), 2))
    return data[:a] + data[b:] if rng.random() < 0.3 else data[:a] + data[a + int(rng.integers(1, 64)) :]


def zero_block(data: bytes, rng: Rng) -> bytes:
    """A block becomes zeros, as on a disk that failed."""
    at, size = int(rng.integers(0, len(data))), int(rng.integers(1, 4097))
    return data[:at] + bytes(len(data[at : at + size])) + data[at + size :]


def swap_blocks(data: bytes, rng: Rng) -> bytes:
    """Two blocks change places."""
    size = int(rng.integers(1, max(2, len(data) // 4)))
    a, b = sorted(int(x) for x in rng.integers(0, max(1, len(data) - size), 2))
    if b < a + size:
        return flip_bytes(data, rng)
    return data[:a] + data[b : b + size] + data[a + size : b] + data[a : a + size] + data[b + size :]


def repeat_block(data: bytes, rng: Rng) -> bytes:
    """A block comes twice."""
    a, size = int(rng.integers(0, len(data))), int(rng.integers(1, 4097))
    return data[: a + size] + data[a:]


def set_number(data: bytes, rng: Rng) -> bytes:
    """A 4- or 8-byte number, wherever it lies, becomes an extreme one."""
    size = int(rng.choice([2, 4, 8]))
    at = int(rng.integers(0, max(1, len(data) - size)))
    value = int(EXTREMES[rng.integers(len(EXTREMES))]) % (1 << (8 * size))
    return data[:at] + value.to_bytes(size, "little") + data[at + size :]


BYTES: dict[str, Callable[[bytes, Rng], bytes]] = {
    "flip bytes": flip_bytes,
    "truncate": truncate,
    "cut out": cut_out,
    "zero a block": zero_block,
    "swap blocks": swap_blocks,
    "repeat a block": repeat_block,
    "set a number": set_number,
}


def _field(message: Any, rng: Rng) -> None:
    """One random field of a message becomes an extreme value of its type."""
    while True:
        name = str(rng.choice([n for n in vars(message) if not n.startswith("__")]))
        value = getattr(message, name)
        if isinstance(value, list) and value and not isinstance(value[0], str):
            value = value[rng.integers(len(value))]
        if not hasattr(value, "__msgtype__"):
            break
        message = value
    setattr(message, name, _strange(value, rng))


def _strange(value: Any, rng: Rng) -> Any:
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return int(EXTREMES[rng.integers(7)]) if value < 256 else int(rng.integers(0, 2**31))
    if isinstance(value, float):
        return float(rng.choice(NUMBERS))
    if isinstance(value, str):
        return str(rng.choice(ENCODINGS))
    if isinstance(value, list):
        chosen = [str(rng.choice(NAMES)) for _ in range(int(rng.integers(0, 6)))]
        return chosen if value and isinstance(value[0], str) else value[: int(rng.integers(0, 2))]
    array = np.array(value)[: int(rng.integers(0, len(value) + 1))] if rng.random() < 0.5 else np.array(value)
    if array.size:
        array[rng.integers(array.size)] = rng.choice(NUMBERS) if array.dtype.kind == "f" else rng.integers(0, 128)
    return np.ascontiguousarray(array)


def change_field(entries: list[Entry], rng: Rng) -> None:
    """Fields of a few messages become extreme."""
    for i in rng.integers(0, len(entries), rng.integers(1, 5)):
        _safely(entries[i], lambda message: _field(message, rng))


def _safely(entry: Entry, change: Callable[[Any], None]) -> None:
    """Change a message; where the result cannot be serialised, its bytes are cut instead."""
    if isinstance(entry.message, bytes):
        return
    whole = entry.data
    change(entry.message)
    try:
        entry.message = entry.data
    except Exception:  # a writer refuses such a value; a reader meets it as broken bytes
        entry.message = whole[: len(whole) // 2]


def change_payload(entries: list[Entry], rng: Rng) -> None:
    """Bytes of a few messages are broken."""
    for i in rng.integers(0, len(entries), rng.integers(1, 5)):
        name = str(rng.choice(list(BYTES)))
        data = BYTES[name](entries[i].data or b"\x00", rng)
        entries[i].message = data


def restamp(entries: list[Entry], rng: Rng) -> None:
    """Stamps or log times of a few messages jump."""
    for i in rng.integers(0, len(entries), rng.integers(1, 9)):
        jump = int(rng.choice([-(10**18), -(10**10), -(10**8), 1, 10**8, 10**10, 10**18]))
        if rng.random() < 0.5:
            entries[i].log_ns = max(0, entries[i].log_ns + jump)
        elif hasattr(entries[i].message, "header"):
            stamp = entries[i].message.header.stamp
            ns = min(max(0, stamp.sec * 10**9 + stamp.nanosec + jump), 2**31 * 10**9 - 1)
            entries[i].message.header = make.header(ns)


def retype(entries: list[Entry], rng: Rng) -> None:
    """A topic becomes one of text."""
    topic = entries[int(rng.integers(len(entries)))].topic
    for i, entry in enumerate(entries):
        if entry.topic == topic:
            entries[i] = Entry(topic, fields.TEXT, entry.log_ns, make.text("?"))


FIELDS: dict[str, Callable[[list[Entry], Rng], None]] = {
    "change fields": change_field,
    "change payloads": change_payload,
    "change stamps": restamp,
    "change a type": retype,
}


def mutated(rng: Rng) -> tuple[Kind, str, Files]:
    """A bag broken in one random way: what it was, the way, and its files."""
    kind = KINDS[rng.integers(len(KINDS))]
    if rng.random() < 0.3:
        name = str(rng.choice(list(FIELDS)))
        entries = kind.entries()
        FIELDS[name](entries, rng)
        return kind, name, files_of(entries, kind)
    name = str(rng.choice(list(BYTES)))
    files = dict(_sound(kind))
    (storage,) = (file for file in files if file != METADATA)
    chosen = METADATA if rng.random() < 0.1 else storage
    files[chosen] = BYTES[name](files[chosen], rng)
    if rng.random() < 0.2:
        del files[METADATA]
    return kind, name, files
