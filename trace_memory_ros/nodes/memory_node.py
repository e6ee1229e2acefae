"""memory_node: streams in, one memory condition per control tick out."""

from __future__ import annotations

import secrets
import time
from collections.abc import Sequence
from concurrent.futures import CancelledError, Future
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from rclpy.callback_groups import MutuallyExclusiveCallbackGroup
from rclpy.task import Future as RosFuture
from sensor_msgs.msg import Image
from std_srvs.srv import Trigger

from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import conversion, parameters, qos
from trace_memory_ros.nodes.deadline import DrainedDeadline
from trace_memory_ros.nodes.health import Health, status_array
from trace_memory_ros.nodes.inputs import InputSubscriptions, resolved
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.memory.continuity import Continuity
from trace_memory_ros.nodes.memory.parameters import MemoryNodeParameters
from trace_memory_ros.nodes.memory.remembering import MEMORY, Remembering, Ticked
from trace_memory_ros.nodes.memory.repeats import Repeats
from trace_memory_ros.nodes.memory.watches import Watches
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import StreamConfig
from trace_memory_ros.observation.frames import side_by_side
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.observation.refusals import refusal
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, RECORD_TOPIC, SEEN_TOPIC, TickReport
from trace_memory_ros.runtime.shipped import find_checkpoint

SHORT_ID = 12
INSTANCE_BITS = 53
"""Every viewer of messages shows such a number exactly."""
LONG_AGO_NS = 0
"""A wall time at which no tick is late: only the deadline may give up an input."""
NOT_CONFIGURED = "memory_node is not configured"


