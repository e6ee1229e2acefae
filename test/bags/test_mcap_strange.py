"""mcap files as strangers' recorders leave them: each gives all that is in it, or says what it does not."""

from __future__ import annotations

import struct
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from bags.mcap_library import File
from mcap.writer import CompressionType, IndexType, Writer

from studies import tiny_bags as tiny
from trace_memory_ros.bags import mcap_records as mcap
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader

BEGIN_NS = 1_700_000_000_000_000_000
PLAIN: dict[str, Any] = {"compression": CompressionType.NONE, "chunk_size": 300}


def messages(count: int = 60, begin_ns: int = BEGIN_NS, topics: int = 3) -> list[Any]:
    return [(k % topics, begin_ns + k, b"\0\1\0\0" + bytes([k % 256]) * 20) for k in range(count)]


def write(path: Path, count: int = 60, begin_ns: int = BEGIN_NS, **options: Any) -> Path:
    return File(messages(count, begin_ns), 3, {**PLAIN, **options}).write(path)


def read(path: Path, begin_ns: int | None = None, end_ns: int | None = None) -> tuple[Counter[str], str, list[int]]:
    """Messages by topic, the faults' texts, and log times in the order they came."""
    with BagReader(path) as reader:
        found = list(reader.messages(None, begin_ns, end_ns))
        faults = "\n".join(map(str, reader.faults))
    return Counter(message.topic for message in found), faults, [message.log_ns for message in found]


def edit(path: Path, op: int, change: Callable[[bytes], bytes | None], number: int = 0) -> Path:
    """Change the body of the record of kind `op` that comes as `number`, or leave it out for None."""
    content, out, at, seen = path.read_bytes(), bytearray(mcap.MAGIC), len(mcap.MAGIC), 0
    while at < len(content) - len(mcap.MAGIC):
        kind, size = mcap.RECORD.unpack_from(content, at)
        body: bytes | None = content[at + mcap.RECORD.size : at + mcap.RECORD.size + size]
        if kind == op:
            body = change(body or b"") if seen == number else body
            seen += 1
        out += b"" if body is None else mcap.RECORD.pack(kind, len(body)) + body
        at += mcap.RECORD.size + size
    path.write_bytes(bytes(out) + mcap.MAGIC)
    return path


def with_times(start_ns: int, end_ns: int) -> Callable[[bytes], bytes]:
    return lambda body: struct.pack("<QQ", start_ns, end_ns) + body[16:]


@pytest.mark.parametrize("index", [IndexType.ALL, IndexType.NONE])
@pytest.mark.parametrize("times", [(0, 0), (BEGIN_NS + 10**9, BEGIN_NS + 2 * 10**9), (BEGIN_NS + 59, BEGIN_NS)])
def test_chunk_times_that_lie(tmp_path: Path, times: tuple[int, int], index: IndexType) -> None:
    path = edit(write(tmp_path / "run.mcap", index_types=index), mcap.CHUNK, with_times(*times), 2)
    counts, faults, logged = read(path)
    assert counts == {f"/topic_{k}": 20 for k in range(3)} and logged == sorted(logged)
    assert "the chunk claims log times" in faults
    assert len(read(path, BEGIN_NS, BEGIN_NS + 60)[2]) == 60
    assert len(read(path, BEGIN_NS + 10**9, None)[2]) == 0


def test_no_interval_without_messages_ends_with_an_error(tmp_path: Path) -> None:
    path = write(tmp_path / "run.mcap")
    assert read(path, BEGIN_NS + 1000, BEGIN_NS + 2000)[2] == []
    assert read(path, 0, 5)[2] == []
    assert read(path, BEGIN_NS + 5, BEGIN_NS + 5)[2] == []


