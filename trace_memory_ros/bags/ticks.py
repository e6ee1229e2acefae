"""An episode's control ticks out of a bag, through the observer that live nodes use, by stamps and log times alone."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace

from trace_memory_ros.bags.decode import Feeder
from trace_memory_ros.bags.episodes import MARGIN_NS, EpisodeSpan
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.topics import recorded_stamp_ns, stream_topics
from trace_memory_ros.observation.alignment import horizon_of
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.streams.cdr import CdrError

PATIENCE = 0.8
"""Log time that a tick waits for a silent stream, as a share of the aligner's horizon: four seconds. It is less than
the horizon, so nothing is refused meanwhile."""
RAGGED_MS = 250
"""Streams begin and end this far apart without being silent: images take longer on their way than joint states."""
_FAR_NS = 2**62

MessageHandler = Callable[[RawMessage], None]


def patience_ms(config: ObservationConfig) -> int:
    """Log time that a tick of a bag waits for a silent stream."""
    return round(PATIENCE * horizon_of(config) * config.tick_period_ms)


class SpanTicks:
    """Iterate once over the observations of `span`; afterwards `observer`, `feeder` and `faults` hold what was lost.

    A tick fires when every stream has reached it, and incomplete, with its fault, only where a stream stays silent for
    four seconds of log time or to the end. At the end a slow stream is not waited for: its newest sample is held as
    long as it is not stale. Ticks at the ragged end of the recording, which no stream's fault explains, are left out
    and counted in `unfinished`. first_held: stream -> the first tick that it had a sample for. handlers:
    topic -> what else is called with its messages, in log order.
    """

    def __init__(
        self,
        reader: BagReader,
        recording: RecordingConfig,
        span: EpisodeSpan,
        handlers: Mapping[str, MessageHandler] | None = None,
    ) -> None:
        config = recording.observation
        self.observer = Observer(replace(config, deadline_ms=patience_ms(config)), defer=True)
        definitions = {name: info.definition for name, info in reader.topics.items()}
        self.feeder = Feeder(self.observer, recording, definitions)
        self._streams = stream_topics(recording)
        self.span = span
        self.unfinished = 0
        self.first_held: dict[str, int] = {}
        self.strayed: Counter[str] = Counter()
        self.faults: list[BagFault] = []
        self._reader = reader
        self._recording = recording
        self._handlers = handlers or {}

    def __iter__(self) -> Iterator[Observation]:
        for observation in self._observations():
            for stream in observation.input_stamps_ns:
                self.first_held.setdefault(stream, observation.tick)
            yield observation

    def _observations(self) -> Iterator[Observation]:
        topics = {*self.feeder.topics, *self._handlers}
        span, whole = self.span, self.span.begin_ns <= self._reader.begin_ns and self.span.end_ns >= self._reader.end_ns
        limits = (None, None) if whole else (span.begin_ns, span.end_ns)
        streams = frozenset(self.feeder.topics)
        for raw in self._reader.messages(topics, *limits):
            if raw.topic in self._handlers:
                self._handlers[raw.topic](raw)
            if raw.topic in streams and self._inside(raw):
                self.feeder.feed(raw)
                yield from self.observer.poll(raw.log_ns)
        yield from self._flush()
        self._note_stuck()
        self._note_strayed()

    def _inside(self, raw: RawMessage) -> bool:
        if not self.span.bounded:
            return True
        try:
            stamp_ns = recorded_stamp_ns(self._recording, self._streams[raw.topic][0], raw)
        except CdrError:
            return True
        span = self.span
        if span.begin_stamp_ns <= stamp_ns < span.end_stamp_ns:
            return True
        # A neighbour in time is stamped within twice the margin that the span's log times have.
        if not span.begin_stamp_ns - 2 * MARGIN_NS <= stamp_ns < span.end_stamp_ns + 2 * MARGIN_NS:
            self.strayed[raw.topic] += 1
        return False

    def _flush(self) -> list[Observation]:
        """What was still waiting: all where a stream fell silent, else what the streams that end together reached."""
        left = self.observer.poll(_FAR_NS)
        if not left or any(self._silent(observation) for observation in left):
            return left
        last_ns = left[-1].stamp_ns
        newest_ns = left[-1].input_stamps_ns.values()
        end_ns = min((ns for ns in newest_ns if last_ns - ns <= RAGGED_MS * 1e6), default=-_FAR_NS)
        reached = [observation for observation in left if observation.stamp_ns <= end_ns]
        self.unfinished = len(left) - len(reached)
        return reached

    def _silent(self, observation: Observation) -> bool:
        """Whether a tick has a fault, other than that a stream with a short limit ended a little before the others."""
        for stream in self.observer.config.inputs:
            if stream.name in observation.faults:
                held_ns = observation.input_stamps_ns.get(stream.name, -_FAR_NS)
                age_ms = (observation.stamp_ns - held_ns) / 1e6
                if not stream.stale_after_ms < age_ms <= RAGGED_MS:
                    return True
        return False

    def _note_stuck(self) -> None:
        for stream, text in self.observer.aligner.stuck.items():
            counters = self.observer.counters[stream]
            self.faults.append(
                BagFault(
                    self.span.bag,
                    f"{text.partition(': ')[2].partition(': reset')[0]}; {counters.out_of_order} of "
                    f"{counters.received} messages were out of order or repeated, {counters.rejected} refused",
                    f"stream {stream}, episode {self.span.index}",
                    "cut the bag into episodes there (episodes.kind: gap), or record with one clock",
                )
            )

    def _note_strayed(self) -> None:
        for topic, count in self.strayed.items():
            what = f"{count} messages recorded during the episode are stamped far outside it: they are left out"
            where, remedy = f"topic {topic}, episode {self.span.index}", "stamp all topics by one clock"
            self.faults.append(BagFault(self.span.bag, what, where, remedy))


def observations(reader: BagReader, recording: RecordingConfig, span: EpisodeSpan) -> Iterator[Observation]:
    """The observations of an episode's ticks, in order. Raises BagFault for a bag that cannot be read."""
    return iter(SpanTicks(reader, recording, span))
