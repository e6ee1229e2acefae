"""One sqlite3 storage file of a bag."""

from __future__ import annotations

import sqlite3
import tempfile
from array import array
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack
from itertools import islice
from pathlib import Path
from typing import NamedTuple
from urllib.parse import quote

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags import sqlite_journal
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.storage import FIRST_NS, LAST_NS, RawMessage, TopicInfo, absolute, modern, not_cdr

MAGIC = b"SQLite format 3\x00"
# The last: sqlite quotes damaged names in its errors.
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
RECOVER = "repair a copy with `sqlite3 FILE .recover`, then `ros2 bag reindex`, or record again"
INDEX = "timestamp_idx"
_SUMS = "COUNT(*), SUM(timestamp % 1000003)"
_NUMBER = "typeof(timestamp) = 'integer'"
_LEAST_ROW_BYTES = 6
_MOST_VAIN = 40
_DIGITS = "CAST(CAST(timestamp AS INTEGER) AS TEXT) = timestamp"


class _Order(NamedTuple):
    """How messages are found in the order of time. source: table, with or without its index. time: expression."""

    source: str
    time: str = "timestamp"
    also: str = ""


class SqliteFile:
    """Implements `storage.Storage`; read-only, nothing is created beside the file. Raises BagFault."""

    def __init__(self, path: Path, bag: Path) -> None:
        self.path, self.bag = path, bag
        self.faults: list[BagFault] = []
        self._stack = ExitStack()
        try:
            self._open()
        except DAMAGE as error:
            self.close()
            raise self._damaged(error) from error
        except BaseException:
            self.close()
            raise

    def topics(self) -> list[TopicInfo]:
        return [info for _, info in self._topics.values()]

    def times_ns(self) -> tuple[int, int] | None:
        if self._order is None:
            times = [log_ns for _, _, log_ns in self._salvaged(frozenset(self._topics), FIRST_NS, LAST_NS)]
            return (times[0], times[-1]) if times else None
        source, time, also = self._order
        try:
            query = f"SELECT MIN({time}), MAX({time}) FROM {source} WHERE TRUE {also}"
            first, last = self._connection.execute(query).fetchone()
        except DAMAGE as error:
            raise self._damaged(error) from error
        return (int(first), int(last)) if isinstance(first, int) and isinstance(last, int) else None

    def close(self) -> None:
        self._stack.close()

    def messages(self, topics: frozenset[str] | None, begin_ns: int, end_ns: int) -> Iterator[RawMessage]:
        """In log order, equal times in the order of recording."""
        wanted = frozenset(k for k, (_, info) in self._topics.items() if topics is None or info.name in topics)
        limits = max(begin_ns, FIRST_NS), min(end_ns - 1, LAST_NS)
        for row, key, log_ns in self._rows(wanted, *limits):
            recorded, info = self._topics[key]
            try:
                (data,) = self._connection.execute("SELECT data FROM messages WHERE id = ?", (row,)).fetchone()
                if not isinstance(data, bytes):
                    raise sqlite3.DatabaseError(f"holds {type(data).__name__}, not bytes")
            except (*DAMAGE, TypeError) as error:
                self._fault(f"cannot be read ({error}): lost", f"message {row} on {recorded}")
                continue
            yield RawMessage(info.name, info.type_name, log_ns, data)

    def _open(self) -> None:
        path = self._recovered() if sqlite_journal.journals(self.path) else self.path
        self._bytes = path.stat().st_size
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
        if magic != MAGIC:
            raise BagFault(
                self.bag,
                f"begins with {magic.hex() or 'nothing'}, an sqlite3 file with {MAGIC.hex()}",
                f"{self.path.name}, byte 0",
                "the file is no sqlite3 storage or its first bytes are lost: restore it from a copy, or record again",
            )
        self._connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        self._stack.callback(self._connection.close)
        self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
        self._topics = self._read_topics()
        counts: dict[object, int] = {}
        try:
            self._order = self._find_order(counts)
        except DAMAGE as error:
            self._order = None
            self._fault(f"the table of messages is damaged ({error}): what can be read of it is", "table messages")
        if self._order is None:
            # Of a damaged table one learns what it holds row by row.
            counts = dict(Counter(self._readable_rows()[:, 1].tolist()))
        strange = sum(count for key, count in counts.items() if key not in self._topics)
        if strange:
            self._fault(f"{strange} messages have no known topic: lost", "table messages")
        for key, (recorded, info) in self._topics.items():
            self._topics[key] = recorded, info._replace(messages=counts.get(key, 0))

    def _recovered(self) -> Path:
        """A copy into which the journals beside the file were worked."""
        folder = Path(self._stack.enter_context(tempfile.TemporaryDirectory(prefix="bag-")))
        log = sqlite_journal.write_ahead_log(self.path)
        try:
            path, frames, unfinished = sqlite_journal.recover(self.path, folder)
        except DAMAGE:
            path, frames, unfinished = self.path, 0, False
        if unfinished:
            what = "its last transaction was never finished: the messages of it are lost"
            self._fault(what, "journal", "let the recorder end by itself, or record again")
        elif log.exists() and log.stat().st_size and not frames:
            self._fault(
                f"{log.name} holds {log.stat().st_size} bytes that were never moved into the bag",
                "write-ahead log",
                f"run `sqlite3 {self.path.name} 'PRAGMA wal_checkpoint(TRUNCATE)'` on a copy",
            )
        return path

    def _find_order(self, counts: dict[object, int]) -> _Order | None:
        """Count messages by topic into `counts`, and say how they are read in the order of time; None: row by row."""
        run = self._connection.execute
        total = checked = numbers = 0
        query = f"SELECT topic_id, {_SUMS}, SUM({_NUMBER}) FROM messages NOT INDEXED GROUP BY topic_id"
        for key, count, check, integers in run(query):
            counts[key] = count
            total, checked, numbers = total + count, checked + (check or 0), numbers + (integers or 0)
        if numbers < total:
            also = f"AND ({_NUMBER} OR {_DIGITS})"
            (kept,) = run(f"SELECT COUNT(*) FROM messages NOT INDEXED WHERE TRUE {also}").fetchone()
            if kept > numbers:
                what = f"{kept - numbers} of {total} messages have their time as text: it is read as a number"
                self._fault(what, "table messages", "convert the bag with `ros2 bag convert`")
            if kept < total:
                self._fault(f"{total - kept} of {total} messages have no time: lost", "table messages")
            return _Order("messages NOT INDEXED", "CAST(timestamp AS INTEGER)", also)
        if run("SELECT 1 FROM sqlite_master WHERE type = 'index' AND name = ?", (INDEX,)).fetchone():
            try:
                (found,) = run(f"SELECT {_SUMS} FROM messages INDEXED BY {INDEX}").fetchall()
            except DAMAGE as error:
                found = (str(error),)
            if found == (total, checked) or (not total and not found[0]):
                return _Order(f"messages INDEXED BY {INDEX}")
            self._fault("the index of times does not fit the messages: it is not used", f"index {INDEX}")
            return None
        return _Order("messages NOT INDEXED")

    def _rows(self, wanted: frozenset[int], first_ns: int, last_ns: int) -> Iterator[tuple[int, int, int]]:
        """Row, topic key and log time of messages, `last_ns` included, in their order; nothing is listed before."""
        last = (FIRST_NS - 1, 0)
        if self._order is not None:
            source, time, also = self._order
            keys = ", ".join(str(key) for key in wanted)
            query = (
                f"SELECT id, topic_id, {time} FROM {source} WHERE {time} BETWEEN ? AND ? AND topic_id IN ({keys}) "
                f"{also} ORDER BY {time}, id"
            )
            try:
                for row, key, log_ns in self._connection.execute(query, (first_ns, last_ns)):
                    yield row, key, log_ns
                    last = (log_ns, row)
                return
            except DAMAGE as error:
                self._fault(f"the table of messages breaks off ({error})", "table messages")
        for row, key, log_ns in self._salvaged(wanted, first_ns, last_ns):
            if (log_ns, row) > last:
                yield row, key, log_ns

    def _salvaged(self, wanted: frozenset[int], first_ns: int, last_ns: int) -> Iterator[tuple[int, int, int]]:
        """As `_rows`, of a damaged table: listed first, 24 bytes a message, since only the order of rows is left."""
        rows = self._readable_rows()
        rows = rows[np.isin(rows[:, 1], list(wanted)) & (rows[:, 2] >= first_ns) & (rows[:, 2] <= last_ns)]
        for index in np.lexsort((rows[:, 0], rows[:, 2])):
            row, key, log_ns = rows[index].tolist()
            yield row, key, log_ns

    def _readable_rows(self) -> NDArray[np.int64]:
        """Row, topic key and time `(rows, 3)` of every message that can be read, passing over damaged pages."""
        found = array("q")
        after: int | None = FIRST_NS
        most = self._bytes // _LEAST_ROW_BYTES
        query = "SELECT id, topic_id, timestamp FROM messages NOT INDEXED WHERE id > ? ORDER BY id"
        # Pages that stand in for others give rows twice, or again and again, or none however far one goes.
        vain = 0
        while after is not None and len(found) < 3 * most and vain < _MOST_VAIN:
            last, before = after, len(found)
            try:
                for row in islice(self._connection.execute(query, (after,)), most):
                    last = max(last, row[0])
                    if all(isinstance(value, int) for value in row):
                        found.extend(row)
                break
            except DAMAGE:
                vain = 0 if len(found) > before else vain + 1
                after = self._behind(last + 2**vain - 1)
        rows = np.frombuffer(found, np.int64).reshape(-1, 3) if found else np.zeros((0, 3), np.int64)
        return rows[np.unique(rows[:, 0], return_index=True)[1]]

    def _behind(self, row: int) -> int | None:
        """The row after which the table can be read again behind a page that cannot; None where there is none."""

        def readable(after: int) -> bool | None:
            try:
                found = self._connection.execute("SELECT id FROM messages NOT INDEXED WHERE id > ? LIMIT 1", (after,))
                return found.fetchone() is not None or None
            except DAMAGE:
                return False

        bad, step = max(row, 0), 1
        while not (state := readable(bad + step)):
            if state is None or bad + step > 2**60:
                return None
            step *= 2
        good = bad + step
        while good - bad > 1:
            middle = (good + bad) // 2
            bad, good = (bad, middle) if readable(middle) else (middle, good)
        return good

    def _read_topics(self) -> dict[int, tuple[str, TopicInfo]]:
        run = self._connection.execute
        tables = {name for (name,) in run("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not {"topics", "messages"} <= tables:
            raise BagFault(
                self.bag,
                f"has tables {', '.join(sorted(tables)) or 'none'}, not topics and messages",
                self.path.name,
                "give a file that `ros2 bag record` wrote",
            )
        definitions: dict[str, str] = {}
        if "message_definitions" in tables:
            query = "SELECT topic_type, encoded_message_definition FROM message_definitions"
            definitions = {str(name): str(text) for name, text in run(query)}
        found = {}
        for key, name, kind, encoding in run("SELECT id, name, type, serialization_format FROM topics ORDER BY id"):
            if encoding != "cdr":
                self.faults.append(not_cdr(self.bag, str(name), str(encoding), self.path.name))
            recorded, text = str(name), definitions.get(str(kind), "")
            info = TopicInfo(absolute(recorded), (modern(str(kind)),), 0, text, (recorded,))
            found[key] = (recorded, info)
        return found

    def _damaged(self, error: Exception) -> BagFault:
        return BagFault(self.bag, f"the database is damaged ({error})", self.path.name, RECOVER)

    def _fault(self, what: str, where: str, remedy: str = RECOVER) -> None:
        fault = BagFault(self.bag, what, f"{self.path.name}, {where}", remedy)
        if fault not in self.faults:
            self.faults.append(fault)