@pytest.mark.parametrize("compression", list(CompressionType))
def test_a_chunk_without_messages_does_not_move_the_begin(tmp_path: Path, compression: CompressionType) -> None:
    path = write(tmp_path / "run.mcap", compression=compression)
    head = struct.pack("<QQQI", 0, 0, 0, 0) + struct.pack("<I", 0) + struct.pack("<Q", 0)
    empty = mcap.RECORD.pack(mcap.CHUNK, len(head)) + head
    content = path.read_bytes()
    (size,) = struct.unpack_from("<Q", content, len(mcap.MAGIC) + 1)
    at = len(mcap.MAGIC) + mcap.RECORD.size + size
    path.write_bytes(content[:at] + empty + content[at:])
    with BagReader(path) as reader:
        assert (reader.begin_ns, reader.end_ns) == (BEGIN_NS, BEGIN_NS + 60)
        assert len(list(reader.messages())) == 60 and not reader.faults


def test_statistics_without_counts_per_channel(tmp_path: Path) -> None:
    path = edit(write(tmp_path / "run.mcap"), mcap.STATISTICS, lambda body: body[:42] + struct.pack("<I", 0))
    counts, faults, _ = read(path)
    assert counts == {f"/topic_{k}": 20 for k in range(3)} and not faults


def test_statistics_that_claim_too_little(tmp_path: Path) -> None:
    def less(body: bytes) -> bytes:
        return body[:46] + b"".join(struct.pack("<HQ", n, 7) for n, _ in struct.iter_unpack("<HQ", body[46:]))

    path = edit(write(tmp_path / "run.mcap"), mcap.STATISTICS, less)
    counts, faults, _ = read(path)
    assert counts == {f"/topic_{k}": 20 for k in range(3)}
    assert "topic /topic_0: holds 20 messages where the file's statistics claim 7" in faults


def test_indexes_that_leave_messages_out(tmp_path: Path) -> None:
    """An index without the third topic: nobody asks for it where the statistics know better."""

    def shorter(body: bytes) -> bytes | None:
        return None if body[:2] == b"\x03\x00" else body

    path = write(tmp_path / "run.mcap", chunk_size=10**6)
    for number in range(3):
        edit(path, mcap.MESSAGE_INDEX, shorter, number)
    assert read(path)[0] == {f"/topic_{k}": 20 for k in range(3)}


def test_files_one_behind_the_other_are_all_read(tmp_path: Path) -> None:
    """The second has other topics under the same channel ids."""
    first = write(tmp_path / "a.mcap")
    second = File(messages(30, BEGIN_NS + 1000, 2), 2, PLAIN, names="/other_{}").write(tmp_path / "b.mcap")
    content = second.read_bytes()
    both = tmp_path / "both.mcap"
    both.write_bytes(first.read_bytes() + content)
    counts, faults, logged = read(both)
    assert counts == {"/topic_0": 20, "/topic_1": 20, "/topic_2": 20, "/other_0": 15, "/other_1": 15}
    assert "another mcap file follows" in faults and logged == sorted(logged)
    both.write_bytes(first.read_bytes()[:-300] + content)
    counts, faults, _ = read(both)
    assert counts["/other_0"] == 15 and "cut off or damaged" in faults and "another mcap file follows" in faults


def test_what_follows_the_end(tmp_path: Path) -> None:
    path = write(tmp_path / "run.mcap")
    content = path.read_bytes()
    path.write_bytes(content + bytes(4096))
    assert read(path)[1] == ""
    path.write_bytes(content + b"notes")
    counts, faults, _ = read(path)
    assert counts.total() == 60 and "5 bytes that are no mcap file follow its end" in faults


@pytest.mark.parametrize("chunked", [True, False])
def test_messages_of_a_channel_that_nothing_describes(tmp_path: Path, chunked: bool) -> None:
    path = write(tmp_path / "run.mcap", use_chunking=chunked, compression=CompressionType.NONE, enable_crcs=False)
    content = path.read_bytes()
    # The channel's number, in every Channel record, becomes another one.
    record = mcap.RECORD.pack(mcap.CHANNEL, 2 + 2 + 4 + 8 + 4 + 3 + 4) + struct.pack("<HH", 2, 2)
    assert content.count(record) == 2
    path.write_bytes(content.replace(record, record[:-4] + struct.pack("<HH", 9, 2)))
    counts, faults, _ = read(path)
    assert counts == {"/topic_0": 20, "/topic_2": 20}
    assert "20 messages are of channel 2, which nothing describes: lost" in faults


