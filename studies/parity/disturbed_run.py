"""A live run to be replayed: memory_node as a process of its own, disturbed streams over DDS, everything recorded.

`python -m studies.parity.disturbed_run PLAN.json` writes a bag and, beside the plan, `result.json`.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from rclpy.qos import QoSProfile

from studies.parity.disturbed_streams import START_NS, Disturbance, DisturbedStreams, Event
from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.bag_writer import BagTopic, BagWriter, header_stamp_ns, subscribe_raw
from trace_memory_ros.nodes.message_classes import message_class
from trace_memory_ros.nodes.node_client import EpisodeFailed, NodeClient
from trace_memory_ros.nodes.processes import NodeGroup, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.observation.alignment import HoldAligner
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, StreamConfig
from trace_memory_ros.runtime.checkpoint import load

NODE = "memory_node"
ASIDE = "recorder_only"
"""Prefix of topics that the recorder alone subscribes to: what is lost on its way to the node goes there."""
IN_FLIGHT_TICKS = 2
PATIENCE_S = 60.0
READY_S = 180.0
_FAR_NS = 2**62


@dataclass(frozen=True)
class RunPlan:
    """What to run. deadline_ms: of memory_node; seconds: of stream time."""

    checkpoint: str
    bag: str
    seconds: float
    seed: int = 0
    deadline_ms: int = 60_000
    domain_id: int = 0
    disturbance: Disturbance = field(default_factory=Disturbance)

    @classmethod
    def load(cls, path: Path) -> RunPlan:
        """Read what `asdict` gives as JSON."""
        data = json.loads(path.read_text(encoding="utf-8"))
        return cls(**{**data, "disturbance": Disturbance(**data["disturbance"])})


class LiveRun:
    """Publishes, subscribes and records from one thread, never more than two ticks ahead of the node.

    A stream's queues hold more than two ticks of messages on every side, so nothing is lost on the way that was not
    meant to be.
    """

    def __init__(self, client: NodeClient, plan: RunPlan, config: ObservationConfig) -> None:
        self._client, self._plan, self._config = client, plan, config
        self._patient = plan.deadline_ms >= PATIENCE_S * 1000
        self.streams = DisturbedStreams(config, plan.seconds, plan.disturbance, plan.seed)
        node = client.node
        inputs = [BagTopic(stream.topic, kind_of(stream), profile_of(stream)) for stream in config.inputs]
        aside = [BagTopic(f"{ASIDE}/{topic.name}", topic.kind, topic.qos) for topic in inputs]
        self._outputs = [
            BagTopic("memory/condition", MemoryCondition, qos.CONDITION),
            BagTopic("memory/diagnostics", MemoryDiagnostics, qos.CONDITION),
        ]
        self._recorded = [*inputs, *self._outputs]
        self._publishers: dict[str, Any] = {
            t.name: node.create_publisher(t.kind, t.name, t.qos) for t in (*inputs, *aside)
        }
        self._received = dict.fromkeys((t.name for t in (*self._recorded, *aside)), 0)
        self._sent = dict.fromkeys(self._publishers, 0)
        self._skip: set[tuple[str, int]] = set()
        self._stamps: set[int] = set()
        self._bag: BagWriter | None = None
        subscribe_raw(node, [*self._recorded, *aside], self._on_message)

    def connect(self) -> None:
        """Let a whole tick go to the node and its condition come back, then begin an episode."""
        kinds = {stream.name: stream for stream in self._config.inputs}
        for k in range(200):
            stamp_ns = START_NS - 10**12 + k * self._config.period_ns
            for stream in kinds.values():
                self._publish(Event(0, stream, stamp_ns, 0))
            if self._client.spin_until(lambda: stamp_ns in self._stamps and self._all_recorded(), 0.5):  # noqa: B023
                break
        else:
            raise EpisodeFailed(f"no condition from {NODE} within 200 ticks: its log says why")
        self._client.trigger(f"{NODE}/reset")
        self._stamps.clear()

    def record(self) -> int:
        """Publish all events into a new bag; returns the number of conditions that came."""
        aligner = HoldAligner(self._config)
        tick, fired, reached = 0, 0, 0
        with BagWriter(Path(self._plan.bag), self._recorded) as self._bag:
            for event in self.streams.events:
                if event.at_ns - START_NS >= tick * self._config.period_ns:
                    tick += 1
                    fired += len(aligner.poll(0 if self._patient else _FAR_NS))
                    self._catch_up(fired - IN_FLIGHT_TICKS)
                self._publish(event)
                if event.to_node:
                    offer = aligner.reject if event.fault else aligner.push
                    offer(event.stream.name, event.stamp_ns, event.fault, 0)
            reached = fired + len(aligner.poll(0))
            self._catch_up(reached)
            # Diagnostics follow their condition, and a tick too many would show now.
            self._client.spin_until(lambda: self._received["memory/diagnostics"] > len(self._stamps), 0.5)
        self._bag = None
        return len(self._stamps)

    def _catch_up(self, conditions: int) -> None:
        if not self._client.spin_until(lambda: len(self._stamps) >= conditions and self._all_recorded(), PATIENCE_S):
            lags = {name: self._sent[name] - self._received[name] for name in self._sent}
            raise EpisodeFailed(
                f"waited {PATIENCE_S:g} s for condition {conditions}, {len(self._stamps)} came; messages sent and not "
                f"recorded: {lags}"
            )

    def _all_recorded(self) -> bool:
        return all(self._received[name] >= sent for name, sent in self._sent.items())

    def _publish(self, event: Event) -> None:
        topic = event.stream.topic if event.to_node else f"{ASIDE}/{event.stream.topic}"
        if not event.to_recorder:
            self._skip.add((topic, event.stamp_ns))
        self._publishers[topic].publish(self.streams.payload(event)[1])
        self._sent[topic] += 1

    def _on_message(self, topic: str, data: bytes) -> None:
        self._received[topic] += 1
        stamp_ns = header_stamp_ns(data)
        if topic == "memory/condition":
            self._stamps.add(stamp_ns)
        if self._bag is not None and (topic, stamp_ns) not in self._skip:
            self._bag.write(topic.removeprefix(f"{ASIDE}/"), data)


def kind_of(stream: StreamConfig) -> type:
    """The message class of a stream."""
    kind: type = message_class(stream.message_type, stream.name)
    return kind


def profile_of(stream: StreamConfig) -> QoSProfile:
    """Reliable, as memory_node subscribes."""
    return (qos.sensor if isinstance(stream, CameraConfig) else qos.state)("reliable")


def run_live(plan: RunPlan, log_dir: Path) -> dict[str, Any]:
    """Run a plan; figures of what was published and received. Raises EpisodeFailed or NodeFailed."""
    config = load(plan.checkpoint).config.observation
    environment = private_environment(plan.domain_id)
    os.environ.update(environment)
    model: dict[str, bool | int | float | str] = {"checkpoint": plan.checkpoint, "reliability": "reliable"}
    spec = NodeSpec(NODE, {**model, "autostart": True, "deadline_ms": plan.deadline_ms})
    begun = time.monotonic()
    with NodeGroup([spec], log_dir, environment) as group, NodeClient(plan.domain_id, name="disturbed_robot") as client:
        group.wait_ready(READY_S)
        run = LiveRun(client, plan, config)
        run.connect()
        ready = time.monotonic()
        conditions = run.record()
        group.check_alive()
        cpu_s = group[NODE].cpu_s()
    wall_s = time.monotonic() - ready
    return {
        "conditions": conditions,
        "stream_s": plan.seconds,
        "wall_s": wall_s,
        "startup_s": ready - begun,
        "node_cpu_s": cpu_s,
        "messages": run.streams.counts,
    }


def main(arguments: Sequence[str] | None = None, report: Callable[[str], None] = print) -> int:
    """Run the plan in the given JSON file; returns 1 with the reason when it could not be run."""
    (path,) = [Path(argument) for argument in (sys.argv[1:] if arguments is None else arguments)]
    plan = RunPlan.load(path)
    try:
        result = run_live(plan, path.parent / "logs")
    except RuntimeError as error:
        report(f"error: {error}")
        return 1
    (path.parent / "result.json").write_text(json.dumps({"plan": asdict(plan), **result}, indent=1), encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
