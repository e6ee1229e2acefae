"""What a live run left in a bag: its conditions, and the observations that it made them of."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import groupby

from trace_memory_ros.bags.decode import Feeder
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.observation.alignment import AlignedTick, Sample, Verdict, hold_fault
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.content import Content, VideoPacket
from trace_memory_ros.observation.samples import InputError, SampleReader
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.replay.recorded_conditions import RecordedConditions
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC

LOST_AFTER_NS = 1_000_000_000
"""A held sample is lost once its stream has gone on by this much, on header stamps, without it."""


def live_conditions(reader: BagReader, recording: RecordingConfig) -> list[Condition]:
    """The conditions of a live run in order of recording; empty where the bag has none. Raises BagFault."""
    topic = recording.topic(CONDITION_TOPIC)
    if topic not in reader.topics:
        return []
    try:
        conditions = RecordedConditions(reader.topics[topic].definition)
        return [conditions.read(raw) for raw in reader.messages([topic])]
    except ValueError as error:
        remedy = "restore the bag from a copy, or replay it without the recorded conditions"
        raise BagFault(reader.path, str(error), f"topic {topic}", remedy) from error


class HeldSamples:
    """Implements `bags.decode.BagSink`: keeps of every stream the samples that an episode's ticks held, until used.

    Of two samples with one stamp it keeps the first, as live alignment does.
    """

    def __init__(self, config: ObservationConfig, conditions: Sequence[Condition]) -> None:
        self.config = config
        self._reader = SampleReader(config, defer=True)
        self._uses: dict[tuple[str, int], int] = {}
        for condition in conditions:
            for held in condition.input_stamps_ns.items():
                self._uses[held] = self._uses.get(held, 0) + 1
        self._kept: dict[tuple[str, int], Sample] = {}
        self._newest_ns: dict[str, int] = {}

    def waiting(self, condition: Condition) -> bool:
        """Whether a sample that `condition` held may still come."""
        return any(
            held not in self._kept and self._newest_ns.get(held[0], 0) <= held[1] + LOST_AFTER_NS
            for held in condition.input_stamps_ns.items()
        )

    def observation(self, condition: Condition) -> Observation:
        """The observation that `condition` was made of; a sample that the bag lacks is a fault."""
        samples: dict[str, Sample] = {}
        faults: dict[str, str] = {}
        for stream in self.config.inputs:
            stamp_ns = condition.input_stamps_ns.get(stream.name)
            sample = None if stamp_ns is None else self._take((stream.name, stamp_ns))
            if sample is not None:
                samples[stream.name] = sample
            if stamp_ns is not None and sample is None:
                fault = lost(stream.name, stamp_ns)
            else:
                fault = hold_fault(stream, sample, condition.stamp_ns)
            if fault:
                faults[stream.name] = fault
        return self._reader.observation(AlignedTick(condition.tick, condition.stamp_ns, samples, faults))

    def push(self, stream: str, stamp_ns: int, arrival_ns: int, content: Content) -> Verdict:
        if isinstance(content, VideoPacket):
            # Pictures are made of the packets before them too.
            return self._push(stream, stamp_ns, arrival_ns, self._read_now(stream, content))
        return self._push(stream, stamp_ns, arrival_ns, lambda: self._reader.read(stream, content))

    def _read_now(self, stream: str, content: Content) -> Callable[[], object]:
        try:
            value = self._reader.read(stream, content)
        except InputError as error:
            return partial(_refuse, str(error))
        return lambda: value

    def push_fault(self, stream: str, stamp_ns: int, arrival_ns: int, *, fault: str) -> Verdict:
        return self._push(stream, stamp_ns, arrival_ns, partial(_refuse, fault))

    def count_unstamped(self, stream: str) -> None:
        """No tick held a sample without a stamp."""

    def _push(self, stream: str, stamp_ns: int, arrival_ns: int, read: Callable[[], object]) -> Verdict:
        held = (stream, stamp_ns)
        self._newest_ns[stream] = max(self._newest_ns.get(stream, stamp_ns), stamp_ns)
        if held not in self._uses or held in self._kept:
            return Verdict.DUPLICATE
        try:
            self._kept[held] = Sample(stamp_ns, read(), arrival_ns)
        except InputError as error:
            self._kept[held] = Sample(stamp_ns, None, arrival_ns, str(error))
        return Verdict.ACCEPTED

    def _take(self, held: tuple[str, int]) -> Sample | None:
        self._uses[held] -= 1
        if self._uses[held]:
            return self._kept.get(held)
        # The stamp stays known as one that no tick needs any more, so that a late repeat is not kept for ever.
        del self._uses[held]
        return self._kept.pop(held, None)


def _refuse(fault: str) -> None:
    raise InputError(fault)


def lost(stream: str, stamp_ns: int) -> str:
    """The fault of a tick whose held sample is not in the bag."""
    return (
        f"{stream}: the sample stamped {stamp_ns} ns, which the live tick held, is not in the bag: the recorder missed "
        "it; record on the same machine, with reliable QoS and a larger cache"
    )


def stretch_of(condition: Condition) -> tuple[int, int]:
    """The instance and episode of a condition: a memory that was restored begins its ticks anew."""
    return condition.instance, condition.episode


@dataclass
class _Followed:
    """An episode that is followed. left: conditions whose ticks are to come. unpublished: how many the bag yet has."""

    samples: HeldSamples
    feeder: Feeder
    left: deque[Condition]
    unpublished: int


class RecordedTicks:
    """Iterate once over a live run's conditions, each with the observation that it was made of.

    missed: samples that live ticks held and the bag lacks.
    """

    def __init__(self, reader: BagReader, recording: RecordingConfig, conditions: Sequence[Condition]) -> None:
        self._reader = reader
        self._recording = recording
        self._episodes = [list(group) for _, group in groupby(conditions, stretch_of)]
        self.missed = 0
        self._feeders: list[Feeder] = []

    @property
    def refusals(self) -> list[str]:
        """Why messages came to no tick, in words."""
        return list(dict.fromkeys(text for feeder in self._feeders for text in feeder.refusals))

    def __iter__(self) -> Iterator[tuple[Condition, Observation]]:
        waiting = deque(self._episodes)
        if not waiting:
            return
        begun, conditions = deque([self._begin(waiting.popleft())]), self._recording.topic(CONDITION_TOPIC)
        for raw in self._reader.messages([*begun[0].feeder.topics, conditions]):
            newest = begun[-1]
            newest.unpublished -= raw.topic == conditions
            for one in begun:
                one.feeder.feed(raw)
            yield from self._ready(begun)
            # A tick that waits for what the recorder missed must not cost the next episode its first samples.
            if waiting and not (newest.left and newest.unpublished > 0):
                begun.append(self._begin(waiting.popleft()))
        for one in (*begun, *map(self._begin, waiting)):
            while one.left:
                yield self._tick(one.samples, one.left.popleft())

    def _ready(self, begun: deque[_Followed]) -> Iterator[tuple[Condition, Observation]]:
        """The next ticks that wait for no sample; of what was begun, what is done is taken away."""
        while True:
            first = begun[0]
            while first.left and not first.samples.waiting(first.left[0]):
                yield self._tick(first.samples, first.left.popleft())
            if first.left or len(begun) == 1:
                return
            begun.popleft()

    def _begin(self, conditions: list[Condition]) -> _Followed:
        """An episode of its own: a simulator that starts again may repeat its stamps."""
        samples = HeldSamples(self._recording.observation, conditions)
        definitions = {name: info.definition for name, info in self._reader.topics.items()}
        self._feeders.append(Feeder(samples, self._recording, definitions))
        return _Followed(samples, self._feeders[-1], deque(conditions), len(conditions))

    def _tick(self, samples: HeldSamples, condition: Condition) -> tuple[Condition, Observation]:
        observation = samples.observation(condition)
        self.missed += len(condition.input_stamps_ns) - len(observation.input_stamps_ns)
        return condition, observation
