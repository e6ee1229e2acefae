"""What the `mcap` library finds in a file, and in any interval of it, is what our reader gives."""

from __future__ import annotations

import tempfile
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from bags.mcap_library import File, library_counts, library_messages, options
from hypothesis import given, settings
from hypothesis import strategies as st
from mcap.writer import CompressionType, IndexType

from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader

BEGIN_NS = 1_700_000_000_000_000_000


def ours(path: Path, begin_ns: int | None = None, end_ns: int | None = None) -> list[tuple[str, int, bytes]]:
    with BagReader(path) as reader:
        found = [(m.topic, m.log_ns, bytes(m.data)) for m in reader.messages(None, begin_ns, end_ns)]
        assert not reader.faults, [str(fault) for fault in reader.faults]
    return found


def by_time(messages: list[tuple[str, int, bytes]]) -> list[tuple[str, int, bytes]]:
    return sorted(messages, key=lambda message: message[1])


TIMES = st.one_of(st.integers(0, 60), st.integers(BEGIN_NS, BEGIN_NS + 40), st.just(2**64 - 2))
# Zstd's magic would mean a message that is packed by itself.
PAYLOADS = st.binary(max_size=40).filter(lambda data: not data.startswith(b"\x28\xb5\x2f\xfd"))
MESSAGES = st.lists(st.one_of(st.none(), st.tuples(st.integers(0, 2), TIMES, PAYLOADS)), max_size=25)
OPTIONS = st.fixed_dictionaries(
    {
        "chunk_size": st.sampled_from([1, 60, 200, 10**6]),
        "compression": st.sampled_from(list(CompressionType)),
        "index_types": st.sampled_from([IndexType.ALL, IndexType.NONE, IndexType.MESSAGE, IndexType.CHUNK]),
        "repeat_channels": st.booleans(),
        "repeat_schemas": st.booleans(),
        "use_chunking": st.booleans(),
        "use_statistics": st.booleans(),
        "use_summary_offsets": st.booleans(),
        "enable_crcs": st.booleans(),
        "enable_data_crcs": st.booleans(),
    }
)


@settings(deadline=None, max_examples=300)
@given(messages=MESSAGES, written=OPTIONS, topics=st.integers(3, 5), beside=st.booleans(), data=st.data())
def test_any_file_of_the_librarys_writer(
    messages: list[Any], written: dict[str, Any], topics: int, beside: bool, data: st.DataObject
) -> None:
    with tempfile.TemporaryDirectory() as folder:
        path = File(messages, topics, written, beside).write(Path(folder) / "run.mcap")
        expected = [(f"/topic_{m[0]}", m[1], m[2]) for m in messages if m is not None]
        if not expected:
            with pytest.raises(BagFault, match="holds no message"):
                BagReader(path)
            return
        assert sorted(ours(path)) == sorted(expected) == sorted(library_messages(path))
        assert [m[1] for m in ours(path)] == sorted(m[1] for m in expected)
        with BagReader(path) as reader:
            counts = {name: info.messages for name, info in reader.topics.items() if info.messages}
            assert counts == library_counts(path) == Counter(m[0] for m in expected)
            assert reader.begin_ns == min(m[1] for m in expected)
            assert reader.end_ns == max(m[1] for m in expected) + 1
        edges = st.sampled_from(sorted({m[1] + d for m in expected for d in (-1, 0, 1) if m[1] + d >= 0}))
        begin_ns, end_ns = sorted((data.draw(edges), data.draw(edges)))
        inside = [m for m in expected if begin_ns <= m[1] < end_ns]
        assert sorted(ours(path, begin_ns, end_ns)) == sorted(inside)


@pytest.mark.parametrize("written", list(options()), ids=str)
def test_order_and_payloads_of_long_files(tmp_path: Path, written: dict[str, Any]) -> None:
    """Chunks of some messages each, whose times overlap a little, as a recorder of several threads writes them."""
    jitter = [0, 7, -5, 3, -2]
    messages: list[Any] = [(k % 3, BEGIN_NS + 10 * k + jitter[k % 5], bytes([k % 251]) * 30) for k in range(500)]
    path = File(messages, 3, {"chunk_size": 400, **written}).write(tmp_path / "run.mcap")
    assert by_time(ours(path)) == ours(path) == by_time(library_messages(path))
    assert ours(path, BEGIN_NS + 1000, BEGIN_NS + 2000) == by_time(
        library_messages(path, BEGIN_NS + 1000, BEGIN_NS + 2000)
    )


@pytest.mark.parametrize("mapped", [False, True])
def test_one_early_time_in_every_chunk_keeps_little_in_memory(tmp_path: Path, mapped: bool) -> None:
    """All chunks begin at 0, and none can be given before all are known: payloads are read when their time comes."""
    messages: list[Any] = []
    for k in range(40):
        messages += [(0, 0, b"early"), (1, BEGIN_NS + 100 - k, bytes(2**20)), None]
    path = File(messages, 3, {"compression": CompressionType.NONE}).write(tmp_path / "run.mcap")
    with BagReader(path, mapped) as reader:
        times = [message.log_ns for message in reader.messages()]
        kept = sum(len(content) for content in reader._storages[0]._kept.values())  # type: ignore[attr-defined]
    assert times == sorted(times) and len(times) == 80
    assert kept <= 2**25 + 2**21


def test_many_small_messages_cost_a_table_of_few_entries(tmp_path: Path) -> None:
    messages: list[Any] = [(0, BEGIN_NS + k, b"12345678") for k in range(20_000)]
    path = File(messages, 3, {"use_chunking": False}).write(tmp_path / "run.mcap")
    with BagReader(path) as reader:
        assert len(reader._storages[0]._blocks) < 10  # type: ignore[attr-defined]
        assert reader.topics["/topic_0"].messages == 20_000
