"""A robot made of messages: publishes streams tick by tick and collects what the nodes answer."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.observation.config import default_arm

CONFIG = default_arm()
JOINTS = [one.output for one in CONFIG.streams[0].selected]
CAMERAS = CONFIG.camera_names
PERIOD_NS = CONFIG.period_ns
PATIENCE_S = 60.0
PX = 64


def picture(seed: int, px: int = PX) -> np.ndarray:
    """A noisy rgb8 picture `(px, px, 3)`."""
    return np.random.default_rng(seed).integers(0, 256, (px, px, 3), dtype=np.uint8)


def posture(seed: int) -> dict[str, float]:
    """Joint angles by name, rad."""
    angles = np.random.default_rng([7, seed]).uniform(-1.0, 1.0, len(JOINTS))
    return dict(zip(JOINTS, angles.tolist(), strict=True))


class Robot:
    """Publishes into a namespace; stamps increase for as long as it lives, in periods from `now_ns`.

    remembers: it publishes conditions too, in memory_node's place.
    """

    def __init__(self, domain_id: int, namespace: str, remembers: bool = True) -> None:
        self.client = EpisodeClient(domain_id, namespace, name="robot")
        node, profile = self.client.node, qos.sensor("reliable")
        self._images = {c: node.create_publisher(Image, f"camera/{c}/image_raw", profile) for c in CAMERAS}
        self._joints = node.create_publisher(JointState, "joint_states", profile)
        if remembers:
            self.condition_publisher = node.create_publisher(MemoryCondition, "memory/condition", qos.CONDITION)
        self.conditions: dict[int, MemoryCondition] = {}
        self.records: dict[int, MemoryDiagnostics] = {}
        self.commands: list[JointTrajectory] = []
        self.health: dict[str, Any] = {}
        self.now_ns = 1_000_000_000_000
        node.create_subscription(MemoryCondition, "memory/condition", self._on_condition, qos.CONDITION)
        node.create_subscription(MemoryDiagnostics, "memory/diagnostics", self._on_record, qos.CONDITION)
        node.create_subscription(JointTrajectory, "command", self.commands.append, qos.COMMAND)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_health, qos.DIAGNOSTICS)

    def wait_matched(self, nodes: int = 1) -> None:
        """Wait until every stream has `nodes` subscribers: what is published before that may be lost."""
        publishers = (*self._images.values(), self._joints)
        self.wait(
            lambda: all(p.get_subscription_count() >= nodes for p in publishers), f"{nodes} subscribers of all streams"
        )

    def wait_acting(self) -> None:
        """Send ticks until a command comes: only then are memory and policy known to hear each other."""
        deadline = time.monotonic() + PATIENCE_S
        while not self.commands:
            assert time.monotonic() < deadline, f"no command within {PATIENCE_S} s"
            self.send_tick(0)
            self.client.spin_until(lambda: bool(self.commands), 2.0)

    def wait(self, condition: Any, what: str, timeout_s: float = PATIENCE_S) -> None:
        """Handle messages until `condition()`; fail naming `what` otherwise."""
        assert self.client.spin_until(condition, timeout_s), f"waited {timeout_s} s for {what}"

    def send_image(self, camera: str, stamp_ns: int, pixels: np.ndarray, **changes: Any) -> None:
        message = conversion.image_message(pixels, stamp_ns, camera)
        for name, value in changes.items():
            setattr(message, name, value)
        self._images[camera].publish(message)

    def send_joints(self, stamp_ns: int, positions: dict[str, float]) -> None:
        self._joints.publish(conversion.joint_message(positions, stamp_ns))

    def next_stamp(self) -> int:
        self.now_ns += PERIOD_NS
        return self.now_ns

    def send_tick(self, seed: int, joints: dict[str, float] | None = None, skip: tuple[str, ...] = ()) -> int:
        """Publish one tick's streams, drawn from `seed`; returns its stamp."""
        stamp = self.next_stamp()
        self.send_joints(stamp, posture(seed) if joints is None else joints)
        for i, camera in enumerate(CAMERAS):
            if camera not in skip:
                self.send_image(camera, stamp, picture(10 * seed + i))
        return stamp

    def answer(self, stamp_ns: int) -> tuple[MemoryCondition, MemoryDiagnostics]:
        """What memory_node published about the tick at `stamp_ns`."""
        self.wait(lambda: stamp_ns in self.conditions and stamp_ns in self.records, f"the condition of {stamp_ns}")
        return self.conditions[stamp_ns], self.records[stamp_ns]

    def tick(self, seed: int, **how: Any) -> tuple[MemoryCondition, MemoryDiagnostics]:
        return self.answer(self.send_tick(seed, **how))

    def reset(self, node: str) -> None:
        """Begin an episode, a second of stamps after the last one."""
        self.client.trigger(f"{node}/reset")
        self.now_ns += 10 * PERIOD_NS

    def _on_condition(self, message: MemoryCondition) -> None:
        self.conditions[conversion.stamp_ns(message.header.stamp)] = message

    def _on_record(self, message: MemoryDiagnostics) -> None:
        self.records[conversion.stamp_ns(message.header.stamp)] = message

    def _on_health(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.health[status.name] = status
