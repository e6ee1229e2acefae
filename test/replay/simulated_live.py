"""A live run without ROS: an eager observer polled on the messages' own arrival times, everything written to a bag."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from studies.parity.disturbed_streams import Disturbance, DisturbedStreams
from trace_memory_ros.bags import messages
from trace_memory_ros.bags.decode import Feeder
from trace_memory_ros.bags.fields import STATUS
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC

PATIENT_MS = 1_000_000


class SimulatedLive:
    """Runs and records; `conditions` are those that a node would have published. deadline_ms: that of the node."""

    def __init__(self, bag: Path, checkpoint: Path, deadline_ms: int = PATIENT_MS, streams: bool = True) -> None:
        self.runtime = MemoryRuntime.from_checkpoint(checkpoint)
        config = self.runtime.config.observation
        self.config = config
        self.conditions: list[Condition] = []
        self._streams = [stream.name for stream in config.inputs]
        self._observer = Observer(replace(config, deadline_ms=deadline_ms))
        self._feeder = Feeder(self._observer, RecordingConfig(config))
        topics = {stream.topic: stream.message_type for stream in config.inputs} if streams else {}
        self.writer = BagFileWriter(bag, {**topics, CONDITION_TOPIC: messages.CONDITION, "episode": STATUS})
        self._offset_ns = 0

    def episode(self, seconds: float, seed: int = 0, mark: bool = False, **disturbance: float) -> DisturbedStreams:
        """One episode of disturbed streams, a second after the last one; `mark` puts its status on a topic."""
        how = Disturbance(camera_hz=15.0, joint_hz=20.0, image_px=52, **disturbance)  # type: ignore[arg-type]
        streams = DisturbedStreams(self.config, seconds, how, seed)
        if self.conditions:
            self.runtime.reset()
            self._observer.reset()
        number = len({condition.episode for condition in self.conditions})
        for planned in streams.events:
            later = self._offset_ns
            event = replace(planned, at_ns=planned.at_ns + later, stamp_ns=planned.stamp_ns + later)
            type_name, data = streams.payload(event)
            if event.to_recorder:
                self.writer.write_raw(event.stream.topic, data, event.at_ns)
            if mark:
                status = messages.episode_status(event.stamp_ns, task="origin", episode=number, phase=1)
                self.writer.write("episode", status, event.at_ns)
            if event.to_node:
                self._feeder.feed(RawMessage(f"/{event.stream.topic}", type_name, event.at_ns, data))
                self._tick(event.at_ns)
        self._offset_ns += round((seconds + 3.0) * 1e9)
        return streams

    def _tick(self, now_ns: int) -> None:
        for observation in self._observer.poll(now_ns):
            condition, _ = self.runtime.tick(observation)
            self.conditions.append(condition)
            self.writer.write(CONDITION_TOPIC, messages.condition_to_message(condition, self._streams), now_ns)
