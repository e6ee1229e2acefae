"""Streams on their own clocks to control ticks on one grid of header stamps, each stream holding its newest sample.

Tick k lies at t_k = t_0 + k * period; t_0 is the stamp of the first sample of the clock stream, the first camera. It
fires once every stream has a sample stamped >= t_k, so that nothing it could hold can still come, or once the deadline
has passed since the first stream got there. A tick is never skipped and never fires out of order.

Ticks may be faster than a camera: those between two of its images fire together when the next one comes, each with the
image before it.

What is bounded: a stream keeps one sample per pending tick, and before t_0 is known those of the horizon, at least 256
and at most 8192 of them. Samples stamped more than `horizon_ticks` after the next tick are refused, so a wrong stamp or
a long silence gives at most that many ticks at once. After `fault_after` refusals of a stream in a row, whether it
jumped back (a restarted simulator) or ahead, `stuck` says so; `rupture` tells once all streams have. Only the caller
knows whether the episode goes on, by `restart`, or another begins, by `reset`.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from trace_memory_ros.observation.config import ObservationConfig, StreamConfig
from trace_memory_ros.observation.periods import ticks_in

HORIZON_MS = 5_000
LEAST_HORIZON_TICKS = 5
UNANCHORED_SAMPLES = 256
MOST_UNANCHORED = 8_192
NEVER_NS = -(2**63)


def horizon_of(config: ObservationConfig) -> int:
    """Ticks that a sample may lie ahead unless the caller says otherwise: five seconds, at least 5."""
    return ticks_in(HORIZON_MS, config.tick_period_ms, LEAST_HORIZON_TICKS)


class Verdict(Enum):
    """What became of a pushed sample; the first two are held, the others refused.

    LATE: in order, but after a tick it belonged to had fired. AHEAD: stamped beyond the horizon. UNSTAMPED: stamped 0,
    which those judge who hand samples over.
    """

    ACCEPTED = "accepted"
    LATE = "late"
    DUPLICATE = "duplicate"
    OUT_OF_ORDER = "out of order"
    AHEAD = "ahead"
    UNSTAMPED = "unstamped"


@dataclass(frozen=True, slots=True)
class Sample:
    """One message of a stream; `fault` says why its content cannot be used, empty when it can."""

    stamp_ns: int
    value: object
    arrival_ns: int
    fault: str = ""


@dataclass(frozen=True)
class AlignedTick:
    """A tick's held samples by stream, and per unusable stream what is wrong."""

    tick: int
    stamp_ns: int
    samples: Mapping[str, Sample]
    faults: dict[str, str]


@dataclass(frozen=True)
class Rupture:
    """All streams go on elsewhere on the time axis.

    jump_ns: by how much more their stamps moved than the wall clock. silence: nothing was heard for a while, and the
    stamps moved on meanwhile, by no more than the horizon beyond the wall clock: as much as they may without a silence.
    """

    jump_ns: int
    silence: bool


@dataclass
class StreamCounters:
    """Messages and ticks since reset.

    rejected: unusable content or AHEAD. out_of_order: duplicates too. stale: ticks at which no fresh sample was held.
    """

    received: int = 0
    rejected: int = 0
    out_of_order: int = 0
    late: int = 0
    stale: int = 0


@dataclass
class _Lane:
    """One stream's samples: the held one and, oldest first, one per pending tick with that tick's number."""

    config: StreamConfig
    newest_ns: int = NEVER_NS
    held: Sample | None = None
    pending: deque[tuple[int, Sample]] = field(default_factory=deque)
    newest_arrival_ns: int = 0
    newest_came_ns: int = 0
    refused: Sample | None = None
    refused_in_row: int = 0
    refused_since_ns: int = 0
    counters: StreamCounters = field(default_factory=StreamCounters)

    def advance(self, sample: Sample) -> None:
        """`sample` is the newest.

        What waited while this process slept arrives after it, although it came before. So a sample came at most twice
        as long after the one before as it was stamped after it, and as long where a queue is worked off.
        """
        came_ns, moved_ns = sample.arrival_ns, sample.stamp_ns - self.newest_ns
        if self.newest_ns != NEVER_NS:
            on_pace = 2 * (sample.arrival_ns - self.newest_arrival_ns) >= moved_ns
            came_ns = min(came_ns, self.newest_came_ns + (2 if on_pace else 1) * moved_ns)
        self.newest_ns, self.newest_arrival_ns, self.newest_came_ns = sample.stamp_ns, sample.arrival_ns, came_ns

    def queue(self, tick: int, sample: Sample) -> None:
        """Keep `sample` as the one that `tick` holds."""
        if self.pending and self.pending[-1][0] == tick:
            self.pending[-1] = (tick, sample)
        else:
            self.pending.append((tick, sample))

    def hold(self, tick: int) -> None:
        """Move on to the newest sample that `tick` may see."""
        while self.pending and self.pending[0][0] <= tick:
            self.held = self.pending.popleft()[1]


