"""Recorded messages into the sinks that live subscriptions fill."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Protocol

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.described import Described
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.topics import stamp_of, stream_topics
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig, StreamConfig
from trace_memory_ros.observation.content import Content, Live, Recorded, Sink
from trace_memory_ros.observation.refusals import refusal
from trace_memory_ros.streams.base import RecordedReader
from trace_memory_ros.streams.cdr import Cdr, CdrError


class BagSink(Sink, Protocol):
    """A sink that also takes messages whose contents cannot be read."""

    def push_fault(self, stream: str, stamp_ns: int, arrival_ns: int, *, fault: str) -> Verdict: ...

    def count_unstamped(self, stream: str) -> None: ...


@dataclass
class FeedCounters:
    """Of one stream. malformed: payloads that cannot be read; placed: those of them whose stamp could be.

    ahead: refused for a stamp far ahead. unstamped: header stamps of zero, refused as a live node does.
    """

    fed: int = 0
    malformed: int = 0
    placed: int = 0
    ahead: int = 0
    unstamped: int = 0


class Feeder:
    """Pushes what a recorded message holds into `sink`; arrival is the log time.

    Messages on topics that no stream has are passed over. A payload that cannot be read is counted as malformed; if its
    stamp could be read, its place in the stream is kept by a fault. definitions: of topics, for message types that are
    read as their definition says.
    """

    def __init__(
        self,
        sink: BagSink,
        config: ObservationConfig | RecordingConfig,
        definitions: Mapping[str, str] | None = None,
    ) -> None:
        recording = config if isinstance(config, RecordingConfig) else RecordingConfig(config)
        self._sink = sink
        self._recording = recording
        self._streams = stream_topics(recording)
        self.topics = tuple(self._streams)
        self.counters = {stream.name: FeedCounters() for stream in recording.observation.inputs}
        self.faults: dict[str, str] = {}
        texts = definitions or {}
        self._contents = {
            stream.name: _content_of(stream, texts.get(recording.topic(stream.topic), ""))
            for stream in recording.observation.inputs
        }

    @property
    def refusals(self) -> list[str]:
        """Why messages came to no sink, by stream: as a live node says it, and for payloads that cannot be read."""
        unstamped = [refusal(name, Verdict.UNSTAMPED) for name, one in self.counters.items() if one.unstamped]
        return [*unstamped, *(f"{name}: {text}" for name, text in self.faults.items())]

    def feed(self, raw: RawMessage) -> None:
        """Push one message to every stream of its topic."""
        for stream in self._streams.get(raw.topic, ()):
            self._feed(stream, raw)

    def _feed(self, stream: StreamConfig, raw: RawMessage) -> None:
        counters = self.counters[stream.name]
        stamp_ns = None
        try:
            if raw.type_name != stream.message_type:
                raise CdrError(f"message is {raw.type_name}, needed is {stream.message_type}")
            cdr = Cdr(raw.data)
            stamp_ns = stamp_of(self._recording, stream, cdr, raw.log_ns)
            if not stamp_ns:
                counters.unstamped += 1
                self._sink.count_unstamped(stream.name)
                return
            verdict = self._sink.push(stream.name, stamp_ns, raw.log_ns, self._contents[stream.name](cdr, raw))
            counters.ahead += verdict is Verdict.AHEAD
            counters.fed += 1
        except CdrError as error:
            counters.malformed += 1
            self.faults.setdefault(stream.name, str(error))
            if stamp_ns is not None:
                counters.placed += 1
                fault = "message is damaged: restore the bag from a copy, or record again"
                self._sink.push_fault(stream.name, stamp_ns, raw.log_ns, fault=fault)


def _content_of(stream: StreamConfig, definition: str) -> Callable[[Cdr, RawMessage], Content]:
    """What reads a payload of the stream, behind its header."""
    if isinstance(stream, CameraConfig):
        return _PICTURES[stream.transport]
    assert isinstance(stream, SensorConfig)
    if isinstance(stream.reader(), RecordedReader):
        return lambda cdr, raw: Recorded(cdr)
    described = Described(stream.message_type, definition)
    return lambda cdr, raw: Live(described.message(raw.data))


_PICTURES: dict[str, Callable[[Cdr, RawMessage], Content]] = {
    "raw": lambda cdr, raw: fields.image(cdr),
    "compressed": lambda cdr, raw: fields.compressed(cdr),
    "video": lambda cdr, raw: fields.video(cdr),
    "ffmpeg": lambda cdr, raw: fields.ffmpeg(cdr),
}
