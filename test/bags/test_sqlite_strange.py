"""sqlite3 storage files as recorders and power cuts leave them."""

from __future__ import annotations

import shutil
import sqlite3
from pathlib import Path

import pytest

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader

BEGIN_NS = 1_700_000_000_000_000_000
TOPICS = (
    "CREATE TABLE topics(id INTEGER PRIMARY KEY, name TEXT NOT NULL, type TEXT NOT NULL, "
    "serialization_format TEXT NOT NULL, offered_qos_profiles TEXT NOT NULL)"
)
MESSAGES = "CREATE TABLE messages(id INTEGER PRIMARY KEY, topic_id INTEGER NOT NULL, timestamp {} NOT NULL, data BLOB)"
INDEX = "CREATE INDEX timestamp_idx ON messages (timestamp ASC)"


def create(path: Path, time_type: str = "INTEGER", index: bool = True, mode: str = "MEMORY") -> sqlite3.Connection:
    """A database as rosbag2 makes it, with two topics."""
    path.parent.mkdir(parents=True, exist_ok=True)
    connection = sqlite3.connect(path)
    connection.execute(f"PRAGMA journal_mode={mode}")
    connection.execute("PRAGMA wal_autocheckpoint=0")
    for statement in (TOPICS, MESSAGES.format(time_type), *([INDEX] if index else [])):
        connection.execute(statement)
    for key, name in ((1, "/a"), (2, "b")):
        connection.execute("INSERT INTO topics VALUES (?, ?, 'std_msgs/msg/String', 'cdr', '')", (key, name))
    connection.commit()
    return connection


def fill(connection: sqlite3.Connection, count: int = 400, size: int = 200, first: int = 0) -> None:
    """Messages of both topics in turn, later ones recorded a little before earlier ones now and then."""
    rows = [(1 + k % 2, BEGIN_NS + k + 3 * (k % 7 == 0), bytes([0, 1, 0, 0, k % 256]) * (size // 5)) for k in
            range(first, first + count)]  # fmt: skip
    connection.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)", rows)
    connection.commit()


def made(path: Path, **options: object) -> Path:
    connection = create(path, **options)  # type: ignore[arg-type]
    fill(connection)
    connection.close()
    return path


def read(path: Path, begin_ns: int | None = None, end_ns: int | None = None) -> tuple[list[tuple[str, int]], str]:
    with BagReader(path) as reader:
        found = [(message.topic, message.log_ns) for message in reader.messages(None, begin_ns, end_ns)]
        return found, "\n".join(map(str, reader.faults))


@pytest.mark.parametrize("index", [True, False])
def test_messages_come_in_order_with_and_without_an_index(tmp_path: Path, index: bool) -> None:
    path = made(tmp_path / "run.db3", index=index)
    found, faults = read(path)
    assert len(found) == 400 and [t for _, t in found] == sorted(t for _, t in found) and not faults
    assert {topic for topic, _ in found} == {"/a", "/b"}
    inside = [entry for entry in found if BEGIN_NS + 50 <= entry[1] < BEGIN_NS + 90]
    assert read(path, BEGIN_NS + 50, BEGIN_NS + 90)[0] == inside


@pytest.mark.parametrize("index", [True, False])
def test_nothing_is_listed_before_the_first_message(tmp_path: Path, index: bool) -> None:
    """The database asks the table step by step: a reader that lists all rows first would take as many steps at once."""
    path = tmp_path / "run.db3"
    connection = create(path, index=index)
    fill(connection, 50_000, 5)
    connection.close()
    with BagReader(path) as reader:
        import tracemalloc

        tracemalloc.start()
        source = reader.messages(["/a"])
        next(source)
        _, most = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    assert most < 200_000


@pytest.mark.parametrize("empty", [False, True])
def test_what_is_in_the_write_ahead_log_alone_is_read(tmp_path: Path, empty: bool) -> None:
    """rosbag2's resilient preset, killed: the database has its first page, or not even that."""
    connection = create(tmp_path / "live.db3", mode="WAL")
    fill(connection)
    bag = tmp_path / "bag"
    bag.mkdir()
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"live.db3{end}", bag / f"bag_0.db3{end}")
    connection.close()
    if empty:
        (bag / "bag_0.db3").write_bytes(b"")
    before = {path.name: path.read_bytes() for path in bag.iterdir()}
    found, faults = read(bag)
    assert len(found) == 400 and faults.count("\n") == 0 and "metadata.yaml" in faults
    assert {path.name: path.read_bytes() for path in bag.iterdir()} == before


