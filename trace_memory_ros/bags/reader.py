"""A bag's topics and messages, whatever stored and packed them."""

from __future__ import annotations

import tempfile
from collections.abc import Collection, Iterator
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType

from trace_memory_ros.bags.compression import ZSTD_MAGIC, CompressionError, unpack_file, unpack_zstd
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.layout import PACKED, layout_of
from trace_memory_ros.bags.mcap_file import McapFile
from trace_memory_ros.bags.sqlite_file import SqliteFile
from trace_memory_ros.bags.storage import FIRST_NS, LAST_NS, RawMessage, Storage, TopicInfo, merge_topics

PERMISSION = "grant permission to read it"


class BagReader:
    """A rosbag2 folder or storage file (mcap, sqlite3, zstd by file or message); a context manager.

    topics: by name. begin_ns, end_ns: log times of the first message and behind the last. faults: what is wrong, as far
    as it was noticed: more may come while messages are read. mapped: as of `McapFile`. Raises BagFault where nothing
    can be read.
    """

    def __init__(self, path: str | Path, mapped: bool = False) -> None:
        self.path = Path(path)
        self._mapped = mapped
        self._stack = ExitStack()
        self._storages: list[Storage] = []
        self._faults: list[BagFault] = []
        try:
            self._open()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> BagReader:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """Release files and unpacked copies."""
        self._stack.close()

    @property
    def faults(self) -> list[BagFault]:
        """What was found wrong so far, without repeats."""
        found = [*self._faults, *(fault for storage in self._storages for fault in storage.faults)]
        return list(dict.fromkeys(found))

    def note(self, fault: BagFault) -> None:
        """Add what someone else found wrong with the bag."""
        self._faults.append(fault)

    def messages(
        self, topics: Collection[str] | None = None, begin_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[RawMessage]:
        """Messages on `topics` (None: all) logged in `[begin_ns, end_ns)`, in log order within each storage file.

        A message that cannot be unpacked is left out and named in `faults`. A full pass also names topics that gave
        fewer messages than the bag claims to hold.
        """
        wanted = None if topics is None else frozenset(topics)
        begin, end = FIRST_NS if begin_ns is None else begin_ns, LAST_NS if end_ns is None else end_ns
        counts: dict[str, int] = {}
        for storage in self._storages:
            for message in storage.messages(wanted, begin, end):
                counts[message.topic] = counts.get(message.topic, 0) + 1
                data = message.data
                if data[:4] == ZSTD_MAGIC:
                    unpacked = self._unpacked(message)
                    if unpacked is not None:
                        yield unpacked
                else:
                    yield message
        if begin_ns is None and end_ns is None:
            self._compare(counts, wanted)

    def _open(self) -> None:
        try:
            layout = layout_of(self.path)
        except PermissionError as error:
            raise BagFault(self.path, f"cannot be read ({error.strerror})", "path", PERMISSION) from error
        self._faults += layout.faults
        for file in layout.files:
            storage = self._storage(file)
            self._stack.callback(storage.close)
            self._storages.append(storage)
        self.topics: dict[str, TopicInfo] = merge_topics([i for s in self._storages for i in s.topics()])
        self._claims = layout.counts
        times = [span for storage in self._storages if (span := storage.times_ns()) is not None]
        if not times:
            fault = BagFault(
                self.path,
                "holds no messages",
                ", ".join(file.name for file in layout.files),
                "record again: check that the topics are published, and that QoS lets the recorder receive them",
            )
            if any(storage.faults for storage in self._storages):
                fault = BagFault(self.path, "holds no message that can be read", "all files", "restore it from a copy")
            fault.also = tuple(self.faults)
            raise fault
        self.begin_ns = min(first for first, _ in times)
        self.end_ns = max(last for _, last in times) + 1

    def _storage(self, file: Path) -> Storage:
        try:
            if file.stat().st_size == 0:
                raise BagFault(self.path, "is empty", file.name, "record again: the recorder wrote nothing into it")
            if file.name.endswith(PACKED):
                file = self._unpack(file)
            return McapFile(file, self.path, self._mapped) if file.suffix == ".mcap" else SqliteFile(file, self.path)
        except OSError as error:
            what = f"cannot be read ({error.strerror or error})"
            raise BagFault(self.path, what, file.name, PERMISSION + ", or copy it from its disk again") from error

    def _unpack(self, file: Path) -> Path:
        """A copy without compression, kept until the reader is closed."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bag-")))
        target = folder / file.name.removesuffix(PACKED)
        fault = unpack_file(file, target)
        if fault:
            self._faults.append(BagFault(self.path, fault, file.name, "restore it from a copy, or record again"))
        if target.stat().st_size == 0:
            raise BagFault(self.path, fault or "unpacks to nothing", file.name, "restore it from a copy")
        return target

    def _unpacked(self, message: RawMessage) -> RawMessage | None:
        try:
            return message._replace(data=unpack_zstd(message.data))
        except CompressionError as error:
            where = f"topic {message.topic}"
            what = f"has messages whose {error}: they are left out"
            fault = BagFault(self.path, what, where, "restore the bag from a copy, or record again")
            if fault not in self._faults:
                self._faults.append(fault)
            return None

    def _compare(self, counts: dict[str, int], wanted: frozenset[str] | None) -> None:
        """Name the topics that gave another number of messages than the bag's own tables claim."""
        for name, info in self.topics.items():
            claims = {info.messages, info.messages if self._claims is None else self._claims.get(name, 0)}
            if (wanted is None or name in wanted) and claims != {counts.get(name, 0)}:
                said = " and ".join(str(claim) for claim in sorted(claims))
                what = f"gave {counts.get(name, 0)} messages where the bag's tables claim {said}"
                remedy = "repair a copy with `mcap recover` or `ros2 bag reindex`, or record again"
                fault = BagFault(self.path, what, f"topic {name}", remedy)
                if fault not in self._faults:
                    self._faults.append(fault)
