"""Watches a demo's episodes from outside: what the memory did, what the camera saw, and the bag."""

from __future__ import annotations

import time
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from rclpy.qos import QoSProfile
from rclpy.serialization import deserialize_message
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import MarkerArray

from trace_memory_ros.arm.demo.results import Frame, Timeline
from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.sim.names import CAMERA_NAMES
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.msg import EpisodeStatus, MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.bag_writer import BagTopic, BagWriter, header_stamp_ns, subscribe_raw
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.observation.images import decode
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, MARKERS_TOPIC, RECORD_TOPIC

ROOM = 2000
"""Messages of a topic that may wait while this process does not get its turn: lock-step never waits for whoever looks
on, and what is more is lost."""


def _roomy(profile: QoSProfile) -> QoSProfile:
    return QoSProfile(
        history=profile.history, depth=ROOM, reliability=profile.reliability, durability=profile.durability
    )


_SENSOR, _CONDITION = _roomy(qos.sensor("reliable")), _roomy(qos.CONDITION)
PICTURES = BagTopic("camera/overhead/image_raw", Image, _SENSOR)
STATUS = BagTopic("episode", EpisodeStatus, _roomy(qos.STATUS))
TOPICS = (
    *(BagTopic(f"camera/{name}/image_raw", Image, _SENSOR) for name in CAMERA_NAMES),
    BagTopic("joint_states", JointState, _SENSOR),
    BagTopic("odom", Odometry, _SENSOR),
    BagTopic("command", JointTrajectory, _roomy(qos.COMMAND)),
    BagTopic(CONDITION_TOPIC, MemoryCondition, _CONDITION),
    BagTopic(RECORD_TOPIC, MemoryDiagnostics, _CONDITION),
    BagTopic(MARKERS_TOPIC, MarkerArray, _roomy(qos.DIAGNOSTICS), on_time_axis=False),
    STATUS,
    BagTopic("/diagnostics", DiagnosticArray, _roomy(qos.DIAGNOSTICS), on_time_axis=False),
)
EACH_TICK = tuple(topic.name for topic in TOPICS if topic.on_time_axis and topic is not STATUS)
"""Topics with a message per control tick; in real time the simulator's have more."""
AFTER_CUE_S = 0.3
AT_BRANCH_S = 0.8
SECOND_NS = 1e9


class EpisodeObserver:
    """Collects one episode at a time, between `begin` and the reading of its results.

    status_at: monotonic time in seconds of the newest episode status.
    """

    def __init__(self, client: EpisodeClient) -> None:
        self._client = client
        self._bag: BagWriter | None = None
        self._keep_pictures = False
        self.status_at = time.monotonic()
        self._clear()
        node = client.node
        self._diagnostics = node.create_subscription(MemoryDiagnostics, RECORD_TOPIC, self._on_diagnostics, _CONDITION)
        self._status = node.create_subscription(EpisodeStatus, STATUS.name, self._on_status, STATUS.qos)
        self._pictures = subscribe_raw(node, [PICTURES], self._on_picture)
        self._bag_subscriptions: list[Any] = []
        self._arrived: set[str] = set()

    def _clear(self) -> None:
        self.records: list[MemoryDiagnostics] = []
        self.statuses: list[EpisodeStatus] = []
        self._raw_pictures: list[bytes] = []

    def begin(self, record: bool, bag: BagWriter | None) -> None:
        """Forget the last episode; keep pictures of the next one where `record`, and all its topics in `bag`.

        Waits until every topic is connected; raises `EpisodeFailed` naming those that are not.
        """
        self._clear()
        self._keep_pictures = record
        if bag is not None:
            self._bag_subscriptions = subscribe_raw(self._client.node, TOPICS, self._on_raw)
        self._wait_connected()
        if bag is not None:
            self._wait_samples()
        self._clear()
        self._bag = bag

    def release_bag(self, ticks: int, timeout_s: float = 5.0) -> None:
        """Wait until all messages of an episode of `ticks` are in the bag, and write nothing more into it."""
        bag = self._bag
        if bag is not None:
            self._client.spin_until(lambda: all(bag.counts[name] >= ticks for name in EACH_TICK), timeout_s)
        self._bag = None
        for subscription in self._bag_subscriptions:
            self._client.node.destroy_subscription(subscription)
        self._bag_subscriptions = []

    def _wait_connected(self, timeout_s: float = 20.0) -> None:
        subscriptions = [self._diagnostics, self._status, *self._pictures, *self._bag_subscriptions]

        def silent() -> list[str]:
            return [s.topic_name for s in subscriptions if s.get_publisher_count() == 0]

        if not self._client.spin_until(lambda: not silent(), timeout_s):
            raise EpisodeFailed(f"nobody publishes {', '.join(silent())} after {timeout_s:g} s: is its node active?")

    def _wait_samples(self, timeout_s: float = 30.0) -> None:
        """Let samples through until one came on every topic: a publisher may not know of a new subscription yet."""
        deadline = time.monotonic() + timeout_s
        missing = set(EACH_TICK)
        while missing:
            if time.monotonic() > deadline:
                raise EpisodeFailed(f"nothing came on {', '.join(sorted(missing))} within {timeout_s:g} s of looking")
            self._arrived.clear()
            self._client.look()
            self._client.spin_until(lambda: self._arrived.issuperset(EACH_TICK), 3.0)
            missing = set(EACH_TICK) - self._arrived

    def wait_records(self, count: int, timeout_s: float = 2.0) -> None:
        """Wait for the diagnostics of the last ticks, which may come after the episode's end is announced."""
        self._client.spin_until(lambda: len(self.records) >= count, timeout_s)

    def timeline(self) -> Timeline:
        """What the memory did in this episode."""
        records = _of_newest_episode(self.records)
        stamps = np.array([stamp_ns(record.header.stamp) for record in records], dtype=np.int64)
        statuses = _of_newest_episode(self.statuses)
        branch_s, decided_s = branch_moments(statuses)
        return Timeline(
            time_s=(stamps - (stamps[0] if len(stamps) else 0)) / SECOND_NS,
            route=_rows([record.route for record in records]),
            write_strength=_rows([record.write_strength for record in records]),
            read_weights=_rows([record.read_weights for record in records]),
            wrote=np.array([record.wrote for record in records], dtype=bool),
            cue_visible=_cue_visible(statuses, stamps),
            branch_s=branch_s,
            decided_s=decided_s,
        )

    def frames(self) -> tuple[Frame, ...]:
        """Overhead pictures of the episode's moments; empty unless they were kept."""
        statuses = _of_newest_episode(self.statuses)
        if not self._raw_pictures or not statuses:
            return ()
        first = statuses[0]
        start_ns = stamp_ns(first.header.stamp) - round(first.elapsed_s * SECOND_NS)
        stamps = np.array([header_stamp_ns(data) for data in self._raw_pictures], dtype=np.int64)
        time_s = (stamps - start_ns) / SECOND_NS
        frames = []
        for moment, at_s in moments(statuses).items():
            nearest = int(np.abs(time_s - at_s).argmin())
            frames.append(Frame(moment, float(time_s[nearest]), _picture(self._raw_pictures[nearest])))
        return tuple(frames)

    def _on_status(self, message: EpisodeStatus) -> None:
        self.status_at = time.monotonic()
        if message.phase != EpisodeStatus.IDLE:
            self.statuses.append(message)

    def _on_diagnostics(self, message: MemoryDiagnostics) -> None:
        self.records.append(message)

    def _on_picture(self, topic: str, data: bytes) -> None:
        if self._keep_pictures:
            self._raw_pictures.append(data)

    def _on_raw(self, topic: str, data: bytes) -> None:
        self._arrived.add(topic)
        if self._bag is not None:
            self._bag.write(topic, data)