def test_a_transaction_that_was_never_finished_is_said(tmp_path: Path) -> None:
    connection = create(tmp_path / "live.db3", mode="WAL")
    fill(connection)
    bag = tmp_path / "bag"
    bag.mkdir()
    for end in ("", "-wal"):
        shutil.copy(tmp_path / f"live.db3{end}", bag / f"bag_0.db3{end}")
    connection.close()
    log = bag / "bag_0.db3-wal"
    log.write_bytes(log.read_bytes()[:-2000])
    try:
        found, faults = read(bag)
    except BagFault as fault:
        found, faults = [], "\n".join(map(str, (*fault.also, fault)))
    assert len(found) < 400 and "its last transaction was never finished" in faults


@pytest.mark.parametrize("kind", ["TEXT", "BLOB"])
def test_times_as_text_are_read_and_said(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "run.db3"
    connection = create(path, kind)
    rows = [(1, str(BEGIN_NS + k) if k % 3 else f"at {k}", b"\0\1\0\0") for k in range(30)]
    connection.executemany("INSERT INTO messages(topic_id, timestamp, data) VALUES (?, ?, ?)", rows)
    connection.commit()
    connection.close()
    found, faults = read(path)
    assert [t for _, t in found] == [BEGIN_NS + k for k in range(30) if k % 3]
    assert "20 of 30 messages have their time as text" in faults and "10 of 30 messages have no time: lost" in faults


def test_messages_of_an_unknown_topic_are_said_whoever_is_asked_for(tmp_path: Path) -> None:
    path = made(tmp_path / "run.db3")
    connection = sqlite3.connect(path)
    connection.execute("UPDATE messages SET topic_id = 7 WHERE id <= 5")
    connection.commit()
    connection.close()
    found, faults = read(path)
    assert len(found) == 395 and "5 messages have no known topic: lost" in faults


def test_an_index_that_lost_entries_is_not_used(tmp_path: Path) -> None:
    path = made(tmp_path / "run.db3")
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA writable_schema=ON")
    # A partial index of the same name: what an index that broke off looks like to a query.
    connection.execute("DROP INDEX timestamp_idx")
    connection.execute(f"CREATE INDEX timestamp_idx ON messages (timestamp ASC) WHERE timestamp < {BEGIN_NS + 100}")
    connection.execute("UPDATE sqlite_master SET sql = ? WHERE name = 'timestamp_idx'", (INDEX,))
    connection.commit()
    connection.close()
    found, faults = read(path)
    assert len(found) == 400 and "the index of times does not fit the messages" in faults


def overwritten(path: Path, page: int, count: int = 1) -> None:
    content = bytearray(path.read_bytes())
    content[4096 * page : 4096 * (page + count)] = b"\xff" * 4096 * count
    path.write_bytes(content)


def test_every_page_but_the_first_may_be_damaged(tmp_path: Path) -> None:
    """Whatever page it is, what the others hold is read, in order, and something is said."""
    whole = made(tmp_path / "whole.db3").read_bytes()
    expected = read(tmp_path / "whole.db3")[0]
    lost = []
    for page in range(1, len(whole) // 4096):
        path = tmp_path / "run.db3"
        path.write_bytes(whole)
        overwritten(path, page)
        try:
            found, faults = read(path)
        except BagFault as fault:
            found, faults = [], str(fault)
        assert faults and set(found) <= set(expected) and [t for _, t in found] == sorted(t for _, t in found), page
        lost.append(len(expected) - len(found))
    # All but the roots of the tables and the table of topics: a leaf has some twenty messages.
    assert sorted(lost)[: len(lost) - 2][-1] <= 40


@pytest.mark.parametrize(
    ("statement", "said"),
    [
        ("UPDATE topics SET serialization_format = 'ros1'", "is encoded as 'ros1'"),
        ("DROP TABLE topics", "has tables messages, not topics and messages"),
        ("ALTER TABLE messages RENAME COLUMN timestamp TO time", "damaged"),
        ("UPDATE messages SET data = 5 WHERE id = 3", "holds int, not bytes"),
    ],
)
def test_other_oddities_are_said(tmp_path: Path, statement: str, said: str) -> None:
    path = made(tmp_path / "run.db3")
    connection = sqlite3.connect(path)
    connection.execute(statement)
    connection.commit()
    connection.close()
    try:
        faults = read(path)[1]
    except BagFault as fault:
        faults = "\n".join(map(str, (*fault.also, fault)))
    assert said in faults


def test_pages_that_stand_in_for_others_end_and_give_each_message_once(tmp_path: Path) -> None:
    whole = made(tmp_path / "whole.db3").read_bytes()
    expected = read(tmp_path / "whole.db3")[0]
    path, pages = tmp_path / "run.db3", len(whole) // 4096
    for source in range(1, pages):
        for target in range(1, pages, 3):
            content = bytearray(whole)
            content[4096 * target : 4096 * (target + 1)] = whole[4096 * source : 4096 * (source + 1)]
            path.write_bytes(content)
            try:
                found, faults = read(path)
            except BagFault as fault:
                found, faults = [], str(fault)
            assert len(found) <= len(expected)
            assert faults or sorted(found) == sorted(expected), (source, target)
