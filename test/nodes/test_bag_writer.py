"""A recorded bag gives back, through rosbags and our message definitions, exactly what was published."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.highlevel import AnyReader

rclpy = pytest.importorskip("rclpy")
from rclpy.serialization import deserialize_message, serialize_message  # noqa: E402
from sensor_msgs.msg import Image  # noqa: E402
from visualization_msgs.msg import Marker, MarkerArray  # noqa: E402

from trace_memory_ros.arm.nodes.episode_client import EpisodeClient  # noqa: E402
from trace_memory_ros.bags.types import typestore  # noqa: E402
from trace_memory_ros.msg import EpisodeStatus, MemoryCondition, MemoryDiagnostics  # noqa: E402
from trace_memory_ros.nodes import conversion, qos  # noqa: E402
from trace_memory_ros.nodes.bag_writer import BagTopic, BagWriter, header_stamp_ns, subscribe_raw  # noqa: E402
from trace_memory_ros.runtime.shipped import message_files  # noqa: E402

STAMP_NS = 1_700_000_000_123_456_789
TOPICS = (
    BagTopic("camera/overhead/image_raw", Image, qos.sensor("reliable")),
    BagTopic("memory/condition", MemoryCondition, qos.CONDITION),
    BagTopic("memory/diagnostics", MemoryDiagnostics, qos.CONDITION),
    BagTopic("memory/markers", MarkerArray, qos.DIAGNOSTICS, on_time_axis=False),
    BagTopic("episode", EpisodeStatus, qos.STATUS),
)


def condition() -> MemoryCondition:
    return MemoryCondition(
        header=conversion.header(STAMP_NS + 5),
        tick=7,
        mechanism="trace",
        model_id="ab",
        token_count=2,
        token_width=3,
        tokens=np.arange(6, dtype=np.float32) / 7,
        wrote=True,
        input_names=["overhead", "joint_states"],
        input_stamps_ns=[STAMP_NS, -1],
    )


def messages() -> dict[str, object]:
    pixels = np.random.default_rng(0).integers(0, 255, (5, 4, 3)).astype(np.uint8)
    return {
        "camera/overhead/image_raw": conversion.image_message(pixels, STAMP_NS, "camera"),
        "memory/markers": MarkerArray(markers=[Marker(ns="slots", id=3)]),
        "memory/condition": condition(),
        "memory/diagnostics": MemoryDiagnostics(header=conversion.header(STAMP_NS + 5), surprise=0.25, faults=["x: é"]),
        "episode": EpisodeStatus(header=conversion.header(STAMP_NS + 5), task="colour", seed=-1, progress=0.5),
    }


def test_round_trip_bit_for_bit_and_in_order(tmp_path: Path) -> None:
    sent = {name: serialize_message(message) for name, message in messages().items()}
    with BagWriter(tmp_path / "bag", TOPICS) as bag:
        bag.write("memory/markers", sent["memory/markers"])
        assert bag.counts["memory/markers"] == 0, "no stamp was seen yet that could place it"
        for name, data in sent.items():
            bag.write(name, data)
    assert bag.counts == dict.fromkeys(sent, 1)
    with AnyReader([tmp_path / "bag"]) as reader:
        rows = list(reader.messages())
        names = [connection.topic for connection, _, _ in rows]
        assert names == [f"/{name}" for name in sent]
        assert [stamp - STAMP_NS for _, stamp, _ in rows] == [0, 1, 5, 6, 7]
        for (_, _, raw), data in zip(rows, sent.values(), strict=True):
            assert bytes(raw) == data
        # Read from the bag's own definitions, without ours.
        decoded: Any = reader.deserialize(rows[2][2], rows[2][0].msgtype)
    assert decoded.input_stamps_ns.tolist() == [STAMP_NS, -1]
    assert np.array_equal(decoded.tokens, np.arange(6, dtype=np.float32) / 7)
    assert deserialize_message(bytes(rows[3][2]), MemoryDiagnostics).faults == ["x: é"]


def test_registered_types_are_those_that_were_built() -> None:
    store = typestore()
    assert len(message_files()) >= 3
    for kind in (MemoryCondition, MemoryDiagnostics, EpisodeStatus):
        fields = {name for name, _ in store.fielddefs[f"trace_memory_ros/msg/{kind.__name__}"][1]}
        assert fields == set(kind.get_fields_and_field_types())


def test_raw_subscription_feeds_the_bag_over_dds(tmp_path: Path) -> None:
    topic = TOPICS[1]
    with EpisodeClient(name="recorder") as client, BagWriter(tmp_path / "bag", [topic]) as bag:
        # A client of its own listens to this topic too; the name keeps them apart.
        (subscription,) = subscribe_raw(client.node, [topic], bag.write)
        publisher = client.node.create_publisher(MemoryCondition, topic.name, qos.CONDITION)
        assert client.spin_until(lambda: subscription.get_publisher_count() > 0, 10.0)
        assert client.spin_until(lambda: publisher.get_subscription_count() > 1, 10.0)
        publisher.publish(condition())
        assert client.spin_until(lambda: bag.counts[topic.name] > 0, 10.0)
    with AnyReader([tmp_path / "bag"]) as reader:
        ((connection, stamp, raw),) = reader.messages()
        assert stamp == STAMP_NS + 5 == header_stamp_ns(bytes(raw))
        decoded: Any = reader.deserialize(raw, connection.msgtype)
        assert decoded.tick == 7


def test_an_old_bag_is_replaced_but_nothing_else_is(tmp_path: Path) -> None:
    for _ in range(2):
        with BagWriter(tmp_path / "bag", TOPICS[:1]):
            pass
    (tmp_path / "photos").mkdir()
    with pytest.raises(ValueError, match="exists and is no bag"):
        BagWriter(tmp_path / "photos", TOPICS)


def test_big_endian_data_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="begins with 00000000"):
        header_stamp_ns(bytes(16))
