"""Observations to conditions, through whatever befalls the streams: silence, a clock that jumps, a restored memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

from trace_memory_ros.nodes.memory.continuity import Continuity
from trace_memory_ros.observation.alignment import Rupture
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.condition import Condition, TickRecord
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

ON_CLOCK_JUMP = ("stop", "new_episode")
CLOCK = "clock"
MEMORY = "memory"
Fault = Callable[[str, str], None]


@dataclass(frozen=True)
class Ticked:
    """A tick that was remembered. align_ms: what finding its samples took."""

    condition: Condition
    record: TickRecord
    observation: Observation
    align_ms: float


class Remembering:
    """One memory's episodes; `instance` goes into every condition.

    on_clock_jump: `stop` until `begin`, or `new_episode`. fault: told (source, text) of what happens to the episode
    itself. stopped: why no tick comes any more, empty while they do. next_tick, last_stamp_ns: of the episode.
    """

    def __init__(
        self,
        runtime: MemoryRuntime,
        observer: Observer,
        continuity: Continuity,
        instance: int,
        on_clock_jump: str,
        fault: Fault,
    ) -> None:
        self.runtime, self.observer, self.continuity = runtime, observer, continuity
        self.instance = instance
        self._on_clock_jump = on_clock_jump
        self._fault = fault
        self._observe_from(0)

    def begin(self) -> None:
        """A new episode: the memory is empty, the clock camera's next sample is tick 0."""
        self.runtime.reset()
        self.continuity.begin()
        self._observe_from(0)

    def recover(self) -> None:
        """Begin, with what a fault left behind if it may be gone on from."""
        self.runtime.reset()
        self.continuity.recover(time.time_ns())
        self._observe_from(0)

    def end(self) -> None:
        """The episode is over, in order."""
        self.continuity.forget()

    def take_over(self, path: Path) -> None:
        """Go on from the snapshot at `path`, as if no time had passed. Raises OSError and SnapshotError."""
        self._observe_from(self.continuity.take_over(path))

    def ticks(self, now_ns: int) -> Iterator[Ticked]:
        """The ticks that are complete, or late at monotonic `now_ns`, each remembered."""
        if self.stopped:
            return
        begun = time.perf_counter()
        observations = self.observer.poll(now_ns)
        align_ms = 1e3 * (time.perf_counter() - begun)
        for observation in observations:
            yield self._tick(observation, align_ms)
        rupture = self.observer.aligner.rupture
        if rupture is not None:
            self._mend(rupture)

    def keep(self) -> None:
        """Let the episode's state go to disk where that is due; after everything that is waited for."""
        self.continuity.keep(self.next_tick, self.last_stamp_ns, time.time_ns(), time.monotonic_ns())

    def _tick(self, observation: Observation, align_ms: float) -> Ticked:
        first = self.continuity.first_tick(observation.stamp_ns)
        if first is not None:
            self._first_tick = first - observation.tick
            if self.continuity.lost:
                self._fault(MEMORY, f"memory: {self.continuity.story}")
        observation = replace(observation, tick=self._first_tick + observation.tick)
        condition, record = self.runtime.tick(observation)
        condition = replace(
            condition,
            instance=self.instance,
            restored=self.continuity.restored,
            gap_ticks=self.continuity.gap_ticks,
        )
        self.next_tick, self.last_stamp_ns = observation.tick + 1, observation.stamp_ns
        return Ticked(condition, record, observation, align_ms)

    def _mend(self, rupture: Rupture) -> None:
        if rupture.silence:
            self.continuity.resume(self.next_tick, self.last_stamp_ns)
            self.observer.aligner.restart()
            why = "nothing was heard for more than the aligner's horizon: no stream came, or this process slept"
            self._fault(CLOCK, f"{CLOCK}: {why}; ticks go on with the next image, those between are missing")
            return
        way = "ahead" if rupture.jump_ns > 0 else "back"
        text = f"{CLOCK}: the stamps of all streams jumped {way} by {abs(rupture.jump_ns) / 1e9:.1f} s"
        if self._on_clock_jump == "new_episode":
            self.begin()
            self._fault(CLOCK, f"{text}: a new episode began with an empty memory")
        else:
            self.stopped = f"{text}: the episode ended; call ~/reset to begin one, or set on_clock_jump: new_episode"
            self.continuity.forget()
            self._fault(CLOCK, self.stopped)

    def _observe_from(self, first_tick: int) -> None:
        self.observer.reset()
        self.stopped = ""
        self._first_tick = self.next_tick = first_tick
        self.last_stamp_ns = -1
