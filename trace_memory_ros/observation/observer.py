"""Message contents in, observations out: the one path of the live node, bag replay and the simulator."""

from __future__ import annotations

from collections.abc import Mapping

from trace_memory_ros.observation.alignment import NEVER_NS, HoldAligner, StreamCounters, Verdict
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.content import Content
from trace_memory_ros.observation.samples import InputError, SampleReader
from trace_memory_ros.observation.types import Observation

MAX_FAULTS = 64


class Observer:
    """A `SampleReader` in front of a `HoldAligner`.

    A push takes the stamp and the arrival on the caller's monotonic wall clock, both ns. Content that
    cannot be used is not an exception: the sample keeps its place in the stream, and ticks that would hold it carry its
    fault. `faults`: the first 64 distinct ones since reset, in order. defer: as of `SampleReader`.
    """

    def __init__(
        self, config: ObservationConfig, horizon_ticks: int | None = None, fault_after: int = 10, defer: bool = False
    ) -> None:
        self.config = config
        self.aligner = HoldAligner(config, horizon_ticks, fault_after)
        self.reader = SampleReader(config, defer)
        self.faults: dict[str, None] = {}

    def reset(self, from_ns: int = NEVER_NS) -> None:
        """Begin an episode: the clock camera's next sample, stamped at or after `from_ns`, is tick 0."""
        self.aligner.reset(from_ns)
        self.reader.reset()
        self.faults = {}

    @property
    def counters(self) -> Mapping[str, StreamCounters]:
        """Per stream since reset, in configured order."""
        return self.aligner.counters

    def push(self, stream: str, stamp_ns: int, arrival_ns: int, content: Content) -> Verdict:
        """Take a message's content. Raises CdrError for a payload that cannot be read at all."""
        try:
            value = self.reader.read(stream, content)
        except InputError as error:
            return self.push_fault(stream, stamp_ns, arrival_ns, fault=str(error))
        return self.aligner.push(stream, stamp_ns, value, arrival_ns)

    def push_fault(self, stream: str, stamp_ns: int, arrival_ns: int, *, fault: str) -> Verdict:
        """A message whose content cannot be used; `fault` says why, and the remedy."""
        self._note(f"{stream}: {fault}")
        return self.aligner.reject(stream, stamp_ns, fault, arrival_ns)

    def count_unstamped(self, stream: str) -> None:
        """A message without a stamp, which has no place in the stream: counted as rejected."""
        counters = self.aligner.counters[stream]
        counters.received += 1
        counters.rejected += 1

    def poll(self, now_ns: int) -> list[Observation]:
        """The observations of all ticks that are due at `now_ns` on the wall clock, in order."""
        observations = [self.reader.observation(tick) for tick in self.aligner.poll(now_ns)]
        for observation in observations:
            self._note(*observation.faults.values())
        return observations

    def _note(self, *faults: str) -> None:
        for fault in faults:
            if len(self.faults) < MAX_FAULTS:
                self.faults[fault] = None
