"""One sqlite3 storage file of a bag."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.storage import RawMessage, TopicInfo

MAGIC = b"SQLite format 3\x00"
# The last: sqlite quotes damaged names in its errors.
DAMAGE = (sqlite3.Error, UnicodeDecodeError)
RECOVER = "repair a copy with `sqlite3 FILE .recover`, then `ros2 bag reindex`, or record again"


class SqliteFile:
    """Implements `storage.Storage`; read-only, nothing is created beside the file. Raises BagFault."""

    def __init__(self, path: Path, bag: Path) -> None:
        self.path, self.bag = path, bag
        self.faults: list[BagFault] = []
        with path.open("rb") as file:
            magic = file.read(len(MAGIC))
        if magic != MAGIC:
            raise BagFault(
                bag,
                f"begins with {magic.hex() or 'nothing'}, an sqlite3 file with {MAGIC.hex()}",
                f"{path.name}, byte 0",
                "the file is no sqlite3 storage or its first bytes are lost: restore it from a copy, or record again",
            )
        journal = path.with_name(path.name + "-wal")
        if journal.exists() and journal.stat().st_size:
            self._fault(
                f"{journal.name} holds {journal.stat().st_size} bytes that were never moved into the bag",
                "write-ahead log",
                f"run `sqlite3 {path.name} 'PRAGMA wal_checkpoint(TRUNCATE)'` on a copy",
            )
        self._connection = sqlite3.connect(f"file:{quote(str(path))}?mode=ro&immutable=1", uri=True)
        self._connection.text_factory = lambda data: data.decode("utf-8", "replace")
        try:
            self._topics = self._read_topics()
        except DAMAGE as error:
            self.close()
            raise self._damaged(error) from error

    def topics(self) -> list[TopicInfo]:
        return [info for _, info in self._topics.values()]

    def times_ns(self) -> tuple[int, int] | None:
        try:
            first, last = self._connection.execute("SELECT MIN(timestamp), MAX(timestamp) FROM messages").fetchone()
        except DAMAGE as error:
            raise self._damaged(error) from error
        return (int(first), int(last)) if isinstance(first, int) and isinstance(last, int) else None

    def close(self) -> None:
        self._connection.close()

    def messages(self, topics: frozenset[str] | None, begin_ns: int, end_ns: int) -> Iterator[RawMessage]:
        """In log order, equal times in the order of recording."""
        wanted = {key for key, (name, _) in self._topics.items() if topics is None or name in topics}
        for row, key, log_ns in self._order(begin_ns, end_ns):
            if key not in wanted:
                continue
            name, info = self._topics[key]
            try:
                (data,) = self._connection.execute("SELECT data FROM messages WHERE id = ?", (row,)).fetchone()
                if not isinstance(data, bytes):
                    raise sqlite3.DatabaseError(f"holds {type(data).__name__}, not bytes")
            except (*DAMAGE, TypeError) as error:
                self._fault(f"cannot be read ({error}): lost", f"message {row} on {name}")
                continue
            yield RawMessage(name, info.type_name, log_ns, data)

    def _order(self, begin_ns: int, end_ns: int) -> list[tuple[int, int, int]]:
        """Row, topic key and log time of the messages in the interval, as far as the table can be read."""
        found: list[tuple[int, int, int]] = []
        query = "SELECT id, topic_id, timestamp FROM messages WHERE timestamp >= ? AND timestamp < ?"
        strange = 0
        try:
            for row in self._connection.execute(query, (begin_ns, end_ns)):
                if all(isinstance(value, int) for value in row) and row[1] in self._topics:
                    found.append(row)
                else:
                    strange += 1
        except DAMAGE as error:
            self._fault(f"the table of messages breaks off ({error}) after {len(found)}", "table messages")
        if strange:
            self._fault(f"{strange} messages have no known topic or no time: lost", "table messages")
        return sorted(found, key=lambda row: (row[2], row[0]))

    def _read_topics(self) -> dict[int, tuple[str, TopicInfo]]:
        tables = {name for (name,) in self._connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
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
            definitions = {str(name): str(text) for name, text in self._connection.execute(query)}
        counts = dict(self._connection.execute("SELECT topic_id, COUNT(*) FROM messages GROUP BY topic_id"))
        found = {}
        for key, name, kind, encoding in self._connection.execute(
            "SELECT id, name, type, serialization_format FROM topics ORDER BY id"
        ):
            if encoding != "cdr":
                remedy = "record it with `ros2 bag record`, or leave the topic out of the configuration"
                self._fault(f"is encoded as {encoding!r}, ROS 2 messages as 'cdr'", f"topic {name}", remedy)
            info = TopicInfo(str(name), (str(kind),), int(counts.get(key, 0)), definitions.get(str(kind), ""))
            found[key] = (str(name), info)
        return found

    def _damaged(self, error: Exception) -> BagFault:
        return BagFault(self.bag, f"the database is damaged ({error})", self.path.name, RECOVER)

    def _fault(self, what: str, where: str, remedy: str = RECOVER) -> None:
        fault = BagFault(self.bag, what, f"{self.path.name}, {where}", remedy)
        if fault not in self.faults:
            self.faults.append(fault)
