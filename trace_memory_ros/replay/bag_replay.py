"""A bag through `MemoryRuntime.tick`: the conditions that a live node would publish, as fast as the machine goes."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from trace_memory_ros.bags.episodes import EpisodeSpan, spans
from trace_memory_ros.bags.fields import STATUS
from trace_memory_ros.bags.messages import CONDITION
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import EpisodeRule, RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.ticks import SpanTicks
from trace_memory_ros.bags.topics import faults_of, topic_faults
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.replay.live_run import RecordedTicks, live_conditions, stretch_of
from trace_memory_ros.replay.recorded_conditions import RecordedConditions
from trace_memory_ros.runtime.condition import Condition, ConditionStatus, TickRecord
from trace_memory_ros.runtime.memory_runtime import STAGES, MemoryRuntime
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC

STAGES_TIMED = ("read", "decode", *STAGES, "write", "rest")
"""Where a replay's time goes. read: file to messages. decode: messages to observations. write: the new bag."""
_SHOWN_FAULTS = 20


class ReplayError(ValueError):
    """A replay that cannot be what was asked for; says why and what to do."""


@dataclass(frozen=True)
class ReplayedTick:
    """One tick. log_ns: log time of the message that completed it. live: the recorded condition that was followed."""

    observation: Observation
    condition: Condition
    record: TickRecord
    log_ns: int
    counters: Mapping[str, StreamCounters]
    live: Condition | None = None


@dataclass
class ReplayReport:
    """What a replay did. stage_s: seconds per stage of `STAGES_TIMED`; stream_s: of the bag's header stamps replayed.

    wall_s, cpu_s: of the whole replay, opening and reading the bag included. statuses: ticks by status. missed: held
    samples that the bag lacks, when following a live run. unfinished: ticks at the bag's ragged end, left out. cut_off:
    ticks at which a number of the state was far beyond training, by its name.
    """

    ticks: int = 0
    episodes: int = 0
    messages: int = 0
    bytes: int = 0
    stream_s: float = 0.0
    wall_s: float = 0.0
    cpu_s: float = 0.0
    stage_s: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES_TIMED, 0.0))
    statuses: dict[str, int] = field(default_factory=lambda: {status.name: 0 for status in ConditionStatus})
    missed: int = 0
    unfinished: int = 0
    cut_off: Counter[str] = field(default_factory=Counter)
    faults: list[str] = field(default_factory=list)

    @property
    def times_real(self) -> float:
        """Seconds of stream per second of wall time."""
        return self.stream_s / self.wall_s if self.wall_s else 0.0

    @property
    def times_real_cpu(self) -> float:
        """Seconds of stream per second of processor time: what the wall time would give on an idle core."""
        return self.stream_s / self.cpu_s if self.cpu_s else 0.0

    def figures(self) -> dict[str, Any]:
        """For a summary."""
        return {
            "ticks": self.ticks,
            "episodes": self.episodes,
            "messages": self.messages,
            "megabytes": self.bytes / 1e6,
            "stream_s": self.stream_s,
            "wall_s": self.wall_s,
            "cpu_s": self.cpu_s,
            "times_real_time": self.times_real,
            "times_real_time_cpu": self.times_real_cpu,
            "ms_per_stream_s": {name: 1e3 * s / self.stream_s for name, s in self.stage_s.items() if self.stream_s},
            "statuses": self.statuses,
            "missed_samples": self.missed,
            "unfinished_ticks": self.unfinished,
            "cut_off_ticks": dict(self.cut_off),
            "faults": self.faults[:_SHOWN_FAULTS],
        }


class TimedReader(BagReader):
    """A reader that knows how long reading took, and the log time of the message it handed out last."""

    def __init__(self, path: str | Path, report: ReplayReport) -> None:
        begun = time.perf_counter()
        self.log_ns = 0
        self._report = report
        super().__init__(path, mapped=True)
        report.stage_s["read"] += time.perf_counter() - begun

    def __enter__(self) -> TimedReader:
        return self

    def messages(
        self, topics: Collection[str] | None = None, begin_ns: int | None = None, end_ns: int | None = None
    ) -> Iterator[RawMessage]:
        report, clock = self._report, time.perf_counter
        source = super().messages(topics, begin_ns, end_ns)
        while True:
            begun = clock()
            raw = next(source, None)
            report.stage_s["read"] += clock() - begun
            if raw is None:
                return
            report.messages += 1
            report.bytes += len(raw.data)
            self.log_ns = raw.log_ns
            yield raw


