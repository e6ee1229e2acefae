"""Records of the mcap format, read from bytes that may be damaged."""

from __future__ import annotations

import struct
from collections.abc import Callable, Container, Iterator
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

MAGIC = b"\x89MCAP0\r\n"
HEADER, FOOTER, SCHEMA, CHANNEL, MESSAGE, CHUNK = 0x01, 0x02, 0x03, 0x04, 0x05, 0x06
MESSAGE_INDEX, CHUNK_INDEX, STATISTICS, DATA_END = 0x07, 0x08, 0x0B, 0x0F
TABLES = (SCHEMA, CHANNEL, STATISTICS)
LAST_OPCODE = 0x0F
PRIVATE_OPCODES = 0x80
RECORD = struct.Struct("<BQ")
MESSAGE_HEAD = struct.Struct("<HIQQ")
MESSAGE_RECORD = struct.Struct("<BQHIQQ")
CHUNK_HEAD = struct.Struct("<QQQI")
FOOTER_BYTES = RECORD.size + 20


class RecordError(ValueError):
    """A record whose bytes do not make sense; says why."""


class Schema(NamedTuple):
    """A message type and its definition text."""

    name: str
    text: str


class Channel(NamedTuple):
    """A topic's connection; its name as it was recorded. encoding: `cdr` for all that ROS 2 records."""

    topic: str
    type_name: str
    encoding: str
    definition: str


class Span(NamedTuple):
    """Log times of messages, the earliest and the latest, and their numbers by channel id."""

    start_ns: int
    end_ns: int
    counts: dict[int, int]


@dataclass
class Tables:
    """Schemas and channels by id, message counts by channel id where the file's statistics have them."""

    schemas: dict[int, Schema]
    channels: dict[int, Channel]
    counts: dict[int, int] | None = None

    def take(self, op: int, body: bytes | memoryview) -> None:
        """Take a Schema, Channel or Statistics record; others say nothing about topics."""
        if op == SCHEMA:
            self.add_schema(body)
        elif op == CHANNEL:
            self.add_channel(body)
        elif op == STATISTICS:
            self.add_statistics(body)

    def add_schema(self, body: bytes | memoryview) -> None:
        """Take a Schema record."""
        fields = _Fields(body)
        number = fields.unsigned("<H")
        name, encoding = fields.text(), fields.text()
        data = fields.blob()
        known = encoding in ("ros2msg", "ros2idl", "omgidl")
        self.schemas[number] = Schema(name, bytes(data).decode("utf-8", "replace") if known else "")

    def add_channel(self, body: bytes | memoryview) -> None:
        """Take a Channel record."""
        fields = _Fields(body)
        number, schema = fields.unsigned("<H"), fields.unsigned("<H")
        topic, encoding = fields.text(), fields.text()
        kind = self.schemas.get(schema, Schema("unknown", ""))
        self.channels[number] = Channel(topic, kind.name, encoding, kind.text)

    def add_statistics(self, body: bytes | memoryview) -> None:
        """Take a Statistics record."""
        if len(body) < 46:
            raise RecordError(f"statistics of {len(body)} bytes")
        (size,) = struct.unpack_from("<I", body, 42)
        if size > len(body) - 46 or size % 10:
            raise RecordError(f"statistics with a table of {size} bytes")
        self.counts = dict(struct.iter_unpack("<HQ", bytes(body[46 : 46 + size])))


class ChunkHead(NamedTuple):
    """A Chunk record without its data. data_at: where those begin in the record's body."""

    start_ns: int
    end_ns: int
    size: int
    crc: int
    compression: str
    data_at: int
    data_size: int


def chunk_head(body: bytes | memoryview) -> ChunkHead:
    """Read the head of a Chunk record. Raises RecordError."""
    if len(body) < 40:
        raise RecordError(f"chunk of {len(body)} bytes")
    start_ns, end_ns, size, crc = CHUNK_HEAD.unpack_from(body)
    fields = _Fields(body, CHUNK_HEAD.size)
    compression = fields.text()
    data_size = fields.unsigned("<Q")
    return ChunkHead(start_ns, end_ns, size, crc, compression, fields.at, data_size)


def chunk_index(body: bytes | memoryview) -> tuple[int, int]:
    """Byte and length of the chunk that a ChunkIndex record is about. Raises RecordError."""
    if len(body) < 32:
        raise RecordError(f"chunk index of {len(body)} bytes")
    _, _, offset, length = struct.unpack_from("<QQQQ", body)
    return offset, length


def message_index(body: bytes | memoryview) -> tuple[int, NDArray[np.uint64]]:
    """Channel id and log times that a MessageIndex record lists. Raises RecordError."""
    fields = _Fields(body)
    number, table = fields.unsigned("<H"), fields.blob()
    if len(table) % 16:
        raise RecordError(f"message index of {len(table)} bytes")
    return number, np.frombuffer(table, "<u8").reshape(-1, 2)[:, 0]


def messages_in(
    content: memoryview, wanted: Container[int], take: Callable[[int, memoryview], None]
) -> Iterator[tuple[int, int, int, int]]:
    """Channel id, log time and the bytes `[begin, end)` of the payload of messages in a chunk or a run of records.

    Other records go to `take(op, body)`. Raises RecordError where a record does not make sense.
    """
    at, end = 0, len(content)
    head = MESSAGE_RECORD.unpack_from
    while at < end:
        if at + MESSAGE_RECORD.size <= end:
            op, size, number, _, log_ns, _ = head(content, at)
        elif at + RECORD.size <= end:
            (op, size), number, log_ns = RECORD.unpack_from(content, at), -1, 0
        else:
            raise RecordError(f"a record is cut off at byte {at} of the chunk")
        after = at + RECORD.size + size
        if after > end:
            raise RecordError(f"a record at byte {at + RECORD.size} of the chunk goes beyond its end")
        if op == MESSAGE:
            if size < MESSAGE_HEAD.size:
                raise RecordError(f"a message of {size} bytes at byte {at + RECORD.size} of the chunk")
            if number in wanted:
                yield number, log_ns, at + MESSAGE_RECORD.size, after
        elif op:
            take(op, content[at + RECORD.size : after])
        else:
            raise RecordError(f"a record of kind 0 at byte {at + RECORD.size} of the chunk")
        at = after


class _Fields:
    """Reads a record's fields one after the other, never beyond its end."""

    def __init__(self, body: bytes | memoryview, at: int = 0) -> None:
        self.body = body
        self.at = at

    def unsigned(self, kind: str) -> int:
        size = struct.calcsize(kind)
        if self.at + size > len(self.body):
            raise RecordError("record ends within a number")
        (value,) = struct.unpack_from(kind, self.body, self.at)
        self.at += size
        return int(value)

    def blob(self) -> bytes | memoryview:
        size = self.unsigned("<I")
        if self.at + size > len(self.body):
            raise RecordError("record ends within a text")
        self.at += size
        return self.body[self.at - size : self.at]

    def text(self) -> str:
        return bytes(self.blob()).decode("utf-8", "replace")
