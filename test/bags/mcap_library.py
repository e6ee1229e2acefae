"""mcap files from the `mcap` library's own writer, and what its reader finds in them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from mcap.reader import McapReader, NonSeekingReader, make_reader
from mcap.writer import CompressionType, IndexType, Writer

TYPES = ("sensor_msgs/msg/JointState", "acme_msgs/msg/Thing", "std_msgs/msg/String")
ENCODINGS = ("ros2msg", "ros2idl", "", "protobuf")


@dataclass
class File:
    """What is written, in this order. messages: topic number, log time, payload; None ends a chunk early.

    beside: with attachments and metadata between the messages.
    """

    messages: list[tuple[int, int, bytes] | None]
    topics: int = 3
    options: dict[str, Any] = field(default_factory=dict)
    beside: bool = False
    names: str = "/topic_{}"
    types: tuple[str, ...] = TYPES

    def write(self, path: Path) -> Path:
        """Write it, and return where."""
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.open("wb") as stream:
            writer = Writer(stream, **self.options)
            writer.start("ros2", "test")
            channels = [self._channel(writer, number) for number in range(self.topics)]
            for index, message in enumerate(self.messages):
                if message is None:
                    writer.flush()
                    continue
                number, log_ns, data = message
                writer.add_message(channels[number], log_ns, data, log_ns, index)
                if self.beside and index % 3 == 0:
                    writer.add_attachment(log_ns, log_ns, "notes.txt", "text/plain", b"\x05" * (index + 1))
                    writer.add_metadata("battery", {"volt": str(index)})
            writer.finish()
        return path

    def _channel(self, writer: Writer, number: int) -> int:
        schema = writer.register_schema(self.types[number % 3], ENCODINGS[number % 4], b"float64 x")
        return writer.register_channel(self.names.format(number), "cdr", schema)


Found = list[tuple[str, int, bytes]]


def library_messages(path: Path, begin_ns: int | None = None, end_ns: int | None = None) -> Found:
    """Topic, log time and payload as the library's reader gives them.

    Where that needs channels or schemas in a summary that has none, as the library's other reader does.
    """
    try:
        return _read(path, make_reader, begin_ns, end_ns)
    except KeyError:
        return _read(path, NonSeekingReader, begin_ns, end_ns)


def _read(path: Path, reader: Callable[[Any], McapReader], begin_ns: int | None, end_ns: int | None) -> Found:
    with path.open("rb") as stream:
        found = reader(stream).iter_messages(starting_at=begin_ns, ending_before=end_ns)
        return [(channel.topic, message.log_time, message.data) for _, channel, message in found]


def library_counts(path: Path) -> dict[str, int]:
    """Messages by topic, as its reader gives them."""
    counts: dict[str, int] = {}
    for topic, _, _ in library_messages(path):
        counts[topic] = counts.get(topic, 0) + 1
    return counts


def options() -> Iterable[dict[str, Any]]:
    """Every way to write a file that the library's writer has, one at a time and together."""
    off: dict[str, Any] = {
        "use_chunking": False,
        "use_statistics": False,
        "repeat_channels": False,
        "repeat_schemas": False,
        "use_summary_offsets": False,
        "enable_crcs": False,
        "index_types": IndexType.NONE,
    }
    yield {}
    for name, value in off.items():
        yield {name: value}
    for kind in (IndexType.MESSAGE, IndexType.CHUNK, IndexType.ATTACHMENT):
        yield {"index_types": kind}
    for compression in CompressionType:
        yield {"compression": compression, "enable_data_crcs": True}
    yield off
    yield {**off, "use_chunking": True}