class Replay:
    """One pass of a bag through a runtime; iterate over it once, then read `report` and `live`.

    recording: what is what in the bag; None takes the checkpoint's topics and the whole bag as one episode.
    reset_per_episode: begin each of the recording's episodes with an empty memory, else the memory goes on.
    as_recorded: every tick takes the very samples that the bag's own conditions say the live tick held; without, ticks
    follow from header stamps alone. live: the conditions of the live run in the bag, if there was one. write_s:
    whoever writes the ticks adds the time that it took.
    """

    def __init__(
        self,
        bag: str | Path,
        runtime: MemoryRuntime,
        recording: RecordingConfig | None = None,
        *,
        reset_per_episode: bool = False,
        as_recorded: bool = False,
    ) -> None:
        self.bag = Path(bag)
        self.recording = recording_for(runtime, recording)
        self._ruled = recording is not None
        self.report = ReplayReport()
        self.live: list[Condition] = []
        self.reader: TimedReader
        self._runtime = runtime
        self._reset = reset_per_episode
        self._as_recorded = as_recorded

    def __iter__(self) -> Iterator[ReplayedTick]:
        wall, cpu = time.perf_counter(), time.process_time()
        report = self.report
        with TimedReader(self.bag, report) as reader:
            self.reader = reader
            self._check_topics()
            source = self._follow() if self._as_recorded else self._plain()
            for tick in source:
                report.ticks += 1
                report.statuses[tick.condition.status.name] += 1
                report.cut_off.update(tick.record.clipped_state)
                yield tick
            report.faults = [str(fault) for fault in faults_of(self.reader, self.recording)] + report.faults
        report.wall_s, report.cpu_s = time.perf_counter() - wall, time.process_time() - cpu
        known = sum(seconds for name, seconds in report.stage_s.items() if name != "rest")
        report.stage_s["rest"] = max(0.0, report.wall_s - known)

    def _check_topics(self) -> None:
        """Refuse a bag that cannot give a single good tick."""
        rule = self.recording.episodes if self._reset else EpisodeRule()
        needed = replace(self.recording, actions=None, branches=None, episodes=rule)
        faults = list(topic_faults(self.reader, needed))
        if faults:
            raise ReplayError("\n".join(str(fault) for fault in faults))

    def _plain(self) -> Iterator[ReplayedTick]:
        whole = [EpisodeSpan(str(self.bag), 0, self.reader.begin_ns, self.reader.end_ns)]
        topic = self.recording.topic(CONDITION_TOPIC)
        recorded = topic in self.reader.topics and self.reader.topics[topic].type_names == (CONDITION,)
        self._recorded = RecordedConditions(self.reader.topics[topic].definition if recorded else "")
        handlers = {topic: self._take_live} if recorded else {}
        for span in self._episodes() if self._reset else whole:
            ticks = SpanTicks(self.reader, self.recording, span, handlers)
            self._begin_episode()
            yield from self._run(((None, observation) for observation in ticks), ticks.observer.counters)
            self.report.unfinished += ticks.unfinished
            texts = [str(fault) for fault in ticks.faults]
            self.report.faults += [*texts, *ticks.observer.faults, *ticks.feeder.refusals]

    def _episodes(self) -> list[EpisodeSpan]:
        """By the recording's rule, or by the episode topic where no rule was given and the bag has that."""
        recording, topic = self.recording, self.recording.topic("episode")
        if not self._ruled and topic in self.reader.topics and self.reader.topics[topic].type_names == (STATUS,):
            recording = replace(recording, episodes=EpisodeRule("topic", topic))
        return spans(self.reader, recording)

    def _follow(self) -> Iterator[ReplayedTick]:
        self.live = live_conditions(self.reader, self.recording)
        if not self.live:
            raise ReplayError(
                f"{self.bag} has no conditions of a live run on {self.recording.topic(CONDITION_TOPIC)!r}: record that "
                "topic too, or replay without --as-recorded"
            )
        ticks = RecordedTicks(self.reader, self.recording, self.live)
        yield from self._run(ticks, {})
        self.report.missed = ticks.missed
        self.report.faults += ticks.refusals
        if self.live[0].tick:
            text = f"{self.bag}: the recording begins at tick {self.live[0].tick} of a live episode: what the memory "
            self.report.faults.append(text + "held by then is unknown; record from before the reset")

    def _run(self, source: Any, counters: Mapping[str, StreamCounters]) -> Iterator[ReplayedTick]:
        """Tick after tick, each stage on its own clock; another live episode or instance begins a new one."""
        stage_s, clock = self.report.stage_s, time.perf_counter
        source, stretch, first_ns, last_ns = iter(source), None, None, 0
        while True:
            begun, read_s = clock(), stage_s["read"]
            live, observation = next(source, (None, None))
            stage_s["decode"] += clock() - begun - (stage_s["read"] - read_s)
            if observation is None:
                break
            if live is not None and stretch_of(live) != stretch:
                self._begin_stretch(live)
                self._add_stretch(first_ns, last_ns)
                stretch, first_ns = stretch_of(live), None
            condition, record = self._runtime.tick(observation)
            for name, spent_ms in record.stage_ms.items():
                stage_s[name] += 1e-3 * spent_ms
            if live is not None:
                condition = _as_of(condition, live)
            first_ns, last_ns = observation.stamp_ns if first_ns is None else first_ns, observation.stamp_ns
            yield ReplayedTick(observation, condition, record, self.reader.log_ns, counters, live)
        self._add_stretch(first_ns, last_ns)

    def _begin_stretch(self, live: Condition) -> None:
        """A restored memory goes on with what it had; the replay's has also what lay in the gap."""
        if not (live.restored and self.report.episodes):
            self._begin_episode()
        elif live.gap_ticks:
            text = f"{self.bag}: at tick {live.tick} memory_node was restored from a snapshot and lacks the "
            self.report.faults.append(text + f"{live.gap_ticks} ticks before; the replay's memory does not")

    def _begin_episode(self) -> None:
        # A runtime may have been through another bag; a whole bag goes on with what it was given.
        if self.report.episodes or ((self._reset or self._as_recorded) and not self._runtime.fresh):
            self._runtime.reset()
        self.report.episodes += 1

    def _add_stretch(self, first_ns: int | None, last_ns: int) -> None:
        if first_ns is not None:
            self.report.stream_s += 1e-9 * (last_ns - first_ns + self.recording.observation.period_ns)

    def _take_live(self, raw: RawMessage) -> None:
        try:
            self.live.append(self._recorded.read(raw))
        except ValueError as error:
            self.report.faults.append(f"{self.bag}: {error}")


