"""CDR, decompression and writing, each on its own."""

from __future__ import annotations

import os
import struct
import tempfile
import tracemalloc
from pathlib import Path
from typing import Any

import lz4.frame
import numpy as np
import pytest
from backports import zstd
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.highlevel import AnyReader

from studies import tiny_bags as tiny
from studies.tiny_bags import recording_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.compression import CompressionError, unpack_chunk, unpack_file, unpack_zstd
from trace_memory_ros.bags.faults import BagFault, Grade, verdict_of
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.condition import Condition, ConditionStatus, TickRecord
from trace_memory_ros.runtime.message_fields import TickReport
from trace_memory_ros.streams.cdr import Cdr, CdrError, header_stamp_ns
from trace_memory_ros.streams.joint_trajectory import recorded_points
from trace_memory_ros.streams.joints import SameTexts
from trace_memory_ros.streams.odometry import ODOMETRY
from trace_memory_ros.streams.twist import BASE_MOTION, TWIST_STAMPED

TEXTS = st.text(st.characters(blacklist_categories=("Cs",), blacklist_characters="\x00"), max_size=9)


def payload(message: Any, type_name: str, little: bool = True) -> bytes:
    return bytes(typestore().serialize_cdr(message, type_name, little_endian=little))


@settings(deadline=None, max_examples=50)
@given(
    names=st.lists(TEXTS, max_size=4),
    values=st.lists(st.floats(allow_nan=False), max_size=5),
    frame=TEXTS,
    ns=st.integers(0, 2**31 * 10**9 - 1),
    little=st.booleans(),
)
def test_joint_states_are_read_as_rosbags_wrote_them(
    names: list[str], values: list[float], frame: str, ns: int, little: bool
) -> None:
    message = make.joint_state(names, values, ns)
    message.header.frame_id = frame
    data = payload(message, fields.JOINTS, little)
    cdr = Cdr(data)
    assert cdr.header() == (ns, frame)
    found, positions = cdr.texts(), cdr.doubles()
    assert list(found) == names and positions.tolist() == values
    assert header_stamp_ns(data) == ns
    for end in range(len(data) - 8 * 1 - 4):  # velocity and effort are not read
        try:
            cut = Cdr(data[:end])
            cut.header()
            cut.texts(), cut.doubles()
        except CdrError:
            continue
        assert end >= cdr.at + 4


@settings(deadline=None, max_examples=50)
@given(frame=TEXTS, size=st.integers(1, 5), little=st.booleans())
def test_images_trajectories_and_velocities(frame: str, size: int, little: bool) -> None:
    pixels = np.arange(size * 4 * 3, dtype=np.uint8).reshape(size, 4, 3)
    cdr = Cdr(payload(make.image(pixels, 5, frame), fields.IMAGE, little))
    assert cdr.header().stamp_ns == 5
    image = fields.image(cdr)
    assert (image.height, image.width, image.encoding, image.step) == (size, 4, "rgb8", 12)
    assert bytes(image.data) == pixels.tobytes()
    cdr = Cdr(payload(make.trajectory([frame, "b"], [1.0, 2.0], 7, 100), fields.TRAJECTORY, little))
    cdr.header()
    names, (point,) = recorded_points(cdr)
    assert names == (frame, "b") and point.arrays["position"].tolist() == [1.0, 2.0] and point.from_start_ns == 100
    cdr = Cdr(payload(make.odometry((1.0, 2.0, 3.0), 7), fields.ODOMETRY, little))
    cdr.header()
    assert ODOMETRY.reader(BASE_MOTION).recorded(cdr).tolist() == [1.0, 2.0, 3.0]
    cdr = Cdr(payload(make.twist_stamped((1.0, 2.0, 3.0), 7), fields.TWIST, little))
    cdr.header()
    assert TWIST_STAMPED.reader(BASE_MOTION).recorded(cdr).tolist() == [1.0, 2.0, 3.0]
    status = make.episode_status(9, task=frame, episode=3, phase=2, branch=1, success=True, seed=-4, cue=1)
    cdr = Cdr(payload(status, fields.STATUS, little))
    cdr.header()
    found = fields.status(cdr)
    assert (found.task, found.episode, found.phase, found.branch, found.success) == (frame, 3, 2, 1, True)


