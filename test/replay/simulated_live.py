"""A live run without ROS: its memory is polled on the messages' own arrival times, everything is written to a bag."""

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
from trace_memory_ros.nodes.memory.continuity import Continuity, Keeping
from trace_memory_ros.nodes.memory.remembering import Remembering
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC

PATIENT_MS = 1_000_000
WAITING = 30
"""Messages that wait in the queues of a node that sleeps; of all that came later they keep none."""

SECONDS = 9.5
"""Ends between two dropouts: where a stream is silent at the end, live ticks are still waiting for it."""
BURSTS = {"burst_every_s": 2.0, "damaged": 0.02}


class SimulatedLive:
    """Runs and records; `conditions` are those that a node would have published. deadline_ms: that of the node.

    asleep: times of arrival, ns, during which the node takes nothing. faults: what became of its episodes, in words.
    """

    def __init__(self, bag: Path, checkpoint: Path, deadline_ms: int = PATIENT_MS, streams: bool = True) -> None:
        self.runtime = MemoryRuntime.from_checkpoint(checkpoint)
        config = self.runtime.config.observation
        self.config = config
        self.conditions: list[Condition] = []
        self._streams = [stream.name for stream in config.inputs]
        self.faults: list[str] = []
        self.asleep = range(0)
        self._waiting: list[RawMessage] = []
        observer = Observer(replace(config, deadline_ms=deadline_ms))
        kept = Continuity(Keeping(), "/memory_node", self.runtime)
        self._remembering = Remembering(
            self.runtime, observer, kept, 0, "stop", lambda _, text: self.faults.append(text)
        )
        self._feeder = Feeder(observer, RecordingConfig(config))
        topics = {stream.topic: stream.message_type for stream in config.inputs} if streams else {}
        self.writer = BagFileWriter(bag, {**topics, CONDITION_TOPIC: messages.CONDITION, "episode": STATUS})
        self._offset_ns = 0

    def episode(
        self, seconds: float, seed: int = 0, mark: bool = False, after_s: float = 3.0, **disturbance: float
    ) -> DisturbedStreams:
        """One episode of disturbed streams, `after_s` after the last one; `mark` puts its status on a topic."""
        how = Disturbance(camera_hz=15.0, joint_hz=20.0, image_px=52, **disturbance)  # type: ignore[arg-type]
        streams = DisturbedStreams(self.config, seconds, how, seed)
        if self.conditions:
            self._remembering.begin()
            self._offset_ns += round(after_s * 1e9)
        number = len({condition.episode for condition in self.conditions})
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
                self._take(RawMessage(f"/{event.stream.topic}", type_name, event.at_ns, data))
        self._offset_ns += round(seconds * 1e9)
        return streams

    def _take(self, raw: RawMessage) -> None:
        if raw.log_ns in self.asleep:
            self._waiting = [*self._waiting, raw][:WAITING]
            return
        taken, self._waiting = [*self._waiting, raw], []
        for one in taken:
            self._feeder.feed(one._replace(log_ns=raw.log_ns))
            self._tick(raw.log_ns)

    def _tick(self, now_ns: int) -> None:
        for ticked in self._remembering.ticks(now_ns):
            self.conditions.append(ticked.condition)
            self.writer.write(CONDITION_TOPIC, messages.condition_to_message(ticked.condition, self._streams), now_ns)
