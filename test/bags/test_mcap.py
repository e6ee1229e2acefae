"""Layouts of mcap files that other recorders write, and what is saved from damaged ones."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest
from bags.bad import storage_file
from bags.bad_storage import chunk_offsets, write_in_chunks

from studies.tiny_bags import RECORDING, recording_of, write
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import Grade
from trace_memory_ros.bags.mcap_records import CHUNK, CHUNK_HEAD, DATA_END, FOOTER, MAGIC, RECORD
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.observation.frames import stacked

TICKS = 12


def records(content: bytes, begin: int, end: int) -> list[tuple[int, bytes]]:
    """Opcode and body of the records in a part of a file."""
    found, at = [], begin
    while at < end:
        op, size = RECORD.unpack_from(content, at)
        found.append((op, content[at + RECORD.size : at + RECORD.size + size]))
        at += RECORD.size + size
    return found


def record(op: int, body: bytes) -> bytes:
    return RECORD.pack(op, len(body)) + body


def unchunked(content: bytes) -> bytes:
    """The file without chunks, indices and summary, as `fastwrite` leaves it when a recorder is ended early."""
    (header, *rest) = records(content, len(MAGIC), len(content) - len(MAGIC))
    out = MAGIC + record(*header)
    for op, body in rest:
        if op == CHUNK:
            start = CHUNK_HEAD.size + 4 + 8
            out += b"".join(record(*inner) for inner in records(body[start:], 0, len(body) - start))
    return out + record(DATA_END, bytes(4)) + record(FOOTER, bytes(20)) + MAGIC


def with_summary(content: bytes) -> bytes:
    """An unchunked file that keeps the summary's schemas, channels and statistics."""
    rest = records(content, len(MAGIC), len(content) - len(MAGIC))
    end = next(i for i, (op, _) in enumerate(rest) if op == DATA_END)
    summary = b"".join(record(op, body) for op, body in rest[end + 1 :] if op in (0x03, 0x04, 0x0B))
    body = unchunked(content)[: -len(MAGIC) - RECORD.size - 20]
    return body + summary + record(FOOTER, struct.pack("<QQI", len(body), 0, 0)) + MAGIC


@pytest.mark.parametrize("layout", [unchunked, with_summary])
def test_files_without_chunks(tmp_path: Path, layout) -> None:  # type: ignore[no-untyped-def]
    bag = write(tmp_path / "bag", recording_of(TICKS))
    (expected,) = decode_bag(bag, RECORDING)[0]
    file = storage_file(bag)
    file.write_bytes(layout(file.read_bytes()))
    (episode,), verdict = decode_bag(bag, RECORDING)
    assert verdict.grade is Grade.OK, str(verdict)
    assert (stacked(episode.images, slice(None)) == stacked(expected.images, slice(None))).all()
    assert (episode.state == expected.state).all()


def test_an_unchunked_file_that_breaks_off_gives_what_came_before(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", recording_of(TICKS))
    file = storage_file(bag)
    content = unchunked(file.read_bytes())
    file.write_bytes(content[: len(content) * 3 // 4])
    (episode,), verdict = decode_bag(bag, RECORDING)
    assert 0 < episode.ticks < TICKS and episode.usable.all()
    assert verdict.grade is Grade.DEGRADED and "cut off or damaged" in str(verdict)


def test_behind_a_damaged_record_the_index_finds_the_chunks(tmp_path: Path) -> None:
    bag = write_in_chunks(tmp_path / "bag")
    with BagReader(bag) as reader:
        whole = [(m.topic, m.log_ns) for m in reader.messages()]
    file = storage_file(bag)
    content = bytearray(file.read_bytes())
    at = chunk_offsets(bytes(content))[2]
    (size,) = struct.unpack_from("<Q", content, at + 1)
    # The length of the message index that follows the chunk.
    struct.pack_into("<Q", content, at + RECORD.size + size + 1, 2**60)
    file.write_bytes(content)
    with BagReader(bag) as reader:
        assert [(m.topic, m.log_ns) for m in reader.messages()] == whole
        (fault,) = reader.faults
        assert "goes beyond the end of the file" in fault.what


@pytest.mark.parametrize("share", [0.05, 0.3, 0.5, 0.7, 0.9, 0.97, 0.999])
@pytest.mark.parametrize(("storage", "compression"), [("mcap", "none"), ("mcap", "chunk"), ("sqlite3", "none")])
def test_a_file_that_is_cut_anywhere_is_never_shorter_without_a_word(
    tmp_path: Path, share: float, storage: str, compression: str
) -> None:
    bag = write(tmp_path / "bag", recording_of(TICKS), storage, compression)
    file = storage_file(bag)
    content = file.read_bytes()
    file.write_bytes(content[: int(len(content) * share)])
    (bag / "metadata.yaml").unlink()
    episodes, verdict = decode_bag(bag, RECORDING)
    assert not verdict.ok
    texts = [fault.what for fault in verdict.faults if fault.where != "metadata.yaml"]
    assert texts or sum(episode.ticks for episode in episodes) == TICKS