class HoldAligner:
    """Stamped samples in, aligned ticks out; times in ns, `arrival_ns` and `now_ns` on one monotonic wall clock.

    horizon_ticks: None for `horizon_of` the config.
    """

    def __init__(self, config: ObservationConfig, horizon_ticks: int | None = None, fault_after: int = 10) -> None:
        horizon_ticks = horizon_of(config) if horizon_ticks is None else horizon_ticks
        if horizon_ticks < 1 or fault_after < 1:
            raise ValueError(f"horizon_ticks = {horizon_ticks}, fault_after = {fault_after}: both must be at least 1")
        self.config = config
        self.horizon_ticks = horizon_ticks
        self.fault_after = fault_after
        self._period_ns = config.period_ns
        self._horizon_ns = horizon_ticks * config.period_ns
        self._deadline_ns = config.deadline_ms * 1_000_000
        self._clock = config.cameras[0].name
        self.reset()

    def reset(self, from_ns: int = NEVER_NS) -> None:
        """Forget everything; the clock stream's next sample is tick 0. Samples stamped before `from_ns` are refused."""
        self._lanes = {s.name: _Lane(s) for s in self.config.inputs}
        self._from_ns = from_ns
        self._start_ns: int | None = None
        self._next = 0
        self._reached_ns: deque[int] = deque()  # arrival of the first sample at or past each tick from `_next` on

    def restart(self) -> None:
        """As `reset`, but the counters go on."""
        counters = self.counters
        self.reset()
        for name, lane in self._lanes.items():
            lane.counters = counters[name]

    @property
    def counters(self) -> Mapping[str, StreamCounters]:
        """Per stream, in configured order."""
        return {name: lane.counters for name, lane in self._lanes.items()}

    @property
    def wake_ns(self) -> int | None:
        """When the next tick fires without further samples, on the wall clock; None while no stream got there."""
        return self._reached_ns[0] + self._deadline_ns if self._reached_ns else None

    @property
    def stuck(self) -> dict[str, str]:
        """Per stream that keeps being refused: what happened and the remedy."""
        return {
            name: f"{name}: the last {self.fault_after} or more samples on {lane.config.topic!r} were stamped before "
            f"an earlier one or over {self.horizon_ticks} ticks ahead, as after a restart or a long silence or on "
            "another clock: reset the episode"
            for name, lane in self._lanes.items()
            if lane.refused_in_row >= self.fault_after
        }

    @property
    def rupture(self) -> Rupture | None:
        """How the time axis broke, once the clock stream keeps being refused and no other goes on as before."""
        clock = self._lanes[self._clock]
        refused = clock.refused
        if clock.refused_in_row < self.fault_after or refused is None or refused.stamp_ns == clock.newest_ns:
            return None
        for lane in self._lanes.values():
            if not lane.refused_in_row and lane.newest_arrival_ns >= clock.refused_since_ns:
                return None
        moved_ns = refused.stamp_ns - clock.newest_ns
        jump_ns = moved_ns - (refused.arrival_ns - clock.newest_came_ns)
        # That the wall clock moved further means little: the refused sample may have waited too.
        return Rupture(jump_ns, moved_ns > 0 and jump_ns <= self._horizon_ns)

    @property
    def waiting_for(self) -> str:
        """Why there are no ticks yet; empty once the clock stream has been seen."""
        if self._start_ns is not None:
            return ""
        topic = self._lanes[self._clock].config.topic
        return f"no sample on {topic!r} since reset: camera {self._clock!r} is the tick clock; check its publisher"

    def push(self, stream: str, stamp_ns: int, value: object, arrival_ns: int) -> Verdict:
        """Offer a sample. Raises ValueError for an unknown stream."""
        return self._admit(stream, Sample(stamp_ns, value, arrival_ns))

    def reject(self, stream: str, stamp_ns: int, fault: str, arrival_ns: int) -> Verdict:
        """Offer a sample whose content cannot be used: a tick that would hold it gets the fault instead."""
        self._lane(stream).counters.rejected += 1
        return self._admit(stream, Sample(stamp_ns, None, arrival_ns, fault))

    def poll(self, now_ns: int) -> list[AlignedTick]:
        """The ticks that are due, in order."""
        ticks = []
        while self._start_ns is not None and self._reached_ns:
            stamp_ns = self._start_ns + self._next * self._period_ns
            complete = all(lane.newest_ns >= stamp_ns for lane in self._lanes.values())
            if not complete and now_ns - self._reached_ns[0] < self._deadline_ns:
                break
            ticks.append(self._fire(stamp_ns))
        return ticks

    def _lane(self, stream: str) -> _Lane:
        try:
            return self._lanes[stream]
        except KeyError:
            raise ValueError(f"stream {stream!r} is not one of the config's: {', '.join(self._lanes)}") from None

    def _admit(self, stream: str, sample: Sample) -> Verdict:
        lane = self._lane(stream)
        lane.counters.received += 1
        verdict = self._judge(lane, sample.stamp_ns)
        if verdict in (Verdict.DUPLICATE, Verdict.OUT_OF_ORDER):
            lane.counters.out_of_order += 1
        elif verdict is Verdict.AHEAD:
            lane.counters.rejected += not sample.fault
        else:
            lane.refused_in_row = 0
            lane.advance(sample)
            self._keep(lane, sample, late=verdict is Verdict.LATE)
            return verdict
        if not lane.refused_in_row:
            lane.refused_since_ns = sample.arrival_ns
        lane.refused = sample
        lane.refused_in_row += 1
        return verdict

    def _judge(self, lane: _Lane, stamp_ns: int) -> Verdict:
        if stamp_ns == lane.newest_ns:
            return Verdict.DUPLICATE
        if stamp_ns < lane.newest_ns or stamp_ns < self._from_ns:
            return Verdict.OUT_OF_ORDER
        if self._start_ns is None:
            return Verdict.ACCEPTED
        ahead_ns = stamp_ns - self._start_ns - self._next * self._period_ns
        if ahead_ns > self._horizon_ns:
            return Verdict.AHEAD
        return Verdict.LATE if self._next and ahead_ns <= -self._period_ns else Verdict.ACCEPTED

    def _keep(self, lane: _Lane, sample: Sample, late: bool) -> None:
        if late:
            lane.counters.late += 1
        if self._start_ns is not None:
            self._place(lane, sample)
        elif lane.config.name == self._clock:
            self._anchor(lane, sample)
        else:
            lane.pending.append((0, sample))
            self._forget(lane.pending, sample.stamp_ns - self._horizon_ns)

    @staticmethod
    def _forget(early: deque[tuple[int, Sample]], oldest_ns: int) -> None:
        """Drop samples stamped before `oldest_ns`, as long as many are left."""
        while len(early) > MOST_UNANCHORED or (len(early) > UNANCHORED_SAMPLES and early[0][1].stamp_ns < oldest_ns):
            early.popleft()

    def _anchor(self, clock: _Lane, sample: Sample) -> None:
        """Start the grid at `sample` and put what came before it on the grid."""
        self._start_ns = sample.stamp_ns
        self._place(clock, sample)
        end_ns = sample.stamp_ns + self._horizon_ns
        for lane in self._lanes.values():
            if lane is clock:
                continue
            early, lane.pending, lane.newest_ns = lane.pending, deque(), NEVER_NS
            for _, old in early:
                if old.stamp_ns > end_ns:
                    lane.counters.rejected += not old.fault
                    lane.refused_in_row += 1
                    continue
                lane.newest_ns = old.stamp_ns
                self._place(lane, old)

    def _place(self, lane: _Lane, sample: Sample) -> None:
        assert self._start_ns is not None
        since_ns = sample.stamp_ns - self._start_ns
        first = -(-since_ns // self._period_ns)  # the first tick at or after the sample holds it
        lane.queue(max(first, self._next), sample)
        reached = since_ns // self._period_ns
        while self._next + len(self._reached_ns) <= reached:
            self._reached_ns.append(sample.arrival_ns)

    def _fire(self, stamp_ns: int) -> AlignedTick:
        samples: dict[str, Sample] = {}
        faults: dict[str, str] = {}
        for name, lane in self._lanes.items():
            lane.hold(self._next)
            if lane.held is not None:
                samples[name] = lane.held
            lane.counters.stale += _stale(lane.config, lane.held, stamp_ns)
            fault = hold_fault(lane.config, lane.held, stamp_ns)
            if fault:
                faults[name] = fault
        tick = AlignedTick(self._next, stamp_ns, samples, faults)
        self._next += 1
        self._reached_ns.popleft()
        return tick


def hold_fault(stream: StreamConfig, held: Sample | None, stamp_ns: int) -> str:
    """What is wrong with a tick at `stamp_ns` that holds `held` of `stream`; empty where nothing is.

    Texts carry no ages, so that one outage is one fault however long it lasts.
    """
    if held is None:
        return (
            f"{stream.name}: no sample on {stream.topic!r} at or before the tick since reset; check that it is "
            "published, and stamped on the clock of the other streams"
        )
    if _stale(stream, held, stamp_ns):
        return (
            f"{stream.name}: the newest sample on {stream.topic!r} is older than {stream.stale_after_ms:g} ms; check "
            "its publisher, or raise stale_after_ms"
        )
    return f"{stream.name}: {held.fault}" if held.fault else ""


def _stale(stream: StreamConfig, held: Sample | None, stamp_ns: int) -> bool:
    return held is None or stamp_ns - held.stamp_ns > round(stream.stale_after_ms * 1_000_000)