@pytest.mark.parametrize("kind", [*fields.INTEGERS, fields.BOOL, fields.TEXT])
def test_plain_values(kind: str) -> None:
    value = "x" if kind == fields.TEXT else True if kind == fields.BOOL else 100
    assert fields.plain(Cdr(payload(make.make(kind, data=value), kind)), kind) == value


def test_names_that_change_are_read_anew() -> None:
    same = SameTexts()
    for names, little in ((["a", "bc"], True), (["a", "bc"], True), (["a", "bd"], True), (["a"], True), (["a"], False)):
        for frame in ("", "x", "frames"):
            message = make.joint_state(names, np.arange(len(names)), 1)
            message.header.frame_id = frame
            cdr = Cdr(payload(message, fields.JOINTS, little))
            cdr.header()
            found, positions = same.read(cdr), cdr.doubles()
            assert list(found) == names and positions.tolist() == list(range(len(names)))
    whole = payload(make.joint_state(["a"], [0.0], 1), fields.JOINTS)
    cdr = Cdr(whole[:28])
    cdr.header()
    with pytest.raises(CdrError):
        same.read(cdr), cdr.doubles()


def test_sequences_that_claim_too_much_are_refused_at_once() -> None:
    huge = b"\x00\x01\x00\x00" + struct.pack("<I", 2**32 - 1)
    for read in (Cdr.texts, Cdr.doubles, Cdr.text):
        with pytest.raises(CdrError, match="cut off"):
            read(Cdr(huge))
    for data in (b"", b"\x00\x01", b"\x00\x07\x00\x00abc", b"\x01\x01\x00\x00"):
        with pytest.raises(CdrError, match="encapsulation header|neither"):
            Cdr(data)


def test_decompression_neither_runs_over_nor_falls_short() -> None:
    raw = bytes(1000)
    packed = zstd.compress(raw)
    assert unpack_zstd(packed) == raw
    assert bytes(unpack_chunk(lz4.frame.compress(raw), "lz4", 1000, 0)) == raw
    for data, name, size, crc, message in (
        (packed, "zstd", 999, 0, "more than 999"),
        (packed, "zstd", 1001, 0, "1001 were promised"),
        (packed[:-3], "zstd", 1000, 0, "end early"),
        (b"junk" + packed, "zstd", 1000, 0, "damaged"),
        (raw, "", 1000, 7, "checksum"),
        (raw, "brotli", 1000, 0, "brotli"),
        (lz4.frame.compress(raw)[:-9], "lz4", 1000, 0, "early|damaged|promised"),
        (raw, "", 2**40, 0, "claims"),
    ):
        with pytest.raises(CompressionError, match=message):
            unpack_chunk(data, name, size, crc)