def _as_of(condition: Condition, live: Condition) -> Condition:
    """The replay's condition under the numbers of the live run that it follows."""
    return replace(
        condition, instance=live.instance, episode=live.episode, restored=live.restored, gap_ticks=live.gap_ticks
    )


def recording_for(runtime: MemoryRuntime, recording: RecordingConfig | None) -> RecordingConfig:
    """What is what in a bag that is to be replayed through `runtime`: topics by `recording`, all else as trained.

    Raises ReplayError where the recording's streams are not those that the checkpoint was trained on.
    """
    seen = runtime.config.observation
    if recording is None:
        return RecordingConfig(seen)
    ours = [stream.name for stream in seen.inputs]
    theirs = [stream.name for stream in recording.observation.inputs]
    unlike = _unlike(seen, recording.observation)
    if ours != theirs or unlike:
        raise ReplayError(
            f"the configured observation differs from the checkpoint's in {', '.join(unlike) or 'its streams'} "
            f"(streams {', '.join(theirs)}, trained on {', '.join(ours)}): only topics, transports and limits may "
            "differ"
        )
    # How much of an image the memory sees is its own affair.
    return replace(recording, observation=replace(recording.observation, thumbnail_px=seen.thumbnail_px))


def _unlike(seen: ObservationConfig, given: ObservationConfig) -> list[str]:
    """What makes other numbers or pictures of the same messages."""
    of_all = ("state", "path", "image_px", "tick_period_ms")
    found = [name for name in of_all if getattr(seen, name) != getattr(given, name)]
    cameras = {camera.name: camera for camera in given.cameras}
    for mine in (camera for camera in seen.cameras if camera.name in cameras):
        theirs = cameras[mine.name]
        same = {"range_m": mine.range_m == theirs.range_m, "crop": mine.crop == theirs.crop}
        same["image_px"] = seen.px_of(mine.name) == given.px_of(mine.name)
        found += [f"{name} of {mine.name}" for name, alike in same.items() if not alike]
    return found
