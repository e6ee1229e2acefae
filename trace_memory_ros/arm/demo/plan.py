"""Which episodes a demo runs, on which checkpoints, in which order."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED, held_out_scenarios, some_scenarios
from trace_memory_ros.arm.demo.results import Mode
from trace_memory_ros.arm.design import checkpoint_name
from trace_memory_ros.arm.sim.names import LIVE_TASKS, ONE_CUE_TASKS
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.nodes.launch_arguments import REALTIME_PRIORITY
from trace_memory_ros.runtime.shipped import find_checkpoint

FIRST_REALTIME_SEED = FIRST_EVALUATION_SEED + 1_000
THOROUGH_EPISODES = 10
USUAL_EPISODE_S = 20.0
MAX_JOBS = 2
USUAL_MEMORIES = ("trace", "gru", "first_frame", "none")


@dataclass(frozen=True)
class DemoOptions:
    """What to run. episodes: per task and memory, even, so that both cues come equally often; as many more as all cues
    of a task with more than two need for that.

    pause_episodes: with the inserted pause, per task and memory; None: 2 of the first memory, or from 10 episodes on as
    many as `episodes`, and 4 of the others, and none at all where pause_s is 0. realtime_s: about how long the
    simulator runs on the wall clock, with the first memory; 0 for not at all. jobs: cells run at once, 0 to decide by
    the cores. weights: folder of `<task>_<memory>` checkpoints instead of the shipped ones. policy: its family. Raises
    ValueError naming value and remedy.
    """

    tasks: tuple[str, ...] = ONE_CUE_TASKS
    memories: tuple[str, ...] = USUAL_MEMORIES
    episodes: int = 4
    pause_s: float = 60.0
    pause_episodes: int | None = None
    realtime_s: float = 40.0
    jobs: int = 0
    out: Path = Path("out/demo")
    weights: Path | None = None
    policy: str = "act"

    def __post_init__(self) -> None:
        for task in self.tasks:
            if task not in LIVE_TASKS:
                raise ValueError(f"task {task!r} is unknown: choose from {', '.join(LIVE_TASKS)}")
        for name in ("tasks", "memories"):
            given = getattr(self, name)
            if not given or len(set(given)) != len(given):
                raise ValueError(f"{name} = {', '.join(given) or 'none'}: give at least one, each once")
        counts = {"episodes": self.episodes, "pause episodes": self.pause_episodes or 0}
        for name, count in counts.items():
            if count < 0 or count % 2:
                raise ValueError(f"{name} = {count}: give an even number, so that both cues come equally often")
        if self.pause_s < 0 or self.realtime_s < 0 or self.jobs < 0:
            raise ValueError(
                f"pause {self.pause_s} s, real time {self.realtime_s} s, jobs {self.jobs}: must not be negative"
            )
        if self.pause_episodes and not self.pause_s:
            raise ValueError(
                f"{self.pause_episodes} pause episodes with a pause of 0 s would be the plain ones again: give a pause"
            )
        if not self.episodes and not self.pause_episodes and not self.realtime_s:
            raise ValueError("no episodes, no pause episodes and no real time: nothing to run")

    @property
    def parallel(self) -> int:
        """Cells run at once: a lock-step cell keeps one core busy."""
        return self.jobs or max(1, min(MAX_JOBS, len(os.sched_getaffinity(0))))

    def paused_episodes(self, memory: str) -> int:
        """Episodes with the inserted pause, per task."""
        if not self.pause_s:
            return 0
        if self.pause_episodes is not None:
            return self.pause_episodes
        thorough = self.episodes >= THOROUGH_EPISODES
        if memory == self.memories[0]:
            return self.episodes if thorough else 2
        return 4 if thorough else 0


@dataclass(frozen=True)
class PlannedEpisode:
    """One episode to run. record: keep timeline and pictures for the page. bag: record all topics."""

    scenario: Scenario
    mode: Mode = Mode.LOCKSTEP
    record: bool = False
    bag: bool = False

    @property
    def timeout_s(self) -> float:
        """Wall time after which the episode is given up."""
        return 60.0 + (10.0 if self.mode is Mode.LOCKSTEP else 2.0) * self.scenario.timeout_s


@dataclass(frozen=True)
class CellPlan:
    """Episodes of one checkpoint, run by one set of processes. realtime_priority: of robot, memory and policy."""

    task: str
    memory: str
    checkpoint: Path
    episodes: tuple[PlannedEpisode, ...]
    note: str = ""
    realtime_priority: int = 0

    @property
    def name(self) -> str:
        return f"{self.task}_{self.memory}{self.note}"


def checkpoint_of(task: str, memory: str, weights: Path | None, policy: str = "act") -> Path:
    """Folder of a checkpoint. Raises `ValueError` with the command that trains it."""
    name = checkpoint_name(task, memory, policy)
    try:
        if weights is None:
            return find_checkpoint(name)
        if (weights / name).is_dir():
            return weights / name
        problem = f"checkpoint {weights / name} does not exist"
    except ValueError as error:
        problem = str(error)
    folder = weights or Path("weights")
    family = "" if policy == "act" else f" --policy {policy}"
    raise ValueError(f"{problem}; train it: trace-memory train {task} --memory {memory}{family} --out {folder / name}")


def usual_memories(tasks: Sequence[str], policy: str = "act", weights: Path | None = None) -> tuple[str, ...]:
    """Of what a demo usually compares: what there are checkpoints of for all tasks; where there are none, all of it."""

    def there(task: str, memory: str) -> bool:
        try:
            return checkpoint_of(task, memory, weights, policy).is_dir()
        except ValueError:
            return False

    found = tuple(memory for memory in USUAL_MEMORIES if all(there(task, memory) for task in tasks))
    return found or USUAL_MEMORIES


def lockstep_cells(options: DemoOptions) -> list[CellPlan]:
    """One cell per task and memory, the longest first. Raises `ValueError` for a missing checkpoint."""
    cells = []
    for task in options.tasks:
        for memory in options.memories:
            bag = (task, memory) == (options.tasks[0], options.memories[0])
            episodes = tuple(_lockstep_episodes(task, memory, options, bag))
            checkpoint = checkpoint_of(task, memory, options.weights, options.policy)
            if episodes:
                cells.append(CellPlan(task, memory, checkpoint, episodes))
    return sorted(cells, key=_simulated_s, reverse=True)


def realtime_cells(options: DemoOptions) -> list[CellPlan]:
    """Real-time episodes of the first memory, the seconds shared by the tasks."""
    if not options.realtime_s:
        return []
    memory = options.memories[0]
    count = max(1, round(options.realtime_s / USUAL_EPISODE_S / len(options.tasks)))
    cells = []
    for task in options.tasks:
        scenarios = some_scenarios(task, FIRST_REALTIME_SEED, count)
        episodes = tuple(PlannedEpisode(scenario, Mode.REALTIME) for scenario in scenarios)
        checkpoint = checkpoint_of(task, memory, options.weights, options.policy)
        cells.append(CellPlan(task, memory, checkpoint, episodes, "_realtime", REALTIME_PRIORITY))
    return cells


def _lockstep_episodes(task: str, memory: str, options: DemoOptions, bag: bool) -> Iterator[PlannedEpisode]:
    cues = task_of(task).choices
    for i, scenario in enumerate(held_out_scenarios(task, _whole(options.episodes, cues))):
        yield PlannedEpisode(scenario, record=i < cues, bag=bag and i == 0)
    paused = _whole(options.paused_episodes(memory), cues)
    for i, scenario in enumerate(held_out_scenarios(task, paused, options.pause_s)):
        yield PlannedEpisode(scenario, record=i == 0)


def _whole(episodes: int, cues: int) -> int:
    """At least so many, with every cue equally often."""
    return -(-episodes // cues) * cues


def _simulated_s(cell: CellPlan) -> float:
    return sum(USUAL_EPISODE_S + episode.scenario.extra_pause_s for episode in cell.episodes)
