"""Ticks of 100 Hz with a camera of 30 Hz and joints of 1 kHz: every tick gets its condition and its command."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures import tiny_checkpoint
from nodes.conftest import READY_S
from nodes.robot import PATIENCE_S, picture, posture
from sensor_msgs.msg import Image, JointState
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.processes import NodeGroup, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.observation.config import default_arm

MS = 1_000_000
TICK_MS, FRAME_MS, STALE_MS = 10, 33, 100
START_MS = 1_000_000
ARM = default_arm()
CONFIG = replace(
    ARM, cameras=(replace(ARM.cameras[0], stale_after_ms=STALE_MS),), tick_period_ms=TICK_MS, deadline_ms=60_000
)


class FastRobot:
    """Publishes a camera and 1 kHz joints as fast as the nodes answer; times in ms of its own."""

    def __init__(self, domain_id: int) -> None:
        self.client = NodeClient(domain_id, "fast", name="fast_robot")
        node = self.client.node
        self._images = node.create_publisher(Image, CONFIG.cameras[0].topic, qos.sensor("reliable"))
        self._joints = node.create_publisher(JointState, "joint_states", qos.state("reliable"))
        self.conditions: list[MemoryCondition] = []
        self.commands: list[JointTrajectory] = []
        node.create_subscription(MemoryCondition, "memory/condition", self.conditions.append, qos.CONDITION)
        node.create_subscription(JointTrajectory, "command", self.commands.append, qos.COMMAND)
        self.now_ms = START_MS
        self.pixels, self.angles = picture(0), posture(0)

    def frame(self, after_ms: int = FRAME_MS) -> None:
        """The joints until the next image, and that image."""
        for ms in range(self.now_ms + 1, self.now_ms + after_ms + 1):
            self._joints.publish(conversion.joint_message(self.angles, ms * MS))
        self.now_ms += after_ms
        self._images.publish(conversion.image_message(self.pixels, self.now_ms * MS, "overhead"))

    def wait(self, conditions: int, commands: int) -> bool:
        enough = lambda: len(self.conditions) >= conditions and len(self.commands) >= commands  # noqa: E731
        return self.client.spin_until(enough, PATIENCE_S)


@pytest.fixture
def robot(tmp_path: Path, domain_id: int) -> Iterator[FastRobot]:
    tiny_checkpoint(tmp_path / "checkpoint", observation=CONFIG)
    model = {"checkpoint": str(tmp_path / "checkpoint"), "reliability": "reliable", "autostart": True}
    patient = {"input_wait_ms": 10_000, "hold_ms": 60_000, "condition_timeout_ms": 60_000}
    specs = [
        NodeSpec("memory_node", model, namespace="fast"),
        NodeSpec("policy_node", {**model, **LOCKSTEP, **patient}, namespace="fast"),
    ]
    with NodeGroup(specs, tmp_path / "logs", private_environment(domain_id)) as group:
        group.wait_ready(READY_S)
        fast = FastRobot(domain_id)
        for _ in range(200):
            fast.frame()
            if fast.client.spin_until(lambda: bool(fast.commands), 0.5):
                break
        fast.client.trigger("memory_node/reset")
        fast.client.spin_until(lambda: False, 0.5)
        fast.conditions.clear()
        fast.commands.clear()
        yield fast
        fast.client.close()


@pytest.mark.timeout(300)
def test_ticks_between_two_images_come_together_and_none_is_lost(robot: FastRobot) -> None:
    robot.frame(500)
    begin = robot.now_ms
    ticks = 1
    for k in range(60):
        robot.frame(900 if k == 30 else FRAME_MS)
        due = (robot.now_ms - begin) // TICK_MS + 1
        assert due - ticks in ((90, 91) if k == 30 else (3, 4))
        ticks = due
        assert robot.wait(ticks, ticks), (ticks, len(robot.conditions), len(robot.commands))
    assert [condition.tick for condition in robot.conditions] == list(range(ticks))
    stamps = [conversion.stamp_ns(condition.header.stamp) for condition in robot.conditions]
    assert stamps == [(begin + k * TICK_MS) * MS for k in range(ticks)]
    stale = [k for k, condition in enumerate(robot.conditions) if condition.status != MemoryCondition.OK]
    assert 75 < len(stale) < 85
    assert stale == list(range(stale[0], stale[-1] + 1))
    assert [conversion.stamp_ns(command.header.stamp) for command in robot.commands] == stamps
