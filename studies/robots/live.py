"""A robot's episode in real time over DDS: its messages in, memory_node's conditions and policy_node's commands out."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from rclpy.qos import QoSProfile

from studies.grid import Figures
from studies.robots.robots import Robot
from trace_memory_ros.bags.messages import CONDITION
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.message_classes import message_class
from trace_memory_ros.nodes.node_client import EpisodeFailed, NodeClient
from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.processes import NodeGroup, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.replay.bag_replay import Replay
from trace_memory_ros.replay.output_bag import replay_to_bag
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

READY_S, PATIENCE_S, LEAD_S = 120.0, 20.0, 0.5
TRIALS, TRIAL_S = 10, 1.0
DEADLINE_MS = 2_000
"""A tick waits that long for its slowest stream: the machine is shared, and what is tested is what comes out. For the
same reason every tick is commanded, however late."""
CONDITIONS = "/memory/condition"


class Received(NamedTuple):
    """A message as it came off the wire. ns: the time that DDS gave it where it was sent."""

    ns: int
    topic: str
    data: bytes


class RobotOnDds:
    """Publishes a robot's streams and keeps all that is said, by one thread."""

    def __init__(self, client: NodeClient, robot: Robot, recording: RecordingConfig) -> None:
        assert recording.actions is not None
        self._client, self._robot = client, robot
        self._inputs = {recording.topic(s.topic): s.message_type for s in recording.observation.inputs}
        self.outputs = {recording.topic(part.topic): part.type for part in recording.actions.parts}
        self.types = {**self._inputs, **self.outputs, CONDITIONS: CONDITION}
        self.received: list[Received] = []
        node = client.node
        self._publishers: dict[str, Any] = {}
        for topic, type_name in self.types.items():
            kind, profile = message_class(type_name, topic), _profile(topic, topic in self._inputs)
            node.create_subscription(kind, topic, self._taker(topic), profile, raw=True)
            if topic in self._inputs:
                self._publishers[topic] = node.create_publisher(kind, topic, profile)

    def count(self, topic: str) -> int:
        """Messages that came on a topic."""
        return sum(one.topic == topic for one in self.received)

    def connect(self) -> None:
        """Play until commands come: only then do all hear one another. Raises EpisodeFailed where none does."""
        # Memory, policy and this recorder.
        if not self._client.spin_until(
            lambda: all(p.get_subscription_count() >= 3 for p in self._publishers.values()), PATIENCE_S
        ):
            raise EpisodeFailed(f"not every stream of {self._robot.name} has a subscriber: see the nodes' logs")
        for _ in range(TRIALS):
            self.play(0, TRIAL_S)
            if all(self.count(topic) for topic in self.outputs):
                break
        else:
            raise EpisodeFailed(f"no commands for {self._robot.name} after {TRIALS} trials: see the nodes' logs")
        for node in ("memory_node", "policy_node"):
            self._client.trigger(f"{node}/reset")
        self.received.clear()

    def play(self, scene: int, seconds: float) -> None:
        """Publish an episode when its messages are due, beginning now."""
        for entry in self._robot.episode(scene, seconds, time.time_ns() + round(1e9 * LEAD_S)):
            if entry.topic in self._publishers:
                while (left_s := 1e-9 * (entry.ns - time.time_ns())) > 0:
                    self._client.spin_until(lambda: False, min(left_s, 0.005))
                self._publishers[entry.topic].publish(entry.data)
        self._settle()

    def write(self, bag: Path) -> None:
        """All that came, in a bag whose log times are those that DDS gave."""
        with BagFileWriter(bag, self.types) as writer:
            for one in sorted(self.received):
                writer.write_raw(one.topic, one.data, one.ns)

    def _settle(self) -> None:
        """Until nothing has come for a while."""
        before = -1
        while len(self.received) != before:
            before = len(self.received)
            self._client.spin_until(lambda: False, 1.5)

    def _taker(self, topic: str) -> Callable[[bytes, Any], None]:
        def take(data: bytes, info: Any) -> None:
            self.received.append(Received(int(info["source_timestamp"]), topic, data))

        return take


def run_live(
    robot: Robot, recording: RecordingConfig, checkpoint: Path, scene: int, seconds: float, folder: Path
) -> Figures:
    """Memory and policy on a robot in real time, and how far a replay of what was recorded is from it."""
    with DomainClaim() as domain_id:
        environment = private_environment(domain_id)
        os.environ.update(environment)
        model: dict[str, Any] = {"checkpoint": str(checkpoint.resolve()), "reliability": "reliable", "autostart": True}
        specs = [
            NodeSpec("memory_node", {**model, "deadline_ms": DEADLINE_MS}),
            NodeSpec("policy_node", {**model, **LOCKSTEP, "input_wait_ms": DEADLINE_MS}),
        ]
        with NodeGroup(specs, folder / "logs", environment) as group, NodeClient(domain_id, name="robot") as client:
            group.wait_ready(READY_S)
            on_dds = RobotOnDds(client, robot, recording)
            on_dds.connect()
            on_dds.play(scene, seconds)
            group.check_alive()
    bag = folder / "live"
    on_dds.write(bag)
    ticks = int(seconds * 1e3) // robot.tick_ms
    runtime = MemoryRuntime.from_checkpoint(checkpoint)
    replay = Replay(bag, runtime, recording, as_recorded=True)
    parity = replay_to_bag(replay, None)
    return {
        "ticks": ticks,
        "conditions": on_dds.count(CONDITIONS),
        "ok": replay.report.statuses["OK"],
        "commands": {topic: on_dds.count(topic) for topic in on_dds.outputs},
        "replay": None if parity is None else parity.figures(),
    }


def _profile(topic: str, is_input: bool) -> QoSProfile:
    return qos.state("reliable") if is_input else qos.CONDITION if topic == CONDITIONS else qos.COMMAND
