"""Recent samples of every stream by stamp, from which a policy rebuilds the observation a condition names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Mapping

from trace_memory_ros.observation.alignment import AlignedTick, Sample, Verdict, horizon_of
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.content import Content
from trace_memory_ros.observation.samples import Deferred, InputError, SampleReader
from trace_memory_ros.observation.types import Observation

KEPT = 256
"""Samples kept per stream at least, policy images of a few kB each."""
MOST_KEPT = 8_192
"""And at most: eight seconds of 1 kHz joints."""
KEPT_BYTES = 64 * 2**20
"""Compressed images kept per camera until a condition asks for one: two seconds of 1 MB at 30 Hz."""
EARLIER_PASS_NS = 1_000_000_000
"""Two samples of one stamp that came that far apart are of two runs of a simulator that began again at 0: the first,
and all ahead of it, no condition names any more. Two publishers of one picture are milliseconds apart."""


class SampleStore:
    """Implements `observation.content.Sink`; stamps and arrivals in ns.

    A stream's samples are kept for as long as memory_node's ticks may lie behind it, however fast it is.
    """

    def __init__(self, config: ObservationConfig) -> None:
        # Which size images may have is memory_node's to say: of its new episode this hears after the first of them.
        self.reader = SampleReader(config, one_size=False)
        self._kept_ns = horizon_of(config) * config.period_ns
        self._streams: dict[str, OrderedDict[int, Sample]] = {stream.name: OrderedDict() for stream in config.inputs}

    def missing(self, stamps_ns: Mapping[str, int]) -> list[str]:
        """Streams whose sample of the given stamp has not arrived."""
        return [name for name, stamp in stamps_ns.items() if stamp not in self._streams.get(name, {})]

    def observation(self, tick: int, stamp_ns: int, stamps_ns: Mapping[str, int]) -> Observation:
        """The observation made of exactly these samples, all of which must be there.

        A stream of the config that `stamps_ns` leaves out, or whose content cannot be used, is a fault.
        """
        samples = {name: self._streams[name][stamp] for name, stamp in stamps_ns.items() if name in self._streams}
        faults = {name: f"{name}: {sample.fault}" for name, sample in samples.items() if sample.fault}
        for name in self._streams:
            if name not in samples:
                faults[name] = f"{name}: the condition names no sample of it; use one checkpoint for memory and policy"
        return self.reader.observation(AlignedTick(tick, stamp_ns, samples, faults))

    def push(self, stream: str, stamp_ns: int, arrival_ns: int, content: Content) -> Verdict:
        kept = self._streams[stream]
        try:
            # Also where it is not kept: a video needs every packet.
            sample = Sample(stamp_ns, self.reader.read(stream, content), arrival_ns)
        except InputError as error:
            sample = Sample(stamp_ns, None, arrival_ns, str(error))
        if stamp_ns in kept:
            # memory_node holds the first of two samples with one stamp, so this must too.
            if arrival_ns - kept[stamp_ns].arrival_ns < EARLIER_PASS_NS:
                return Verdict.DUPLICATE
            for ahead_ns in [other for other in kept if other >= stamp_ns]:
                del kept[ahead_ns]
        kept[stamp_ns] = sample
        self._forget(kept, sample)
        return Verdict.ACCEPTED

    def _forget(self, kept: OrderedDict[int, Sample], newest: Sample) -> None:
        """Drop samples that no condition can name any more; after a restart of their clock, those ahead of it too."""
        newest_ns, value = newest.stamp_ns, newest.value
        if isinstance(value, Deferred) and value.nbytes:
            while len(kept) > max(1, KEPT_BYTES // value.nbytes):
                kept.popitem(last=False)
        while len(kept) > KEPT:
            oldest_ns = next(iter(kept))
            if len(kept) <= MOST_KEPT and 0 <= newest_ns - oldest_ns <= self._kept_ns:
                return
            del kept[oldest_ns]
