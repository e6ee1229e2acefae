"""What the demo must show of its first memory, line by line: the figure, its limit, and whether it was met."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from trace_memory_ros.arm.demo.results import Cell, DemoResult, Mode, latency_figures, tick_figures
from trace_memory_ros.arm.sim.tasks.table import task_of

EPISODES_FOR_PROOF = 20
REMEMBERS = 0.95
ABOVE_CHANCE = 0.15
LATENCY_MS = 33.0


@dataclass(frozen=True)
class Criterion:
    """One line. met: None where it was not measured. evidence: the numbers behind it, in words."""

    name: str
    requirement: str
    met: bool | None
    evidence: str

    @property
    def word(self) -> str:
        """`met`, `missed` or `not measured`."""
        return {True: "met", False: "missed", None: "not measured"}[self.met]

    def figures(self) -> dict[str, Any]:
        return {"name": self.name, "requirement": self.requirement, "met": self.met, "evidence": self.evidence}


def chance(task: str) -> float:
    """Branch success of guesses: of an episode with several decisions all are to be right."""
    return 1 / task_of(task).choices


def no_memory_at_most(task: str) -> float:
    """Branch success that an arm without memory may have by luck."""
    return chance(task) + ABOVE_CHANCE


def criteria(result: DemoResult) -> tuple[Criterion, ...]:
    """Every line, in the order people read them; cells that were not run are left out."""
    return (*_branches(result), *_pauses(result), _latency(result), _ticks(result))


def _shown(result: DemoResult) -> str:
    """The memory that the demo is about: the first, unless it is none."""
    return "" if result.memories[0] == "none" else result.memories[0]


def _branches(result: DemoResult) -> Iterator[Criterion]:
    first = _shown(result)
    for task in result.tasks:
        for memory, limit, above in ((first, REMEMBERS, True), ("none", no_memory_at_most(task), False)):
            cell = result.cell(task, memory)
            if cell:
                sign = "≥" if above else "≤"
                met = cell.branch_success >= limit if above else cell.branch_success <= limit
                yield Criterion(f"{task}: {memory}", f"branch success {sign} {limit:.2f}", met, _share(cell))


def _pauses(result: DemoResult) -> Iterator[Criterion]:
    first = _shown(result)
    for task in result.tasks:
        cell = result.cell(task, first, paused=True)
        if cell:
            pause_s = cell.episodes[0].pause_s
            shortest_s = min(episode.duration_s for episode in cell.episodes)
            # An arm that drives on through the red lamp has not been asked to remember for longer.
            waited = shortest_s >= pause_s
            evidence = _share(cell) + (
                "" if waited else f"; an episode lasted {shortest_s:.0f} s: the arm did not wait"
            )
            met = cell.branch_success >= REMEMBERS and waited
            yield Criterion(
                f"{task}: {first} after a {pause_s:g} s pause", f"branch success ≥ {REMEMBERS}", met, evidence
            )


def _latency(result: DemoResult) -> Criterion:
    figures = latency_figures(result.latency_ms)
    if figures is None:
        return Criterion("condition latency", f"p99 ≤ {LATENCY_MS:g} ms", None, "no real-time episode was run")
    evidence = f"p50 {figures['p50']:.1f} ms, p99 {figures['p99']:.1f} ms over {figures['conditions']} conditions"
    return Criterion("condition latency", f"p99 ≤ {LATENCY_MS:g} ms", figures["p99"] <= LATENCY_MS, evidence)


def _ticks(result: DemoResult) -> Criterion:
    figures = tick_figures(result.in_mode(Mode.REALTIME))
    if figures is None:
        return Criterion("control ticks in real time", "none lost", None, "no real-time episode was run")
    lost = figures["expected"] - figures["published"]
    evidence = f"{figures['published']} of {figures['expected']} published"
    return Criterion("control ticks in real time", "none lost", lost == 0, evidence)


def _share(cell: Cell) -> str:
    low, high = cell.ci95
    few = "" if cell.trials >= EPISODES_FOR_PROOF else f"; {EPISODES_FOR_PROOF} episodes make the proof"
    undecided = f", {cell.undecided} took no branch" if cell.undecided else ""
    counts = f"{cell.successes} of {cell.trials}{undecided}"
    return f"{cell.branch_success:.2f} ({counts}, 95 % CI {low:.2f}-{high:.2f}{few})"
