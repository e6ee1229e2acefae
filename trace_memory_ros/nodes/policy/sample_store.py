"""Recent samples of every stream by stamp, from which a policy rebuilds the observation a condition names."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from trace_memory_ros.observation.alignment import AlignedTick, Sample, Verdict
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.samples import Deferred, InputError, SampleReader
from trace_memory_ros.observation.types import Observation

KEPT = 256
"""Samples kept per stream: over two seconds of 100 Hz joints, policy images of a few kB each."""
KEPT_BYTES = 64 * 2**20
"""Compressed images kept per camera until a condition asks for one: two seconds of 1 MB at 30 Hz."""


class SampleStore:
    """Implements `observation.sink.Sink`; stamps and arrivals in ns."""

    def __init__(self, config: ObservationConfig) -> None:
        self.reader = SampleReader(config)
        self._streams: dict[str, OrderedDict[int, Sample]] = {stream.name: OrderedDict() for stream in config.streams}

    def reset(self) -> None:
        """A new episode: cameras may come with another size. Samples stay, since they are found by stamp."""
        self.reader.reset()

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

    def push_image(self, camera: str, stamp_ns: int, arrival_ns: int, **content: Any) -> Verdict:
        return self._push(camera, stamp_ns, arrival_ns, lambda: self.reader.image(camera, **content))

    def push_compressed(self, camera: str, stamp_ns: int, arrival_ns: int, **content: Any) -> Verdict:
        return self._push(camera, stamp_ns, arrival_ns, lambda: self.reader.compressed(camera, **content))

    def push_joints(
        self, stream: str, stamp_ns: int, arrival_ns: int, *, names: Sequence[str], positions: Any
    ) -> Verdict:
        return self._push(stream, stamp_ns, arrival_ns, lambda: self.reader.joints(stream, names, positions))

    def push_base(self, stream: str, stamp_ns: int, arrival_ns: int, **content: float) -> Verdict:
        return self._push(stream, stamp_ns, arrival_ns, lambda: self.reader.base(**content))

    def _push(self, stream: str, stamp_ns: int, arrival_ns: int, read: Callable[[], object]) -> Verdict:
        kept = self._streams[stream]
        # memory_node holds the first of two samples with one stamp, so this must too.
        if stamp_ns in kept:
            return Verdict.DUPLICATE
        try:
            kept[stamp_ns] = Sample(stamp_ns, read(), arrival_ns)
        except InputError as error:
            kept[stamp_ns] = Sample(stamp_ns, None, arrival_ns, str(error))
        value = kept[stamp_ns].value
        waiting_bytes = value.nbytes if isinstance(value, Deferred) else 0
        while len(kept) > min(KEPT, max(1, KEPT_BYTES // max(1, waiting_bytes))):
            kept.popitem(last=False)
        return Verdict.ACCEPTED