class MemoryNode(ManagedNode):
    """Observes, remembers, publishes; a tick fires as soon as its inputs are complete or their deadline has passed."""

    table = MemoryNodeParameters

    def __init__(self) -> None:
        self._inputs: InputSubscriptions | None = None
        self._continuity: Continuity | None = None
        self._timers_made: list[Any] = []
        self._publishers_made: list[Any] = []
        super().__init__("memory_node")
        self.create_service(Trigger, "~/reset", self._on_reset)
        self.create_service(Trigger, "~/restore", self._on_restore)
        # Of a group of its own, so that ticks go on while it waits for the disk.
        self.create_service(Trigger, "~/snapshot", self._on_snapshot, callback_group=MutuallyExclusiveCallbackGroup())

    def configure(self) -> None:
        """Load the checkpoint, run a few ticks so that the first real one is as fast as all others, open the topics."""
        settings = parameters.read(self, MemoryNodeParameters)
        runtime = MemoryRuntime.from_checkpoint(find_checkpoint(settings.checkpoint))
        runtime.warm_up()
        self._continuity = Continuity(settings.keeping, self.get_fully_qualified_name(), runtime)
        config = runtime.config.observation
        config = replace(config, deadline_ms=settings.deadline_ms or config.deadline_ms)
        self._config = config
        self._streams = [stream.name for stream in config.inputs]
        topics = {stream.name: resolved(self, stream.topic) for stream in config.inputs}
        self._remembering = Remembering(
            runtime,
            Observer(config),
            self._continuity,
            1 + secrets.randbelow(2**INSTANCE_BITS - 1),
            settings.on_clock_jump,
            self._fault,
        )
        self._watches = Watches(config, settings.stream_timeout_s, topics)
        self._deadline = DrainedDeadline(self, self._on_deadline)
        self._look_anew()
        self._open(settings)
        self.get_logger().info(
            f"{runtime.config.mechanism} memory of model {runtime.model_id[:SHORT_ID]}, "
            f"streams {', '.join(_called(stream) for stream in config.inputs)}"
        )

    def _open(self, settings: MemoryNodeParameters) -> None:
        self._conditions = self.create_lifecycle_publisher(MemoryCondition, CONDITION_TOPIC, qos.CONDITION)
        self._records = self.create_lifecycle_publisher(MemoryDiagnostics, RECORD_TOPIC, qos.CONDITION)
        self._diagnostics = self.create_lifecycle_publisher(DiagnosticArray, "/diagnostics", qos.DIAGNOSTICS)
        self._seen = None
        if settings.publish_seen:
            self._seen = self.create_lifecycle_publisher(Image, SEEN_TOPIC, qos.DIAGNOSTICS)
        made = (self._conditions, self._records, self._diagnostics, self._seen)
        self._publishers_made = [publisher for publisher in made if publisher is not None]
        observer, told = self._remembering.observer, (self._after_input, self._waited, self._lost)
        spread = self._remembering.runtime.model.state
        std = np.where(spread.active, spread.std, np.inf)
        self._repeats = Repeats(self._config, std, settings.repeat_timeout_s, observer)
        self._inputs = InputSubscriptions(self, self._config, settings.reliability, self._repeats, *told)
        report = self.create_timer(1.0 / settings.diagnostics_rate_hz, self._publish_diagnostics)
        self._timers_made = [self._deadline.timer, report]

    def activate(self) -> None:
        """Begin an episode, or go on with the one that a fault ended."""
        self._remembering.recover()
        self._look_anew()
        continuity = self._remembering.continuity
        if continuity.lost:
            self._fault(MEMORY, f"memory: {continuity.story}")
        else:
            self.get_logger().info(f"memory {continuity.story}")

    def deactivate(self) -> None:
        """No more ticks; the episode has ended, unless a fault ends the node."""
        self._deadline.set(None)
        if not self.faulted:
            self._remembering.end()

    def release(self) -> None:
        """Close the topics."""
        for timer in self._timers_made:
            self.destroy_timer(timer)
        self.drop_entities(self._publishers_made, self._inputs.subscriptions if self._inputs else [])
        self._timers_made, self._publishers_made, self._inputs = [], [], None
        if self._continuity is not None:
            self._continuity.close()
            self._continuity = None

    def _look_anew(self) -> None:
        self._health = Health()
        self._told, self._told_count = self._remembering.observer.faults, 0
        self._deadline.set(None)
        self._watches.begin(time.monotonic_ns())

    def _on_reset(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not self.configured:
            return _answer(response, False, NOT_CONFIGURED)
        self._remembering.begin()
        self._look_anew()
        self.get_logger().info("a new episode begins with the next image")
        return _answer(response, True, "a new episode begins with the next image")

    async def _on_snapshot(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        """The disk is waited for beside the ticks."""
        if not self.configured:
            return _answer(response, False, NOT_CONFIGURED)
        remembering = self._remembering
        try:
            path = self._snapshot_path()
            await self._done(
                remembering.continuity.write(path, remembering.next_tick, remembering.last_stamp_ns, time.time_ns())
            )
        except CancelledError:
            return _answer(response, False, f"{path} was not written: memory_node was cleaned up meanwhile")
        except (OSError, ValueError) as error:
            self.get_logger().error(str(error))
            return _answer(response, False, str(error))
        return _answer(response, True, f"snapshot written to {path}")

    def _on_restore(self, request: Trigger.Request, response: Trigger.Response) -> Trigger.Response:
        if not self.configured:
            return _answer(response, False, NOT_CONFIGURED)
        if not self.active:
            return _answer(response, False, "memory_node is not active: activate it first, which begins an episode")
        try:
            path = self._snapshot_path()
            self._remembering.take_over(path)
        except (OSError, ValueError) as error:
            self.get_logger().error(str(error))
            return _answer(response, False, str(error))
        self._look_anew()
        return _answer(response, True, f"memory restored from {path}")

    async def _done(self, written: Future[None]) -> None:
        """Wait beside all other callbacks. Raises what `written` carries."""
        waiting: RosFuture[None] = RosFuture()

        def wake(_: Future[None]) -> None:
            waiting.set_result(None)
            if self.executor is not None:
                self.executor.wake()

        written.add_done_callback(wake)
        await waiting
        written.result()

    def _snapshot_path(self) -> Path:
        """Raises ValueError for what names no file."""
        given = self.get_parameter("snapshot_path").value
        try:
            path = Path(given).expanduser().absolute()
        except RuntimeError as error:
            raise ValueError(f"snapshot_path = {given!r}: {error} Give the whole path") from error
        if not given or not path.name:
            raise ValueError(f"snapshot_path = {given!r} names no file: give one, such as /tmp/memory.safetensors")
        return path

    def _waited(self, stream: str, wait_ms: float) -> None:
        self._watches.ticks.came(wait_ms)

    def _lost(self, stream: str, count: int) -> None:
        self._watches.streams[stream].lost(time.monotonic_ns(), count)

    def _after_input(self, stream: str, verdict: Verdict, stamp_ns: int) -> None:
        if not self.active:
            return
        text = refusal(stream, verdict)
        self._watches.streams[stream].came(time.monotonic_ns(), text)
        if text:
            self._fault(stream, text)
        if verdict is Verdict.UNSTAMPED:
            self._remembering.observer.count_unstamped(stream)
            return
        self._deadline.note_input()
        self._advance(LONG_AGO_NS)

    def _on_deadline(self) -> None:
        if self.active:
            self._advance(time.monotonic_ns())

    def _advance(self, now_ns: int) -> None:
        """Run the ticks that are complete, or late at wall time `now_ns`, then set the next deadline."""
        for ticked in self._remembering.ticks(now_ns):
            self._publish(ticked)
            self._remembering.keep()
        observer = self._remembering.observer
        if observer.faults is not self._told:
            self._told, self._told_count = observer.faults, 0
        new = [*islice(observer.faults, self._told_count, None)]
        self._told_count += len(new)
        known = self._health.faults
        for text in (*new, *observer.aligner.stuck.values()):
            if self._watches.by_own_topics(text) not in known:
                self._fault(text.partition(":")[0], text)
        self._deadline.set(None if self._remembering.stopped else observer.aligner.wake_ns)

    def _publish(self, ticked: Ticked) -> None:
        condition, observation = ticked.condition, ticked.observation
        begun = time.perf_counter()
        self._conditions.publish(conversion.condition_message(condition, self._streams))
        published_ns = time.monotonic_ns()
        stages = {"align": ticked.align_ms, **ticked.record.stage_ms, "publish": 1e3 * (time.perf_counter() - begun)}
        newest_ns = observation.newest_arrival_ns
        latency_ms = (published_ns - newest_ns) / 1e6 if newest_ns >= 0 else float("nan")
        self._watches.ticks.ticked(condition, published_ns, latency_ms, (time.time_ns() - observation.stamp_ns) / 1e6)
        self._watches.range.ticked(ticked.record)
        self._watches.held(observation)
        self._repeats.ticked(observation)
        for stream, text in observation.faults.items():
            self._fault(stream, text)
        report = TickReport(condition, ticked.record, observation, stages, latency_ms)
        counters = self._remembering.observer.counters
        self._records.publish(conversion.diagnostics_message(report, self._streams, counters, self._health.faults))
        self._publish_seen(observation)

    def _publish_seen(self, observation: Observation) -> None:
        """Show the pictures of a tick that the memory could use; after everything that is waited for."""
        if self._seen is None or not observation.usable:
            return
        cameras = {name: observation.images[name] for name in self._config.camera_names}
        picture = side_by_side(cameras, self._config.thumbnail_px)
        self._seen.publish(conversion.image_message(picture, observation.stamp_ns, "memory"))

    def _fault(self, source: str, text: str) -> None:
        text = self._watches.by_own_topics(text)
        if self._health.note(source, text):
            self.get_logger().warning(text)

    def _publish_diagnostics(self) -> None:
        if not self.active:
            return
        if fault := self._remembering.continuity.fault:
            self._fault(MEMORY, fault)
        repeated = self._repeats.faults()
        for camera, text in repeated.items():
            self._fault(camera, text)
        self._watches.repeats(repeated)
        findings = self._watches.findings(time.monotonic_ns(), time.time_ns(), self._remembering, self._publishers_of)
        self._diagnostics.publish(status_array(self, findings, self._health))

    def _publishers_of(self, topic: str) -> list[str]:
        found = self.get_publishers_info_by_topic(topic)  # which remaps it
        return [f"{info.node_namespace.rstrip('/')}/{info.node_name}" for info in found]


def _answer(response: Trigger.Response, success: bool, message: str) -> Trigger.Response:
    response.success, response.message = success, message
    return response


def _called(stream: StreamConfig) -> str:
    """A stream's name, and that its messages have no stamp of their own."""
    return f"{stream.name} (stamped when received)" if stream.stamp == "received" else stream.name


def main(args: Sequence[str] | None = None) -> NoReturn:
    """Entry point of the executable."""
    run(MemoryNode, args)


if __name__ == "__main__":
    main()
