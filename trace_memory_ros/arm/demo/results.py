"""What closed-loop episodes gave: one episode, one cell of the table, everything a demo measured."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.measure.statistics import Interval, bootstrap_interval, percentiles, wilson_interval


class Mode(Enum):
    """How simulated time passed."""

    LOCKSTEP = "lockstep"
    REALTIME = "realtime"


def branch_name(task: str, branch: int) -> str:
    """What the task calls that answer, such as `left`, or `none`, for people."""
    words = task_of(task).words
    return words[branch] if branch in range(len(words)) else "none"


def cue_name(task: str, cue: int) -> str:
    """What a cue calls for, in the task's words: `left`, or `left, right, middle` where there are several decisions."""
    words = task_of(task).words
    return ", ".join(words[answer] for answer in Scenario(task, 0, cue).answers)


def went(task: str, branch: int) -> str:
    """Where the arm went, `none` where it took no branch; of several decisions the first is told."""
    several = branch >= 0 and len(Scenario(task, 0, 0).answers) > 1
    return f"{branch_name(task, branch)}{' first' if several else ''}"


@dataclass(frozen=True)
class EpisodeResult:
    """One closed-loop episode.

    cue: of the scenario, which `cue_name` tells. branch: the first answer, -1 where none was taken. progress: TRACE
    eq. 10, 0..1. duration_s, pause_s: simulated. ticks_published: distinct conditions received. write_rate_hz: writes
    per second of stream time.
    """

    task: str
    memory: str
    seed: int
    cue: int
    branch: int
    success: bool
    progress: float
    duration_s: float
    pause_s: float
    mode: Mode
    ticks_expected: int
    ticks_published: int
    ticks_stale: int
    write_count: int
    write_rate_hz: float
    wall_s: float


@dataclass(frozen=True)
class Cell:
    """Episodes of one task and memory under one condition, at least one."""

    episodes: tuple[EpisodeResult, ...]

    def __post_init__(self) -> None:
        if not self.episodes:
            raise ValueError("a cell without episodes has no figures: leave it out")

    @property
    def trials(self) -> int:
        return len(self.episodes)

    @property
    def successes(self) -> int:
        return sum(episode.success for episode in self.episodes)

    @property
    def undecided(self) -> int:
        """Episodes in which no branch was taken; they count as failures."""
        return sum(episode.branch < 0 for episode in self.episodes)

    @property
    def branch_success(self) -> float:
        return self.successes / self.trials

    @property
    def ci95(self) -> Interval:
        """Wilson's interval: branch success is a proportion, and a bootstrap has no width at 20 of 20."""
        return wilson_interval(self.successes, self.trials)

    def figures(self) -> dict[str, Any]:
        """The cell in `summary.json`."""
        progress = [episode.progress for episode in self.episodes]
        return {
            "branch_success": self.branch_success,
            "episodes": self.trials,
            "successes": self.successes,
            "undecided": self.undecided,
            "ci95": list(self.ci95),
            "ci95_method": "wilson",
            "progress": float(np.mean(progress)),
            "progress_ci95": list(bootstrap_interval(progress)),
            "write_rate_hz": float(np.mean([episode.write_rate_hz for episode in self.episodes])),
            "writes": float(np.mean([episode.write_count for episode in self.episodes])),
            "episode_s": float(np.mean([episode.duration_s for episode in self.episodes])),
            "pause_s": self.episodes[0].pause_s,
            "seeds": sorted({episode.seed for episode in self.episodes}),
        }


@dataclass(frozen=True)
class Timeline:
    """What memory did during one episode, over T conditions and N slots.

    time_s: `(T,)` since the first tick. route, write_strength, read_weights: `(T, N)`. wrote, cue_visible: `(T,)` bool.
    branch_s: arrival at the branch point; decided_s: the part entered a target; None where that did not happen.
    """

    time_s: NDArray[np.float64]
    route: NDArray[np.float32]
    write_strength: NDArray[np.float32]
    read_weights: NDArray[np.float32]
    wrote: NDArray[np.bool_]
    cue_visible: NDArray[np.bool_]
    branch_s: float | None
    decided_s: float | None


