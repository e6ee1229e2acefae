"""A bag's topics and messages, whatever stored and packed them."""

from __future__ import annotations

import heapq
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
from trace_memory_ros.bags.sqlite_journal import journals
from trace_memory_ros.bags.storage import FIRST_NS, RawMessage, Storage, TopicInfo, merge_topics

PERMISSION = "grant permission to read it"
_NO_END_NS = 2**64


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
        self._parts: list[tuple[int, Storage]] = []
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
        """Messages on `topics` (None: all), by their absolute names, logged in `[begin_ns, end_ns)`, in log order.

        A message that cannot be unpacked is left out and named in `faults`. A full pass also names topics that gave
        fewer messages than the bag claims to hold.
        """
        wanted = None if topics is None else frozenset(topics)
        begin, end = FIRST_NS if begin_ns is None else begin_ns, _NO_END_NS if end_ns is None else end_ns
        counts: dict[str, int] = {}
        for message in self._merged(wanted, begin, end):
            counts[message.topic] = counts.get(message.topic, 0) + 1
            if message.data[:4] == ZSTD_MAGIC:
                unpacked = self._unpacked(message)
                if unpacked is not None:
                    yield unpacked
            else:
                yield message
        if begin_ns is None and end_ns is None:
            self._compare(counts, wanted)

    def _merged(self, wanted: frozenset[str] | None, begin: int, end: int) -> Iterator[RawMessage]:
        """Messages of all files in log order; a file is looked at when its time has come."""
        closed = [(first, number, storage) for number, (first, storage) in enumerate(self._parts)][::-1]
        heap: list[tuple[int, int, RawMessage, Iterator[RawMessage]]] = []
        while closed or heap:
            if closed and (not heap or closed[-1][0] <= heap[0][0]):
                _, number, storage = closed.pop()
                source = storage.messages(wanted, begin, end)
                if (message := next(source, None)) is not None:
                    heapq.heappush(heap, (message.log_ns, number, message, source))
                continue
            _, number, message, source = heap[0]
            until = closed[-1][0] if closed else _NO_END_NS
            yield message
            # One file at a time is the rule.
            for message in source if len(heap) == 1 else ():
                if message.log_ns >= until:
                    heapq.heapreplace(heap, (message.log_ns, number, message, source))
                    break
                yield message
            else:
                if len(heap) > 1 and (message := next(source, None)) is not None:
                    heapq.heapreplace(heap, (message.log_ns, number, message, source))
                else:
                    heapq.heappop(heap)

    def _open(self) -> None:
        try:
            layout = layout_of(self.path)
        except PermissionError as error:
            raise BagFault(self.path, f"cannot be read ({error.strerror})", "path", PERMISSION) from error
        self._faults += layout.faults
        storages = [storage for file in layout.files if (storage := self._part(file, layout.files)) is not None]
        if not storages:
            raise self._nothing(self.faults[-1])
        infos = [info for storage in storages for info in storage.topics()]
        self.topics: dict[str, TopicInfo] = merge_topics(infos)
        self._claims = layout.counts
        self._note_names()
        times = [(span, storage) for storage in storages if (span := storage.times_ns()) is not None]
        if not times:
            fault = BagFault(
                self.path,
                "holds no messages",
                ", ".join(file.name for file in layout.files),
                "record again: check that the topics are published, and that QoS lets the recorder receive them",
            )
            if any(storage.faults for storage in storages) or len(storages) < len(layout.files):
                fault = BagFault(self.path, "holds no message that can be read", "all files", "restore it from a copy")
            raise self._nothing(fault)
        self.begin_ns = min(first for (first, _), _ in times)
        self.end_ns = max(last for (_, last), _ in times) + 1
        self._order([(first, storage) for (first, _), storage in times])

    def _nothing(self, fault: BagFault) -> BagFault:
        """The fault that ends reading, with what else was found before."""
        fault.also = tuple(other for other in self.faults if other != fault)
        return fault

    def _part(self, file: Path, files: list[Path]) -> Storage | None:
        """One storage file; None, with its fault, where it cannot be read and is not the only one."""
        try:
            storage = self._storage(file)
        except BagFault as fault:
            if len(files) == 1:
                raise
            lost = BagFault(self.path, f"{fault.what}: its messages are lost", fault.where, fault.remedy)
            self._faults += [*fault.also, lost]
            return None
        self._stack.callback(storage.close)
        self._storages.append(storage)
        return storage

    def _note_names(self) -> None:
        for name, info in self.topics.items():
            if len(info.recorded) > 1:
                what = f"is recorded under {len(info.recorded)} names ({', '.join(info.recorded)}): read as one topic"
                remedy = "give one of them another name, if they are two topics"
                self._faults.append(BagFault(self.path, what, f"topic {name}", remedy))

    def _order(self, times: list[tuple[int, Storage]]) -> None:
        """Read parts by their times, and say so where they are listed in another order."""
        ordered = sorted(times, key=lambda entry: entry[0])
        if [id(storage) for _, storage in ordered] != [id(storage) for _, storage in times]:
            what = "are listed or numbered in another order than that of their times: they are read by their times"
            remedy = "run `ros2 bag reindex` on the folder"
            self._faults.append(BagFault(self.path, what, "storage files", remedy))
        self._parts = ordered

    def _storage(self, file: Path) -> Storage:
        try:
            if file.stat().st_size == 0 and not journals(file):
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
        target = folder / file.with_suffix("").name
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
