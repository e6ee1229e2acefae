"""Records topics into a rosbag2 (mcap), as they come off the wire: no message is decoded or encoded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Any

from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from rosbags.interfaces import Qos, QosDurability, QosHistory, QosLiveliness, QosReliability, QosTime
from rosbags.rosbag2 import StoragePlugin, Writer

from trace_memory_ros.bags.layout import AUTHOR
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.bags.writer import replace_bag

CDR_LITTLE_ENDIAN = b"\x00\x01"
_INFINITE = QosTime(9_223_372_036, 854_775_807)


@dataclass(frozen=True)
class BagTopic:
    """A topic to record. kind: message class. qos: that of the subscription, and what a player offers.

    on_time_axis: its messages begin with a header stamped on the sensors' clock.
    """

    name: str
    kind: type
    qos: QoSProfile
    on_time_axis: bool = True


COMMAND = "trace_memory_ros.nodes.bag_writer"
"""What a bag says that wrote it."""


class BagWriter:
    """Writes raw messages to `folder`, where a bag of an earlier one is replaced; a context manager.

    Messages lie on the axis of the sensors' header stamps, so that a bag recorded faster than real time plays at the
    robot's own pace; one that has no such stamp gets the newest seen, and before the first it is left out. Equal times
    are told apart by 1 ns, in order of arrival.
    """

    def __init__(self, folder: Path, topics: Sequence[BagTopic]) -> None:
        replace_bag(folder, COMMAND)
        folder.parent.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.counts = dict.fromkeys((topic.name for topic in topics), 0)
        self._topics = {topic.name: topic for topic in topics}
        self._newest_ns = 0
        self._writer = Writer(folder, version=9, storage_plugin=StoragePlugin.MCAP)
        self._writer.set_custom_data(AUTHOR, COMMAND)
        self._writer.open()
        self._connections = {
            topic.name: self._writer.add_connection(
                f"/{topic.name.lstrip('/')}",
                _type_name(topic.kind),
                typestore=typestore(),
                offered_qos_profiles=[_bag_qos(topic.qos)],
            )
            for topic in topics
        }

    def __enter__(self) -> BagWriter:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def write(self, topic: str, data: bytes) -> None:
        """Append one serialised message. Raises `KeyError` for a topic that was not announced."""
        if self._topics[topic].on_time_axis:
            self._newest_ns = max(self._newest_ns + 1, header_stamp_ns(data))
        elif self._newest_ns:
            self._newest_ns += 1
        else:
            return
        self._writer.write(self._connections[topic], self._newest_ns, data)
        self.counts[topic] += 1

    def close(self) -> None:
        self._writer.close()


def subscribe_raw(node: Node, topics: Sequence[BagTopic], sink: Callable[[str, bytes], None]) -> list[Any]:
    """Subscribe to `topics` without decoding; `sink` gets topic name and serialised message."""

    def handler(name: str) -> Callable[[bytes], None]:
        return lambda data: sink(name, data)

    return [node.create_subscription(t.kind, t.name, handler(t.name), t.qos, raw=True) for t in topics]


def header_stamp_ns(data: bytes) -> int:
    """Header stamp of a serialised message whose first field is a std_msgs/Header.

    Raises `ValueError` for an encoding other than little-endian CDR.
    """
    if data[:2] != CDR_LITTLE_ENDIAN or len(data) < 12:
        raise ValueError(f"serialised message begins with {data[:4].hex()}: expected little-endian CDR (00010000)")
    return int.from_bytes(data[4:8], "little", signed=True) * 1_000_000_000 + int.from_bytes(data[8:12], "little")


def _type_name(kind: type) -> str:
    package, folder, *_ = kind.__module__.split(".")
    return f"{package}/{folder}/{kind.__name__}"


def _bag_qos(profile: QoSProfile) -> Qos:
    reliable = profile.reliability == ReliabilityPolicy.RELIABLE
    kept = profile.durability == DurabilityPolicy.TRANSIENT_LOCAL
    return Qos(
        history=QosHistory.KEEP_LAST,
        depth=profile.depth,
        reliability=QosReliability.RELIABLE if reliable else QosReliability.BEST_EFFORT,
        durability=QosDurability.TRANSIENT_LOCAL if kept else QosDurability.VOLATILE,
        deadline=_INFINITE,
        lifespan=_INFINITE,
        liveliness=QosLiveliness.AUTOMATIC,
        liveliness_lease_duration=_INFINITE,
        avoid_ros_namespace_conventions=False,
    )
