"""A made-up mobile manipulator in real time: camera, five joints and two wheels, a trajectory and a Twist."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import yaml
from diagnostic_msgs.msg import DiagnosticArray
from geometry_msgs.msg import Twist
from nav_msgs.msg import Odometry
from nodes.robot import picture
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Empty
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.node_client import NodeClient

SECOND_NS = 1_000_000_000
PERIOD_MS = 50
PATIENCE_S = 60.0
RECORDING = RecordingConfig.load(Path(__file__).parents[2] / "config" / "robots" / "mobile_manipulator.yaml")
assert RECORDING.actions is not None
ACTIONS = RECORDING.actions
CONFIG = replace(RECORDING.observation, tick_period_ms=PERIOD_MS)
JOINTS = ("torso_lift", "arm_1", "arm_2", "arm_3", "arm_4")


class LiveRobot:
    """Publishes what the clock makes due, and keeps what it is told, with the time of receipt in ns.

    place: of every joint. targets: of `arm_1`, as commanded. with_clock: publish /clock too, which is the wall clock.
    edit: what a driver does wrong with a message; None for nothing sent.
    """

    def __init__(self, domain_id: int, namespace: str) -> None:
        self.client = NodeClient(domain_id, namespace, name="live_robot")
        self.node = node = self.client.node
        self._policy = f"{namespace}/policy_node"
        self._image = node.create_publisher(Image, CONFIG.cameras[0].topic, qos.sensor("reliable"))
        self._joints = node.create_publisher(JointState, "joint_states", qos.state("reliable"))
        self._odometry = node.create_publisher(Odometry, "odom", qos.state("reliable"))
        self.button = node.create_publisher(Empty, "policy_node/stop", qos.STOP)
        self._clock = node.create_publisher(Clock, "/clock", 10)
        self._other = node.create_publisher(MemoryCondition, "memory/condition", qos.CONDITION)
        self.place = 0.0
        self.arm: list[tuple[int, JointTrajectory]] = []
        self.wheels: list[Twist] = []
        self.dry_arm: list[JointTrajectory] = []
        self.dry_wheels: list[Twist] = []
        self.conditions: list[MemoryCondition] = []
        self.health: dict[str, Any] = {}
        self._next_ns = 0
        self.with_clock = False
        self.edit: Callable[[Any], Any] = lambda message: message
        for kind, topic, take in (
            (JointTrajectory, "arm_controller/command", lambda m: self.arm.append((time.time_ns(), m))),
            (Twist, "cmd_vel", self.wheels.append),
            (JointTrajectory, "policy_node/dry_run/arm_controller/command", self.dry_arm.append),
            (Twist, "policy_node/dry_run/cmd_vel", self.dry_wheels.append),
        ):
            node.create_subscription(kind, topic, take, qos.COMMAND)
        node.create_subscription(MemoryCondition, "memory/condition", self.conditions.append, qos.CONDITION)
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_health, qos.DIAGNOSTICS)

    @property
    def targets(self) -> list[float]:
        return [float(message.points[0].positions[1]) for _, message in self.arm]

    def wait_matched(self, nodes: int) -> None:
        """Until every stream has that many subscribers."""
        publishers = (self._image, self._joints, self._odometry)
        self.play_until(lambda: all(p.get_subscription_count() >= nodes for p in publishers), "subscribers")

    def play(self, seconds: float) -> None:
        """Publish for a while."""
        end = time.monotonic() + seconds
        self.play_until(lambda: time.monotonic() > end, "the time to pass")

    def play_until(self, condition: Callable[[], bool], what: str) -> None:
        """Publish every stream once a period until `condition()`; fail naming `what` otherwise."""
        deadline = time.monotonic() + PATIENCE_S
        while not condition():
            assert time.monotonic() < deadline, f"waited {PATIENCE_S} s for {what}; {self._story()}"
            now_ns = time.time_ns()
            if now_ns >= self._next_ns:
                self._next_ns = now_ns + PERIOD_MS * 1_000_000
                self._publish(now_ns)
            self.client.spin_until(lambda: False, 0.005)

    def idle(self, seconds: float) -> None:
        """Publish nothing, and hear."""
        self.client.spin_until(lambda: False, seconds)

    def intrude(self) -> None:
        """Publish one condition as another memory on the same topic would."""
        other = copy.deepcopy(self.conditions[-1])
        other.instance += 1
        self._other.publish(other)

    def value(self, key: str) -> str:
        """What policy_node's newest diagnostics say; empty where they say nothing."""
        status = self.health.get(self._policy)
        return next((entry.value for entry in status.values if entry.key == key), "") if status else ""

    def says(self, *words: str) -> bool:
        """Whether policy_node's diagnostics have all words in one entry or in the message."""
        status = self.health.get(self._policy)
        texts = [] if status is None else [status.message, *(entry.value for entry in status.values)]
        return any(all(word in text for word in words) for text in texts)

    def level(self) -> int:
        """Of policy_node's diagnostics."""
        return int.from_bytes(self.health[self._policy].level, "little")

    def memory(self, level: int) -> list[Any]:
        """Statuses of memory_node and its parts that are of this level."""
        own = self._policy.replace("policy_node", "memory_node")
        return [s for name, s in self.health.items() if name.startswith(own) and s.level == bytes([level])]

    def clear(self) -> None:
        """Forget what was heard."""
        for heard in (self.arm, self.wheels, self.dry_arm, self.dry_wheels, self.conditions, self.health):
            heard.clear()

    def _story(self) -> str:
        said = [f"{name}: {s.message}" for name, s in self.health.items()]
        return f"{len(self.conditions)} conditions and {len(self.arm)} commands came; {'; '.join(said)}"

    def _publish(self, now_ns: int) -> None:
        if self.with_clock:
            self._clock.publish(Clock(clock=conversion.time_of(now_ns)))
        for publisher, message in (
            (self._joints, conversion.joint_message(dict.fromkeys(JOINTS, self.place), now_ns)),
            (self._odometry, conversion.odometry_message(np.array([0.1, 0.0, 0.0]), now_ns)),
            (self._image, conversion.image_message(picture(now_ns % 1000), now_ns, "head")),
        ):
            if (sent := self.edit(message)) is not None:
                publisher.publish(sent)

    def _on_health(self, message: DiagnosticArray) -> None:
        for status in message.status:
            self.health[status.name] = status


def write_limits(path: Path, limits: dict[str, dict[str, float]]) -> str:
    """A limits_file."""
    path.write_text(yaml.safe_dump({"limits": limits}), encoding="utf-8")
    return str(path)