def test_records_that_are_not_known_are_passed_over_and_said(tmp_path: Path) -> None:
    path = write(tmp_path / "run.mcap", use_chunking=False)
    content = path.read_bytes()
    (size,) = struct.unpack_from("<Q", content, len(mcap.MAGIC) + 1)
    at = len(mcap.MAGIC) + mcap.RECORD.size + size
    for op, said in ((0x41, True), (0x90, False)):
        path.write_bytes(content[:at] + mcap.RECORD.pack(op, 5) + b"hello" + content[at:])
        counts, faults, _ = read(path)
        assert counts == {f"/topic_{k}": 20 for k in range(3)}
        assert ("a record of kind 65, which is not known, is passed over" in faults) is said


def test_names_without_a_slash_and_types_of_the_first_recorders(tmp_path: Path) -> None:
    types = ("sensor_msgs/JointState", "std_msgs/msg/String", "acme/deep/msg/Thing")
    path = File(messages(), 3, PLAIN, names="topic_{}", types=types).write(tmp_path / "run.mcap")
    with BagReader(path) as reader:
        assert {name: info.type_name for name, info in reader.topics.items()} == {
            "/topic_0": "sensor_msgs/msg/JointState",
            "/topic_1": "std_msgs/msg/String",
            "/topic_2": "acme/deep/msg/Thing",
        }
        found = list(reader.messages(["/topic_0", "/topic_2"]))
        assert Counter(message.topic for message in found) == {"/topic_0": 20, "/topic_2": 20}
        assert not reader.faults


def test_topics_that_are_not_cdr_are_blamed_where_they_are_used(tmp_path: Path) -> None:
    """As Foxglove records its own beside those of ROS."""

    def recorded(name: str, encodings: dict[str, str]) -> Path:
        with (tmp_path / name).open("wb") as stream:
            writer = Writer(stream)
            writer.start("", "foxglove")
            channels: dict[str, int] = {}
            for entry in tiny.recording_of(12):
                if entry.topic not in channels:
                    schema = writer.register_schema(entry.type_name, "ros2msg", b"")
                    encoding = encodings.get(entry.topic, "cdr")
                    channels[entry.topic] = writer.register_channel(f"/{entry.topic}", encoding, schema)
                writer.add_message(channels[entry.topic], entry.log_ns, entry.data, entry.log_ns)
            grid = writer.register_schema("foxglove.Grid", "protobuf", b"\x01")
            writer.add_message(writer.register_channel("/grid", "protobuf", grid), BEGIN_NS, b"\x02", BEGIN_NS)
            writer.finish()
        return tmp_path / name

    episodes, verdict = decode_bag(recorded("good.mcap", {}), tiny.RECORDING)
    assert verdict.ok and episodes[0].usable.all(), str(verdict)
    _, verdict = decode_bag(recorded("bad.mcap", {"odom": "json"}), tiny.RECORDING)
    (fault,) = verdict.faults
    assert "is encoded as 'json'" in fault.what and "topic /odom" in fault.where


def test_two_names_that_become_one_are_said(tmp_path: Path) -> None:
    bag = tmp_path / "bag"
    write(bag / "run_0.mcap")
    File(messages(30, BEGIN_NS + 60), 3, PLAIN, names="topic_{}").write(bag / "run_1.mcap")
    counts, faults, _ = read(bag)
    assert counts == {f"/topic_{k}": 30 for k in range(3)}
    assert "topic /topic_0: is recorded under 2 names (/topic_0, topic_0): read as one topic" in faults


def test_a_file_without_messages_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BagFault, match="holds no messages"):
        BagReader(write(tmp_path / "run.mcap", 0))