@dataclass(frozen=True)
class Frame:
    """A camera picture `(H, W, 3)` uint8 RGB at a moment of the episode: `cue`, `gone`, `way`, `branch` or `end`."""

    moment: str
    time_s: float
    image: NDArray[np.uint8]


@dataclass(frozen=True)
class IllustratedEpisode:
    """An episode that the report illustrates."""

    episode: EpisodeResult
    timeline: Timeline
    frames: tuple[Frame, ...]

    def frame(self, moment: str) -> Frame | None:
        return next((frame for frame in self.frames if frame.moment == moment), None)


@dataclass(frozen=True)
class DemoResult:
    """Everything one demo measured. latency_ms: observation stamp -> condition received, of real-time episodes."""

    tasks: tuple[str, ...]
    memories: tuple[str, ...]
    episodes: tuple[EpisodeResult, ...]
    latency_ms: Sequence[float] = ()
    recordings: tuple[IllustratedEpisode, ...] = ()
    model_ids: dict[str, str] = field(default_factory=dict)
    wall_s: float = 0.0
    bag: str | None = None

    def cell(self, task: str, memory: str, paused: bool = False) -> Cell | None:
        """Lock-step episodes of a task and memory, with or without the inserted pause; None where there are none."""
        return _cell(
            e
            for e in self.episodes
            if (e.task, e.memory) == (task, memory) and (e.pause_s > 0) == paused and e.mode is Mode.LOCKSTEP
        )

    def paused(self, memory: str) -> Cell | None:
        """Episodes of a memory with the inserted pause, over all tasks."""
        return _cell(e for e in self.episodes if e.memory == memory and e.pause_s > 0 and e.mode is Mode.LOCKSTEP)

    def in_mode(self, mode: Mode) -> tuple[EpisodeResult, ...]:
        return tuple(episode for episode in self.episodes if episode.mode is mode)

    def figures(self) -> dict[str, Any]:
        """The `figures` of `summary.json`; None where nothing was measured."""
        first = self.memories[0]
        paused = self.paused(first)
        return {
            "tasks": {task: self._task_figures(task) for task in self.tasks},
            "pause": paused and {"memory": first, **paused.figures()},
            "condition_latency_ms": latency_figures(self.latency_ms),
            "ticks": tick_figures(self.in_mode(Mode.REALTIME)),
            "ticks_lockstep": tick_figures(self.in_mode(Mode.LOCKSTEP)),
            "checkpoints": dict(self.model_ids),
            "wall_time_s": self.wall_s,
        }

    def _task_figures(self, task: str) -> dict[str, Any]:
        out: dict[str, Any] = {}
        for memory in self.memories:
            cell, paused = self.cell(task, memory), self.cell(task, memory, paused=True)
            if cell or paused:
                out[memory] = {**(cell.figures() if cell else {}), "pause": paused and paused.figures()}
        return out


def latency_figures(latency_ms: Sequence[float]) -> dict[str, Any] | None:
    """p50, p99 and maximum in ms, and how many conditions they are of; None for none."""
    if not len(latency_ms):
        return None
    p50, p99, most = percentiles(latency_ms, (50, 99, 100))
    return {"p50": p50, "p99": p99, "max": most, "conditions": len(latency_ms)}


def tick_figures(episodes: Sequence[EpisodeResult]) -> dict[str, Any] | None:
    """Control ticks of the episodes: due, answered by a condition, and of those not OK; None for no episodes."""
    if not episodes:
        return None
    return {
        "expected": sum(episode.ticks_expected for episode in episodes),
        "published": sum(episode.ticks_published for episode in episodes),
        "not_ok": sum(episode.ticks_stale for episode in episodes),
        "episodes": len(episodes),
    }


def _cell(episodes: Iterable[EpisodeResult]) -> Cell | None:
    found = tuple(episodes)
    return Cell(found) if found else None
