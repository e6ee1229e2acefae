"""What an episode over ROS came to: its conditions as they arrived, and its outcome as the simulator reports it."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.msg import EpisodeStatus, MemoryCondition
from trace_memory_ros.nodes.conversion import stamp_ns


@dataclass(frozen=True)
class ReceivedCondition:
    """One condition as it arrived. latency_ms: tick stamp -> received here; meaningful in real time only."""

    tick: int
    stamp_ns: int
    status: int
    wrote: bool
    latency_ms: float


@dataclass(frozen=True)
class PlayedEpisode:
    """One episode over ROS. ticks_expected: by the simulator. conditions: all that were received, in order."""

    task: str
    seed: int
    cue: int
    branch: int
    success: bool
    progress: float
    elapsed_s: float
    ticks_expected: int
    mechanism: str
    model_id: str
    conditions: tuple[ReceivedCondition, ...]
    reasons: tuple[str, ...]

    @property
    def ticks_published(self) -> int:
        """Distinct ticks for which a condition was received."""
        return len({condition.tick for condition in self.conditions})

    @property
    def latencies_ms(self) -> tuple[float, ...]:
        return tuple(condition.latency_ms for condition in self.conditions)

    @property
    def statuses(self) -> Mapping[int, int]:
        """How many conditions came with each status."""
        return Counter(condition.status for condition in self.conditions)

    @property
    def writes(self) -> int:
        return sum(condition.wrote for condition in self.conditions)


@dataclass
class EpisodeLog:
    """An episode under way: what was received since it began."""

    conditions: list[ReceivedCondition] = field(default_factory=list)
    reasons: dict[str, None] = field(default_factory=dict)
    status: EpisodeStatus | None = None
    running: bool = False
    mechanism: str = ""
    model_id: str = ""

    def take_condition(self, message: MemoryCondition, now_ns: int) -> None:
        """Add a condition that arrived at wall time `now_ns`."""
        stamp = stamp_ns(message.header.stamp)
        self.mechanism, self.model_id = message.mechanism, message.model_id
        self.conditions.append(
            ReceivedCondition(
                int(message.tick), stamp, int(message.status), bool(message.wrote), (now_ns - stamp) / 1e6
            )
        )
        if message.reason:
            self.reasons[message.reason] = None

    def take_status(self, message: EpisodeStatus) -> None:
        """Hold the simulator's newest report."""
        self.status = message
        self.running |= message.phase == EpisodeStatus.RUNNING

    def finished(self, scenario: Scenario) -> bool:
        """Whether this scenario's episode has run and ended."""
        return (
            self.status is not None
            # A status kept for late joiners may tell of an earlier episode of the same scenario.
            and self.running
            and self.status.phase == EpisodeStatus.FINISHED
            and (self.status.task, self.status.seed, self.status.cue) == (scenario.task, scenario.seed, scenario.cue)
        )

    def result(self) -> PlayedEpisode:
        """The whole episode; only once a status was received."""
        status = self.status
        assert status is not None
        return PlayedEpisode(
            task=status.task,
            seed=int(status.seed),
            cue=int(status.cue),
            branch=int(status.branch),
            success=bool(status.success),
            progress=float(status.progress),
            elapsed_s=float(status.elapsed_s),
            ticks_expected=int(status.ticks_expected),
            mechanism=self.mechanism,
            model_id=self.model_id,
            conditions=tuple(self.conditions),
            reasons=tuple(self.reasons),
        )
