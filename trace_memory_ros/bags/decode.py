"""Recorded messages into the `push_*` methods that live subscriptions use."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.cdr import Cdr, CdrError
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.topics import stream_topics, stream_type
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import ObservationConfig, StreamConfig
from trace_memory_ros.observation.sink import Sink


class BagSink(Sink, Protocol):
    """A sink that also takes messages whose contents cannot be read."""

    def push_fault(self, stream: str, stamp_ns: int, arrival_ns: int, *, fault: str) -> Verdict: ...


@dataclass
class FeedCounters:
    """Of one stream. malformed: payloads that cannot be read; placed: those of them whose stamp could be.

    ahead: refused for a stamp far ahead. unstamped: header stamps of zero.
    """

    fed: int = 0
    malformed: int = 0
    placed: int = 0
    ahead: int = 0
    unstamped: int = 0


class Feeder:
    """Pushes what a recorded message holds into `sink`; arrival is the log time.

    Messages on topics that no stream has are passed over. A payload that cannot be read is counted as malformed; if its
    stamp could be read, its place in the stream is kept by a fault.
    """

    def __init__(self, sink: BagSink, config: ObservationConfig | RecordingConfig) -> None:
        recording = config if isinstance(config, RecordingConfig) else RecordingConfig(config)
        self._sink = sink
        self._pushes: dict[str, Callable[[StreamConfig, int, int, Cdr], Verdict]] = {
            fields.IMAGE: self._push_image,
            fields.COMPRESSED: self._push_compressed,
            fields.JOINTS: self._push_joints,
            fields.ODOMETRY: self._push_odometry,
            fields.TWIST: self._push_twist,
        }
        self._streams = stream_topics(recording)
        self.topics = tuple(self._streams)
        self.counters = {stream.name: FeedCounters() for stream in recording.observation.streams}
        self.faults: dict[str, str] = {}
        self._names = {stream.name: fields.SameTexts() for stream in recording.observation.joint_streams}

    def feed(self, raw: RawMessage) -> None:
        """Push one message to every stream of its topic."""
        for stream in self._streams.get(raw.topic, ()):
            self._feed(stream, raw)

    def _feed(self, stream: StreamConfig, raw: RawMessage) -> None:
        counters = self.counters[stream.name]
        stamp_ns = None
        try:
            if raw.type_name != stream_type(stream):
                raise CdrError(f"message is {raw.type_name}, needed is {stream_type(stream)}")
            cdr = Cdr(raw.data)
            stamp_ns = cdr.header().stamp_ns
            counters.unstamped += stamp_ns == 0
            verdict = self._pushes[raw.type_name](stream, stamp_ns, raw.log_ns, cdr)
            counters.ahead += verdict is Verdict.AHEAD
            counters.fed += 1
        except CdrError as error:
            counters.malformed += 1
            self.faults.setdefault(stream.name, str(error))
            if stamp_ns is not None:
                counters.placed += 1
                fault = "message is damaged: restore the bag from a copy, or record again"
                self._sink.push_fault(stream.name, stamp_ns, raw.log_ns, fault=fault)

    def _push_image(self, stream: StreamConfig, stamp_ns: int, log_ns: int, cdr: Cdr) -> Verdict:
        image = fields.image(cdr)
        return self._sink.push_image(
            stream.name,
            stamp_ns,
            log_ns,
            data=image.data,
            encoding=image.encoding,
            height=image.height,
            width=image.width,
            step=image.step,
            is_bigendian=image.is_bigendian,
        )

    def _push_compressed(self, stream: StreamConfig, stamp_ns: int, log_ns: int, cdr: Cdr) -> Verdict:
        layout, data = fields.compressed(cdr)
        return self._sink.push_compressed(stream.name, stamp_ns, log_ns, data=data, format=layout)

    def _push_joints(self, stream: StreamConfig, stamp_ns: int, log_ns: int, cdr: Cdr) -> Verdict:
        names, positions = fields.joints(cdr, self._names[stream.name])
        return self._sink.push_joints(stream.name, stamp_ns, log_ns, names=names, positions=positions)

    def _push_odometry(self, stream: StreamConfig, stamp_ns: int, log_ns: int, cdr: Cdr) -> Verdict:
        return self._push_velocity(stream, stamp_ns, log_ns, fields.odometry(cdr))

    def _push_twist(self, stream: StreamConfig, stamp_ns: int, log_ns: int, cdr: Cdr) -> Verdict:
        return self._push_velocity(stream, stamp_ns, log_ns, fields.twist(cdr))

    def _push_velocity(
        self, stream: StreamConfig, stamp_ns: int, log_ns: int, velocity: tuple[float, float, float]
    ) -> Verdict:
        vx, vy, yaw_rate = velocity
        return self._sink.push_base(stream.name, stamp_ns, log_ns, vx=vx, vy=vy, yaw_rate=yaw_rate)
