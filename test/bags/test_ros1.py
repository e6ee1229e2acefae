"""ROS 1 bags become bags that everything here reads, with every message and every log time."""

from __future__ import annotations

from pathlib import Path

import pytest
from rosbags import rosbag2
from rosbags.interfaces import Connection
from rosbags.rosbag1 import Reader, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from studies import tiny_bags as tiny
from studies.tiny_bags import RECORDING, recording_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import Grade
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.cli.main import main
from trace_memory_ros.observation.frames import stacked


def old_bag(path: Path, compression: Writer.CompressionFormat | None = None, own_type: bool = True) -> Path:
    """The tiny recording as `rosbag record` would have written it: topics without a slash, headers with a number."""
    store = get_typestore(Stores.ROS1_NOETIC)
    store.register(get_types_from_msg("Header header\nfloat64 force\n", "acme_msgs/msg/Grip"))
    writer = Writer(path)
    if compression is not None:
        writer.set_compression(compression)
    with writer:
        connections = {}
        for entry in sorted(recording_of(12), key=lambda entry: entry.log_ns):
            if entry.topic not in connections:
                connections[entry.topic] = writer.add_connection(entry.topic, entry.type_name, typestore=store)
            # With the new header's fields and a number that ROS 1 has before them.
            data = typestore().cdr_to_ros1(entry.data, entry.type_name)
            writer.write(connections[entry.topic], entry.log_ns, bytes(data))
        if own_type:
            header = store.types["std_msgs/msg/Header"](
                seq=7, stamp=store.types["builtin_interfaces/msg/Time"](sec=5, nanosec=6), frame_id="hand"
            )
            grip = store.types["acme_msgs/msg/Grip"](header=header, force=2.5)
            own = writer.add_connection("grip", "acme_msgs/msg/Grip", typestore=store)
            writer.write(own, tiny.BEGIN_NS, bytes(store.serialize_ros1(grip, "acme_msgs/msg/Grip")))
    return path


@pytest.mark.parametrize("compression", [None, *Writer.CompressionFormat])
def test_a_converted_bag_is_the_recording(tmp_path: Path, compression: Writer.CompressionFormat | None) -> None:
    old = old_bag(tmp_path / "walk.bag", compression)
    for _ in range(2):  # its own bag is replaced
        assert main(["bags", "convert", str(old), "--out", str(tmp_path / "new")]) == 0
    (episode,), verdict = decode_bag(tmp_path / "new" / "walk", RECORDING)
    (expected,), _ = decode_bag(write(tmp_path / "same", recording_of(12)), RECORDING)
    assert verdict.grade is Grade.OK, str(verdict)
    assert (stacked(episode.images, slice(None)) == stacked(expected.images, slice(None))).all()
    assert (episode.state == expected.state).all()
    assert episode.actions is not None and expected.actions is not None
    assert (episode.actions == expected.actions).all() and (episode.stamps_ns == expected.stamps_ns).all()
    with BagReader(tmp_path / "new" / "walk") as reader:
        assert reader.topics["/front/image"].type_name == fields.IMAGE
        assert reader.topics["/grip"].type_name == "acme_msgs/msg/Grip"
        times = [message.log_ns for message in reader.messages(["/front/image"])]
    assert times == [entry.log_ns for entry in recording_of(12) if entry.topic == "front/image"]


def test_a_bag_that_broke_off_is_named_and_the_others_are_converted(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = tmp_path / "old"
    folder.mkdir()
    broken = old_bag(folder / "broken.bag")
    broken.write_bytes(broken.read_bytes()[:-500])
    (folder / "none.bag").write_bytes(b"")
    old_bag(folder / "sound.bag")
    assert main(["bags", "convert", str(folder), "--out", str(tmp_path / "new")]) == 1
    said = capsys.readouterr()
    assert "sound.bag: 61 messages" in said.out
    assert "broken.bag: file: cannot be converted" in said.err and "rosbag reindex" in said.err
    assert "none.bag" in said.err and "Traceback" not in said.err
    assert sorted(path.name for path in (tmp_path / "new").iterdir() if path.is_dir()) == ["sound"]


def test_a_conversion_that_was_interrupted_leaves_nothing_in_the_way(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    old, words = old_bag(tmp_path / "walk.bag"), ["--out", str(tmp_path / "new")]
    write_message = rosbag2.Writer.write

    def interrupted(writer: rosbag2.Writer, connection: Connection, log_ns: int, data: bytes) -> None:
        if log_ns >= tiny.stamp_of(6):
            raise KeyboardInterrupt
        write_message(writer, connection, log_ns, data)

    with monkeypatch.context() as patched:
        patched.setattr(rosbag2.Writer, "write", interrupted)
        assert main(["bags", "convert", str(old), *words]) == 130
    assert not (tmp_path / "new" / "walk").exists()
    assert main(["bags", "convert", str(old), *words]) == 0


def test_a_bag_that_lost_messages_on_the_way_is_not_left_as_a_whole_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    old = old_bag(tmp_path / "walk.bag")
    monkeypatch.setattr(Reader, "message_count", 62)
    assert main(["bags", "convert", str(old), "--out", str(tmp_path / "new")]) == 1
    assert "holds 62 messages, 61 of them were converted" in capsys.readouterr().err
    assert not (tmp_path / "new" / "walk").exists()


def test_what_cannot_be_converted_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "empty").mkdir()
    for source, said in ((tmp_path / "empty", "holds no ROS 1 bag"), (tmp_path / "gone", "does not exist")):
        assert main(["bags", "convert", str(source), "--out", str(tmp_path / "new")]) == 1
        assert said in capsys.readouterr().err
    (tmp_path / "day").mkdir()
    one, other = old_bag(tmp_path / "walk.bag"), old_bag(tmp_path / "day" / "walk.bag")
    assert main(["bags", "convert", str(one), str(other), "--out", str(tmp_path / "new")]) == 1
    assert "have one name" in capsys.readouterr().err
    assert not (tmp_path / "new").exists()
