"""Cameras recorded as compressed video: the pictures of a bag are those that a live node makes of the same packets."""

from __future__ import annotations

from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

from studies import tiny_bags as tiny
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.observation.config import TRANSPORTS, CameraConfig, ObservationConfig
from trace_memory_ros.observation.images import VideoDecoder, prepare

av = pytest.importorskip("av", reason="PyAV comes with the extra [video]")

TICKS, KEY_EVERY, PX = 12, 5, 16
TEXTS = {
    "video": "builtin_interfaces/Time timestamp\nstring frame_id\nuint8[] data\nstring format\n",
    "ffmpeg": (
        "std_msgs/Header header\nint32 width\nint32 height\nstring encoding\nuint64 pts\nuint8 flags\n"
        "bool is_bigendian\nuint8[] data\n"
    ),
}


def packets() -> list[bytes]:
    """H.264 of a bar that moves, a key frame every `KEY_EVERY`."""
    context = av.CodecContext.create("libx264", "w")
    context.width, context.height, context.pix_fmt = 64, 48, "yuv420p"
    context.time_base, context.framerate, context.gop_size = Fraction(1, 10), Fraction(10), KEY_EVERY
    context.options = {"preset": "ultrafast", "tune": "zerolatency"}
    sent = []
    for k in range(TICKS):
        image = np.full((48, 64, 3), 60, np.uint8)
        image[:, 4 * k : 4 * k + 12] = (220, 40, 30)
        frame = av.VideoFrame.from_ndarray(image, format="rgb24")
        frame.pts = k
        sent += [bytes(packet) for packet in context.encode(frame)]
    return sent


def write(bag: Path, transport: str, lost: int | None = None) -> Path:
    """The tiny robot with its first camera as video; packet `lost` is not recorded."""
    type_name, store = TRANSPORTS[transport], get_typestore(Stores.ROS2_JAZZY)
    store.register(get_types_from_msg(TEXTS[transport], type_name))
    rows: list[tuple[str, str, int, bytes]] = [
        (e.topic, e.type_name, e.log_ns, e.data) for e in tiny.recording_of(TICKS) if e.topic != "front/image"
    ]
    for k, data in enumerate(packets()):
        if k != lost:
            rows.append(("front/video", type_name, tiny.stamp_of(k), message(store, transport, k, data)))
    with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        kinds = {topic: kind for topic, kind, _, _ in rows}
        known = {topic: writer.add_connection(f"/{topic}", kind, typestore=store) for topic, kind in kinds.items()}
        for topic, _, log_ns, data in sorted(rows, key=lambda row: row[2]):
            writer.write(known[topic], log_ns, data)
    return bag


def message(store: Any, transport: str, k: int, data: bytes) -> bytes:
    stamp = dict(zip(("sec", "nanosec"), divmod(tiny.stamp_of(k), 1_000_000_000), strict=True))
    time = store.types["builtin_interfaces/msg/Time"](**stamp)
    content = np.frombuffer(data, np.uint8)
    if transport == "video":
        values: dict[str, Any] = {"timestamp": time, "frame_id": "eye", "data": content, "format": "h264"}
    else:
        header = store.types["std_msgs/msg/Header"](stamp=time, frame_id="eye")
        values = {"header": header, "width": 64, "height": 48, "encoding": "libx264", "pts": k}
        values |= {"flags": 0, "is_bigendian": False, "data": content}
    type_name = TRANSPORTS[transport]
    return bytes(store.serialize_cdr(store.types[type_name](**values), type_name))


def recording(transport: str) -> RecordingConfig:
    camera = CameraConfig("front", "front/video", 250, transport)
    observation = ObservationConfig((camera,), tiny.OBSERVATION.streams, image_px=PX, thumbnail_px=4)
    return RecordingConfig(observation, tiny.RECORDING.actions)


def pictures() -> list[NDArray[np.uint8]]:
    decoder = VideoDecoder()
    return [prepare(decoder.push(packet, "h264").rgb(), PX) for packet in packets()]


@pytest.mark.parametrize("transport", ["video", "ffmpeg"])
def test_a_bag_of_video(tmp_path: Path, transport: str) -> None:
    (episode,), verdict = decode_bag(write(tmp_path / "bag", transport), recording(transport))
    assert verdict.ok, verdict
    assert episode.ticks == TICKS and episode.usable.all()
    np.testing.assert_array_equal(next(iter(episode.images.values()))[:], pictures())


@pytest.mark.parametrize("transport", ["video", "ffmpeg"])
def test_a_lost_packet_is_named_until_the_next_key_frame(tmp_path: Path, transport: str) -> None:
    (episode,), verdict = decode_bag(write(tmp_path / "bag", transport, lost=2), recording(transport))
    gone = [k for k in range(TICKS) if not episode.usable[k]]
    # Tick 2 holds the picture before it; 3 and 4 have packets that lack the lost one.
    assert gone == [3, 4]
    assert "a packet is missing" in str(verdict)
    expected = pictures()
    for k in range(KEY_EVERY, TICKS):
        np.testing.assert_array_equal(next(iter(episode.images.values()))[k], expected[k])


def test_a_recording_that_begins_within_a_group_waits_for_its_key_frame(tmp_path: Path) -> None:
    (episode,), verdict = decode_bag(write(tmp_path / "bag", "video", lost=0), recording("video"))
    assert [k for k in range(episode.ticks) if episode.usable[k]] == list(range(KEY_EVERY - 1, TICKS - 1))
    assert "key frame" in str(verdict)