Numbered = TypeVar("Numbered", MemoryDiagnostics, EpisodeStatus)


def _of_newest_episode(messages: Sequence[Numbered]) -> list[Numbered]:
    """Without those that were still on their way when the episode began, or that are kept for late joiners."""
    return [message for message in messages if message.episode == messages[-1].episode]


def _cue_visible(statuses: Sequence[EpisodeStatus], stamps: NDArray[np.int64]) -> NDArray[np.bool_]:
    """For every stamp what the newest status that is not later says; before the first, the first."""
    if not statuses:
        return np.zeros(len(stamps), dtype=bool)
    known = np.array([stamp_ns(status.header.stamp) for status in statuses], dtype=np.int64)
    visible = np.array([status.cue_visible for status in statuses], dtype=bool)
    return np.asarray(visible[np.maximum(np.searchsorted(known, stamps, side="right") - 1, 0)], dtype=bool)


def branch_moments(statuses: Sequence[EpisodeStatus]) -> tuple[float | None, float | None]:
    """When the arm came to the branch point, and when the part entered a target, in seconds; None where it did not.

    Progress rises for the last time before the decision at the branch point.
    """
    decided = next((i for i, status in enumerate(statuses) if status.branch >= 0), None)
    before = statuses[:decided]
    rises = [b for a, b in pairwise(before) if b.progress > a.progress]
    stages = task_of(statuses[0].task).stages
    at_branch = (stages.index("branch") + 0.5) / len(stages)
    reached = bool(rises) and (decided is not None or rises[-1].progress > at_branch)
    branch_s = float(rises[-1].elapsed_s) if reached else None
    return branch_s, None if decided is None else float(statuses[decided].elapsed_s)


def moments(statuses: Sequence[EpisodeStatus]) -> dict[str, float]:
    """The strip's moments in seconds since the episode began; what did not happen is absent."""
    branch_s, decided_s = branch_moments(statuses)
    end_s = float(statuses[-1].elapsed_s)
    out = {"cue": task_of(statuses[0].task).shown_s}
    gone = next((float(status.elapsed_s) for status in statuses if not status.cue_visible), None)
    if gone is not None:
        out["gone"] = gone + AFTER_CUE_S
        out["way"] = (gone + (branch_s if branch_s is not None else end_s)) / 2
    if branch_s is not None:
        out["branch"] = min(branch_s + AT_BRANCH_S, decided_s if decided_s is not None else end_s)
    out["end"] = end_s
    return out


def _rows(values: Sequence[Any]) -> NDArray[np.float32]:
    """`(T, N)`; a tick without the full number of slots, as before the first write, is a row of zeros."""
    width = max((len(value) for value in values), default=0)
    out = np.zeros((len(values), width), dtype=np.float32)
    for row, value in zip(out, values, strict=True):
        if len(value) == width:
            row[:] = value
    return out


def _picture(data: bytes) -> NDArray[np.uint8]:
    message = deserialize_message(data, Image)
    size = (message.height, message.width, message.step)
    return decode(message.data, message.encoding, *size, message.is_bigendian)
