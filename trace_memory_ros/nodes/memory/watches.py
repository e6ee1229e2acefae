"""All that memory_node's diagnostics tell: its streams, its conditions and its memory."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from trace_memory_ros.nodes.memory.continuity import Continuity
from trace_memory_ros.nodes.memory.findings import Finding, Level
from trace_memory_ros.nodes.memory.range_watch import RangeWatch
from trace_memory_ros.nodes.memory.remembering import MEMORY, Remembering
from trace_memory_ros.nodes.memory.stream_watch import StreamWatch
from trace_memory_ros.nodes.memory.tick_watch import TickWatch
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC


class Watches:
    """A watch for each stream, for the conditions and for where the robot is; times are ns on the monotonic wall clock.

    timeout_s: how long a stream, or the first condition, may take to come. topics: of streams, as this robot has them.
    """

    def __init__(self, config: ObservationConfig, timeout_s: float, topics: Mapping[str, str] | None = None) -> None:
        timeout_ns = round(1e9 * timeout_s)
        self.ticks = TickWatch(config, timeout_ns)
        self.range = RangeWatch()
        shown = topics or {}
        self._topics = {repr(one.topic): repr(shown.get(one.name, one.topic)) for one in config.inputs}
        self.streams: Mapping[str, StreamWatch] = {
            stream.name: StreamWatch(stream, config.period_ns, timeout_ns, shown.get(stream.name, ""))
            for stream in config.inputs
        }

    def by_own_topics(self, text: str) -> str:
        """A fault by this robot's topics; a condition says it by the checkpoint's, so that a replay says the same."""
        for name, shown in self._topics.items():
            text = text.replace(name, shown)
        return text

    def begin(self, now_ns: int) -> None:
        """Look anew."""
        self.ticks.begin(now_ns)
        self.range.begin()
        for stream in self.streams.values():
            stream.begin(now_ns)

    def held(self, observation: Observation) -> None:
        """What a tick held of every stream."""
        for name, stream in self.streams.items():
            held_ns = observation.input_stamps_ns.get(name)
            age_ms = float("nan") if held_ns is None else (observation.stamp_ns - held_ns) / 1e6
            stream.held(age_ms, self.by_own_topics(observation.faults.get(name, "")))

    def repeats(self, faults: Mapping[str, str]) -> None:
        """Cameras that send one picture again and again."""
        for name, stream in self.streams.items():
            stream.repeats(self.by_own_topics(faults.get(name, "")))

    def findings(
        self, now_ns: int, wall_ns: int, remembering: Remembering, publishers: Callable[[str], Sequence[str]]
    ) -> list[Finding]:
        """The conditions, the memory, the state's range, then the streams in configured order.

        publishers: a topic's, by node.
        """
        aligner = remembering.observer.aligner
        counters = aligner.counters
        ticks = self.ticks.finding(now_ns, remembering.stopped, aligner.waiting_for, publishers(CONDITION_TOPIC))
        return [
            replace(ticks, message=self.by_own_topics(ticks.message)),
            memory_finding(remembering, wall_ns),
            self.range.finding(),
            *(
                stream.finding(now_ns, counters[name], len(publishers(stream.config.topic)))
                for name, stream in self.streams.items()
            ),
        ]


def memory_finding(remembering: Remembering, wall_ns: int) -> Finding:
    """How this episode's memory began, and whether it is kept."""
    continuity: Continuity = remembering.continuity
    runtime, age_s = remembering.runtime, continuity.age_s(wall_ns)
    message = "; ".join(text for text in (continuity.fault, continuity.story) if text)
    values = {
        "mechanism": runtime.config.mechanism,
        "model_id": runtime.model_id,
        "instance": str(remembering.instance),
        "restored": str(continuity.restored).lower(),
        "gap (ticks)": str(continuity.gap_ticks),
        "snapshot age (s)": "-" if age_s is None else f"{age_s:.1f}",
    }
    return Finding(MEMORY, Level.WARN if continuity.fault or continuity.lost else Level.OK, message, values)
