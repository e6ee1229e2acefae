"""Writes rosbag2 folders without ROS."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any

from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer

from trace_memory_ros.bags.layout import AUTHOR, METADATA, author_of, stem
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.files import outputs

STORAGES = {"mcap": StoragePlugin.MCAP, "sqlite3": StoragePlugin.SQLITE3}
COMPRESSIONS = {
    "none": CompressionMode.NONE,
    "file": CompressionMode.FILE,
    "message": CompressionMode.MESSAGE,
    "chunk": CompressionMode.STORAGE,
}
COMMAND = "trace_memory_ros.bags.writer"
"""What a bag says that wrote it where no command did."""


def replace_bag(folder: Path, command: str) -> None:
    """Remove the bag at `folder` where `command` wrote it, so that it can write another.

    Raises ValueError where something else lies there.
    """
    if folder.exists() or folder.is_symlink():
        if not (folder / METADATA).exists():
            raise outputs.OutputError(f"{folder} exists and is no bag: move it away, or record elsewhere")
        outputs.vacate(folder, command, author_of(folder), lambda name: name == METADATA or stem(Path(name)) != name)


class BagFileWriter:
    """Writes messages of rosbags' typestore (`bags.messages`) to `folder`; a context manager.

    topics: name -> type, such as `sensor_msgs/msg/Image`; more may be added while writing. storage: `mcap`
    or `sqlite3`. compression: `none`, or zstd by `file`, `message` or (mcap) `chunk`. command: who writes it; a bag at
    `folder` that it wrote before is replaced. whole: a bag whose block an exception ends is removed, since closed it
    looks whole. Raises ValueError where something else lies there, or nothing can be written. counts: messages written
    per topic.
    """

    def __init__(
        self,
        folder: str | Path,
        topics: Mapping[str, str],
        storage: str = "mcap",
        compression: str = "none",
        command: str = COMMAND,
        whole: bool = False,
    ) -> None:
        self.folder, self._whole = Path(folder), whole
        if storage not in STORAGES or compression not in COMPRESSIONS:
            raise ValueError(
                f"storage = {storage!r}, compression = {compression!r}: choose from {', '.join(STORAGES)} and "
                f"{', '.join(COMPRESSIONS)}"
            )
        replace_bag(self.folder, command)
        self.counts: dict[str, int] = {}
        self._connections: dict[str, Any] = {}
        self._types: dict[str, str] = {}
        self._writer = Writer(self.folder, version=9, storage_plugin=STORAGES[storage])
        self._writer.set_compression(COMPRESSIONS[compression], CompressionFormat.ZSTD)
        self._writer.set_custom_data(AUTHOR, command)
        try:
            self.folder.parent.mkdir(parents=True, exist_ok=True)
            self._writer.open()
        except OSError as error:
            raise outputs.unwritable(self.folder, error) from error
        for name, type_name in topics.items():
            self.add_topic(name, type_name)

    def __enter__(self) -> BagFileWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self.close()
        finally:
            if self._whole and error is not None:
                shutil.rmtree(self.folder, ignore_errors=True)

    def add_topic(self, name: str, type_name: str) -> None:
        """Announce a topic; its name is written as an absolute one."""
        absolute = f"/{name.lstrip('/')}"
        self._connections[name] = self._writer.add_connection(absolute, type_name, typestore=typestore())
        self._types[name] = type_name
        self.counts[name] = 0

    def write(self, topic: str, message: Any, log_ns: int) -> None:
        """Serialise and append a message. Raises KeyError for a topic that was not announced."""
        self.write_raw(topic, typestore().serialize_cdr(message, self._types[topic]), log_ns)

    def write_raw(self, topic: str, data: bytes | memoryview, log_ns: int) -> None:
        """Append a serialised message."""
        self._writer.write(self._connections[topic], log_ns, data)
        self.counts[topic] += 1

    def close(self) -> None:
        """Write the bag's tables."""
        self._writer.close()