def test_files_of_several_frames_are_unpacked_whole(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(zstd.compress(b"one") + zstd.compress(b"two"))
    assert unpack_file(tmp_path / "a", tmp_path / "b") == ""
    assert (tmp_path / "b").read_bytes() == b"onetwo"
    (tmp_path / "a").write_bytes(zstd.compress(b"one") + b"rubbish")
    assert "damaged" in unpack_file(tmp_path / "a", tmp_path / "b")


def test_a_file_that_is_packed_well_takes_little_memory(tmp_path: Path) -> None:
    size = 2**28
    (tmp_path / "a").write_bytes(zstd.compress(bytes(size)) + zstd.compress(b"end"))
    tracemalloc.start()
    assert unpack_file(tmp_path / "a", tmp_path / "b") == ""
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (tmp_path / "b").stat().st_size == size + 3 and most < 2**25


def test_another_reader_reads_what_the_writer_wrote(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", recording_of(3))
    with AnyReader([bag]) as reader, BagReader(bag) as ours:
        theirs = [(c.topic, c.msgtype, stamp, bytes(data)) for c, stamp, data in reader.messages()]
        assert theirs == [(m.topic, m.type_name, m.log_ns, bytes(m.data)) for m in ours.messages()]
    with BagFileWriter(bag, {}) as again:
        again.add_topic("/x", fields.TEXT)
        again.write("/x", make.text("replaced"), 5)
        assert again.counts == {"/x": 1}
    with BagReader(bag) as ours:
        assert set(ours.topics) == {"/x"}


@pytest.mark.parametrize("whole", [False, True])
def test_a_bag_that_was_cut_stays_unless_it_must_be_whole(tmp_path: Path, whole: bool) -> None:
    bag = tmp_path / "bag"

    def cut() -> None:
        with BagFileWriter(bag, {"/x": fields.TEXT}, whole=whole) as writer:
            writer.write("/x", make.text("first"), 5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        cut()
    assert bag.exists() is not whole


def test_the_writer_replaces_bags_and_nothing_else(tmp_path: Path) -> None:
    (tmp_path / "photos").mkdir()
    with pytest.raises(ValueError, match="is no bag"):
        BagFileWriter(tmp_path / "photos", {})
    with pytest.raises(ValueError, match="choose from mcap"):
        BagFileWriter(tmp_path / "x", {}, "rosbag1")


def condition() -> Condition:
    row = np.arange(3, dtype=np.float32)
    return Condition(2, 9, 123, ConditionStatus.STALE, "why", "trace", "ab", np.ones((2, 3), np.float32),
                     row, row, row[:0], True, {"front": 77})  # fmt: skip


def test_conditions_and_records_survive_a_bag(tmp_path: Path) -> None:
    row = np.array([0.25, 0.75], dtype=np.float32)
    record = TickRecord("slot", row, row, row, 1.0, 0.5, True, 2.0, 0.1, 0.2, 0.3, 4, 5, 6.0, 7, 8, 9, {"encode": 1.5})
    seen = Observation(9, 123, {}, None, {"front": 100}, {"hand": "silent"})
    report = TickReport(condition(), record, seen, record.stage_ms)
    counters = {"front": StreamCounters(5, 1, 2, 0, 0), "hand": StreamCounters()}
    messages = {
        make.CONDITION: make.condition_to_message(condition(), ("front", "hand")),
        make.DIAGNOSTICS: make.report_to_message(report, ("front", "hand"), counters, ["x"]),
    }
    with BagFileWriter(tmp_path / "bag", {kind.rpartition("/")[2]: kind for kind in messages}) as bag:
        for kind, message in messages.items():
            bag.write(kind.rpartition("/")[2], message, 1)
    with AnyReader([tmp_path / "bag"]) as reader:
        one, other = (reader.deserialize(data, c.msgtype) for c, _, data in reader.messages())
    assert (one.tick, one.status, one.reason, one.token_count, one.token_width) == (9, 1, "why", 2, 3)
    assert one.input_stamps_ns.tolist() == [77, -1] and one.tokens.tolist() == [1.0] * 6
    assert other.input_received.tolist() == [5, 0] and other.stage_names == ["encode"]
    assert other.input_stale.tolist() == [False, True]
    assert other.input_ages_ms[0] == pytest.approx(23e-6) and np.isnan(other.input_ages_ms[1])


def test_faults_tell_all_four_and_compare() -> None:
    fault = BagFault("b", "is gone", "file x", "look for it")
    assert str(fault) == "b: file x: is gone; look for it"
    assert fault == BagFault("b", "is gone", "file x", "look for it") and len({fault, BagFault(*fault.args)}) == 1
    assert verdict_of("b", []).grade is Grade.OK
    assert str(verdict_of("b", [fault], usable=False)) == "b: unusable\n  file x: is gone; look for it"


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_permission_denied(storage: str) -> None:
    user = os.geteuid()
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o755)
        bag = write(Path(folder) / "bag", recording_of(2), storage)
        (file,) = (path for path in bag.iterdir() if path.suffix != ".yaml")
        for target in (file, bag):
            mode = target.stat().st_mode
            target.chmod(0)
            try:
                if user == 0:
                    os.seteuid(65534)  # root may read everything
                verdict = decode_bag(bag, tiny.RECORDING)[1]
            finally:
                os.seteuid(user)
                target.chmod(mode)
            assert verdict.grade is Grade.UNUSABLE
            assert "Permission denied" in str(verdict) and "permission to read" in str(verdict)
