"""memory_node: streams in, one memory condition per control tick out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, NoReturn

from diagnostic_msgs.msg import DiagnosticArray
from sensor_msgs.msg import Image
from std_srvs.srv import Trigger

from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import conversion, parameters, qos
from trace_memory_ros.nodes.deadline import DrainedDeadline
from trace_memory_ros.nodes.health import Health, diagnostic_array
from trace_memory_ros.nodes.inputs import InputSubscriptions, refusal
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.memory.parameters import MemoryNodeParameters
from trace_memory_ros.nodes.memory.snapshot_file import read_snapshot, write_snapshot
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import StreamConfig
from trace_memory_ros.observation.frames import side_by_side
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.condition import ConditionStatus
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.message_fields import TickReport
from trace_memory_ros.runtime.shipped import find_checkpoint

SHORT_ID = 12
INSTANCE_BITS = 53
"""Every viewer of messages shows such a number exactly."""
LONG_AGO_NS = 0
"""A wall time at which no tick is late: only the deadline may give up an input."""


class MemoryNode(ManagedNode):
    """Observes, remembers, publishes; a tick fires as soon as its inputs are complete or their deadline has passed."""

    table = MemoryNodeParameters

    def __init__(self) -> None:
        self._inputs: InputSubscriptions | None = None
        self._timers_made: list[Any] = []
        self._publishers_made: list[Any] = []
        super().__init__("memory_node")
        for name, handler in (
            ("reset", self._on_reset),
            ("snapshot", self._on_snapshot),
            ("restore", self._on_restore),
        ):
            self.create_service(Trigger, f"~/{name}", handler)

    def configure(self) -> None:
        """Load the checkpoint, run a few ticks so that the first real one is as fast as all others, open the topics."""
        settings = parameters.read(self, MemoryNodeParameters)
        self._runtime = MemoryRuntime.from_checkpoint(find_checkpoint(settings.checkpoint))
        self._runtime.warm_up()
        config = self._runtime.config.observation
        config = replace(config, deadline_ms=settings.deadline_ms or config.deadline_ms)
        self._instance = secrets.randbits(INSTANCE_BITS)
        self._streams = [stream.name for stream in config.inputs]
        self._observer = Observer(config)
        self._health = Health()
        self._deadline = DrainedDeadline(self, self._on_deadline)
        self._restart()
        self._conditions = self.create_lifecycle_publisher(MemoryCondition, "memory/condition", qos.CONDITION)
        self._records = self.create_lifecycle_publisher(MemoryDiagnostics, "memory/diagnostics", qos.CONDITION)
        self._diagnostics = self.create_lifecycle_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        self._seen = None
        if settings.publish_seen:
            self._seen = self.create_lifecycle_publisher(Image, "memory/seen", qos.DIAGNOSTICS)
        made = (self._conditions, self._records, self._diagnostics, self._seen)
        self._publishers_made = [publisher for publisher in made if publisher is not None]
        self._inputs = InputSubscriptions(self, config, settings.reliability, self._observer, self._after_input)
        report = self.create_timer(1.0 / settings.diagnostics_rate_hz, self._publish_diagnostics)
        self._timers_made = [self._deadline.timer, report]
        self.get_logger().info(
            f"{self._runtime.config.mechanism} memory of model {self._runtime.model_id[:SHORT_ID]}, "
            f"streams {', '.join(_called(stream) for stream in config.inputs)}"
        )

    def activate(self) -> None:
        """Begin an episode."""
        self._runtime.reset()
        self._restart()

    def deactivate(self) -> None:
        """No more ticks."""
        self._deadline.set(None)

    def release(self) -> None:
        """Close the topics."""
        for timer in self._timers_made:
            self.destroy_timer(timer)
        self.drop_entities(self._publishers_made, self._inputs.subscriptions if self._inputs else [])
        self._timers_made, self._publishers_made, self._inputs = [], [], None

    def _restart(self, first_tick: int = 0) -> None:
        """Observe anew: the clock camera's next sample is the next tick, numbered `first_tick`."""
        self._observer.reset()
        self._first_tick = self._next_tick = first_tick
        self._health = Health()
        self._deadline.set(None)
        self._status = ConditionStatus.OK
        self._reason = ""

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        response.success = self.configured
        response.message = "memory_node is not configured"
        if self.configured:
            self._runtime.reset()
            self._restart()
            response.message = "a new episode begins with the next image"
            self.get_logger().info(response.message)
        return response

    def _on_snapshot(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return self._with_file(
            response, "snapshot written to", lambda path: write_snapshot(path, self._runtime, self._next_tick)
        )

    def _on_restore(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        return self._with_file(
            response, "memory restored from", lambda path: self._restart(read_snapshot(path, self._runtime))
        )

    def _with_file(self, response: Trigger.Response, what: str, action: Callable[[Path], None]) -> Trigger.Response:
        path = Path(self.get_parameter("snapshot_path").value).expanduser().absolute()
        try:
            if not self.configured:
                raise ValueError("memory_node is not configured")
            action(path)
            response.success, response.message = True, f"{what} {path}"
            self.get_logger().info(response.message)
        except (OSError, ValueError) as error:
            response.success, response.message = False, str(error)
            self.get_logger().error(response.message)
        return response

    def _after_input(self, stream: str, verdict: Verdict, stamp_ns: int) -> None:
        if not self.active:
            return
        text = refusal(stream, verdict)
        if text:
            self._fault(stream, text)
        self._deadline.note_input()
        self._advance(LONG_AGO_NS)

    def _on_deadline(self) -> None:
        if self.active:
            self._advance(time.monotonic_ns())

    def _advance(self, now_ns: int) -> None:
        """Run the ticks that are complete, or late at wall time `now_ns`, then set the next deadline."""
        begun = time.perf_counter()
        observations = self._observer.poll(now_ns)
        align_ms = 1e3 * (time.perf_counter() - begun)
        for observation in observations:
            self._tick(observation, align_ms)
        for text in (*self._observer.faults, *self._observer.aligner.stuck.values()):
            if text not in self._health.faults:
                self._fault(text.partition(":")[0], text)
        self._deadline.set(self._observer.aligner.wake_ns)

    def _tick(self, observation: Observation, align_ms: float) -> None:
        observation = replace(observation, tick=self._first_tick + observation.tick)
        condition, record = self._runtime.tick(observation)
        condition = replace(condition, instance=self._instance)
        self._next_tick = observation.tick + 1
        begun = time.perf_counter()
        self._conditions.publish(conversion.condition_message(condition, self._streams))
        published_ns = time.monotonic_ns()
        for stream, text in observation.faults.items():
            self._fault(stream, text)
        self._status, self._reason = condition.status, condition.reason
        stages = {"align": align_ms, **record.stage_ms, "publish": 1e3 * (time.perf_counter() - begun)}
        newest_ns = observation.newest_arrival_ns
        latency_ms = (published_ns - newest_ns) / 1e6 if newest_ns >= 0 else float("nan")
        report = TickReport(condition, record, observation, stages, latency_ms)
        counters = self._observer.counters
        self._records.publish(conversion.diagnostics_message(report, self._streams, counters, self._health.faults))
        self._publish_seen(observation)

    def _publish_seen(self, observation: Observation) -> None:
        """Show the pictures of a tick that the memory could use; after everything that is waited for."""
        if self._seen is None or not observation.usable:
            return
        config = self._runtime.config.observation
        cameras = {name: observation.images[name] for name in config.camera_names}
        picture = side_by_side(cameras, config.thumbnail_px)
        self._seen.publish(conversion.image_message(picture, observation.stamp_ns, "memory"))

    def _fault(self, source: str, text: str) -> None:
        if self._health.note(source, text):
            self.get_logger().warning(text)

    def _publish_diagnostics(self) -> None:
        if not self.active:
            return
        waiting = self._observer.aligner.waiting_for
        values = {
            "model_id": self._runtime.model_id,
            "mechanism": self._runtime.config.mechanism,
            "status": self._status.name,
        }
        values |= {f"{name} received": str(counter.received) for name, counter in self._observer.counters.items()}
        error = f"condition {self._status.name}: {self._reason}" if self._status != ConditionStatus.OK else ""
        array = diagnostic_array(self, self._health, values | ({"waiting for": waiting} if waiting else {}), error)
        self._diagnostics.publish(array)


def _called(stream: StreamConfig) -> str:
    """A stream's name, and that its messages have no stamp of their own."""
    return f"{stream.name} (stamped when received)" if stream.stamp == "received" else stream.name


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(MemoryNode, args)


if __name__ == "__main__":
    main()
