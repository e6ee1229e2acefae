"""Three ways to find moments, on tasks that have them and on controls that have none."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from studies.grid import Figures
from studies.moments import memoryless
from studies.moments.scenes import read, shown, without_twins
from studies.moments.training import compare
from trace_memory_ros.arm.recorder import arm_recording
from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.spread import ACTION_SHARE, least_spread
from trace_memory_ros.learning.decisions.found import find_decisions, recorded
from trace_memory_ros.moments import words
from trace_memory_ros.observation.frames import at

STAYS, BEFORE, AFTER = "colour_shown", "colour_before", "origin_after"
CONTROLS = (STAYS, BEFORE, AFTER)
"""The panel stays lit; episodes that end 2 s before the branch; episodes that begin 1 s after it."""
BEFORE_TICKS, AFTER_TICKS = 20, 10
Finder = Callable[[Sequence[Demonstration]], tuple[list[Demonstration], str]]


@dataclass(frozen=True)
class Case:
    """A way to find moments, on `bags` episodes of a task or control."""

    finder: str
    task: str
    bags: int

    def __str__(self) -> str:
        return f"{self.finder} {self.task} {self.bags}"


def find_in(case: Case, folder: Path) -> Figures:
    """Look for moments and compare them with what is annotated."""
    demos = episodes(case.task, case.bags, folder)
    begun = time.process_time()
    found, said = FINDERS[case.finder]([replace(demo, decision_ticks=(), answers=()) for demo in demos])
    spent = time.process_time() - begun
    true = [replace(demo, decision_ticks=(), answers=()) for demo in demos] if case.task in CONTROLS else demos
    alarmed = sum(bool(demo.decision_ticks) for demo in found) if case.task in CONTROLS else 0
    figures = compare(found, true, arm_recording().observation.tick_period_ms)
    return {**figures, "alarmed_episodes": alarmed, "words": said, "cpu_s": spent}


def episodes(task: str, count: int, folder: Path) -> list[Demonstration]:
    """The episodes of a task or control, without twins, as they are annotated."""
    if task == STAYS:
        return list(read(tuple(shown(count)), folder).episodes)
    demos = read(tuple(without_twins(task.partition("_")[0], count)), folder).episodes
    if task == BEFORE:
        return [_part(demo, slice(0, demo.decision_ticks[0] - BEFORE_TICKS)) for demo in demos]
    if task == AFTER:
        return [_part(demo, slice(demo.decision_ticks[0] + AFTER_TICKS, None)) for demo in demos]
    return list(demos)


def _part(demo: Demonstration, ticks: slice) -> Demonstration:
    """A stretch of an episode, with nothing to decide."""
    return replace(
        demo,
        images=at(demo.images, ticks),
        stamps_ns=demo.stamps_ns[ticks],
        state=demo.state[ticks],
        actions=demo.actions[ticks],
        usable=None if demo.usable is None else demo.usable[ticks],
        decision_ticks=(),
        answers=(),
    )


def _nearest(demos: Sequence[Demonstration]) -> tuple[list[Demonstration], str]:
    period_ms, least_state, least_action = _sizes()
    decisions = find_decisions([demos], period_ms, least_state, least_action, ACTION_NAMES)
    return decisions.sides[0], words.verdict(decisions.moments) if decisions.moments else "cannot be judged"


def _regressor(demos: Sequence[Demonstration]) -> tuple[list[Demonstration], str]:
    return _peaks(demos, memoryless.errors)


def _mixture(demos: Sequence[Demonstration]) -> tuple[list[Demonstration], str]:
    return _peaks(demos, memoryless.bimodality)


def _peaks(demos: Sequence[Demonstration], score: Callable[..., list[np.ndarray]]) -> tuple[list[Demonstration], str]:
    """Decisions where a memoryless policy is unsure; one answer, since it tells no ways apart."""
    period_ms, *least = _sizes()
    scores = score([recorded(demo, period_ms) for demo in demos], *least)
    ticks = memoryless.peaks(scores, period_ms)
    found = [replace(d, decision_ticks=tuple(t), answers=(0,) * len(t)) for d, t in zip(demos, ticks, strict=True)]
    some = sum(bool(t) for t in ticks)
    return found, f"peaks in {some} of {len(demos)} episodes"


def _sizes() -> tuple[int, NDArray[np.float64], NDArray[np.float64]]:
    recording = arm_recording()
    assert recording.actions is not None
    least_action = ACTION_SHARE * least_spread(recording.actions.units)
    return recording.observation.tick_period_ms, least_spread(recording.observation.state_units), least_action


FINDERS: dict[str, Finder] = {"nearest": _nearest, "regressor": _regressor, "mixture": _mixture}
