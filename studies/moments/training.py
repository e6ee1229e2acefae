"""Training on decisions that were annotated, found, or are not known; judged by what is annotated in fresh episodes."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from studies.grid import Figures
from trace_memory_ros.arm.recorder import arm_recording
from trace_memory_ros.arm.sizes import ARM_DIMS, MATCHED
from trace_memory_ros.learning.bags.data import BagData
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.training import Prepared, prepare
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import StatePath, UnpairedSet
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.branch_accuracy import ChunkModel, fit_references, label_verdicts
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import MemoryFirst, ReadShares, Recipe
from trace_memory_ros.learning.report.progress import Progress
from trace_memory_ros.learning.run_config import AUTO, NONE
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.observation.periods import ticks_in
from trace_memory_ros.runtime.window import PathWindow

PLAIN = ("gru", "gru+cache", "first_frame")
MEMORIES: dict[str, BagOptions] = {
    **{name: BagOptions(memory=name, memory_options=MATCHED.get(name, {}), slots=ARM_DIMS.slots) for name in PLAIN},
    "trace_window": BagOptions(window=PathWindow(stretches=8), memory_options=MATCHED["trace"], slots=ARM_DIMS.slots),
}
ANNOTATED, FOUND, PAPER = "annotated", "found", "paper"
TRAININGS = (ANNOTATED, FOUND, PAPER)
PAPER_STEPS = 750
"""Of the paper's recipe here: about as many as the others take."""
NEAR_MS = 500


@dataclass(frozen=True)
class Job:
    """A training: on `bags` episodes of a task."""

    task: str
    bags: int
    decisions: str
    memory: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} {self.bags} {self.decisions} {self.memory} seed {self.seed}"


def measure(job: Job, data: BagData, fresh: BagData, first: MemoryFirst) -> Figures:
    """Train encoder and memory under their auxiliary head, and count right decisions of fresh episodes."""
    recipe = Recipe(memory_first=first)
    judge = prepare(data, arm_recording(), MEMORIES[job.memory], recipe)
    begun = time.process_time()
    prepared = judge if job.decisions == ANNOTATED else _without_annotation(job, data, recipe)
    looked = time.process_time() - begun
    fitted = _paper(prepared.recipe, first) if job.decisions == PAPER else prepared.recipe
    agent = new_agent(prepared.design, prepared.data, job.seed)
    log: list[Progress] = []
    begun = time.process_time()
    model = learn_memory(agent, prepared.training, prepared.data.validation, fitted, job.seed, log.append).eval()
    right = verdicts(model, judge, fresh.episodes)
    figures: Figures = {
        "right": int(sum(right)),
        "decisions": len(right),
        "ci95": list(wilson_interval(int(sum(right)), len(right))),
        "steps": log[-1].step,
        "attempts": log[-1].attempt,
        "preparing_cpu_s": looked,
        "training_cpu_s": time.process_time() - begun,
    }
    if job.decisions == FOUND:
        true = {demo.name: demo for demo in data.episodes}
        mine = [episode.demo for builder in prepared.data if builder is not None for episode in builder.data.episodes]
        period_ms = prepared.design.observation.tick_period_ms
        figures["found"] = compare(mine, [true[demo.name] for demo in mine], period_ms)
    return figures


def _without_annotation(job: Job, data: BagData, recipe: Recipe) -> Prepared:
    """The same episodes as if nobody had annotated them."""
    bare = [replace(demo, decision_ticks=(), answers=()) for demo in data.episodes]
    plain = replace(data, episodes=tuple(bare), labels=())
    how = AUTO if job.decisions == FOUND else NONE
    return prepare(plain, arm_recording(), MEMORIES[job.memory], recipe, decisions=how)


def _paper(recipe: Recipe, first: MemoryFirst) -> Recipe:
    """No labels: reads anywhere, the final clock from the start, a fixed number of steps."""
    steps = min(PAPER_STEPS, first.stage_steps * len(first.clock_factors))
    anywhere = replace(
        recipe.memory_first,
        clock_factors=(1.0,),
        delay_factors=(),
        stage_steps=steps,
        shares=ReadShares(near_branch=0.0),
        attempts=1,
    )
    return replace(recipe, memory_first=anywhere)


def verdicts(model: ChunkModel, judge: Prepared, fresh: Sequence[Demonstration]) -> list[bool]:
    """Whether each annotated decision of fresh episodes is right, by what annotated training episodes did."""
    builder = _fresh(judge, fresh)
    assert builder.references is not None
    return [
        verdict
        for index in range(len(fresh))
        for _, _, verdict in label_verdicts(model, builder, builder.references, [index])
    ]


def _fresh(judge: Prepared, fresh: Sequence[Demonstration]) -> BatchBuilder:
    design, builder = judge.design, judge.training
    seen = design.observation
    path = StatePath(judge.state, design.depth, design.window, seen.tick_period_ms, seen.path_rows)
    spread = builder.statistics.action_std
    data = UnpairedSet.build(fresh, path, seen.thumbnail_px, spread, np.zeros(0, dtype=np.int64))
    references = fit_references(builder)
    return replace(builder, data=data, references=references)


def compare(mine: Sequence[Demonstration], theirs: Sequence[Demonstration], period_ms: int) -> Figures:
    """Annotated decisions that were found within `NEAR_MS`, found ones that are not annotated, answers that agree."""
    near = ticks_in(NEAR_MS, period_ms)
    hit = annotated = extra = 0
    pairs: dict[tuple[int, int], int] = {}
    for one, true in zip(mine, theirs, strict=True):
        annotated += len(true.decision_ticks)
        used = set()
        for tick, answer in zip(true.decision_ticks, true.answers, strict=True):
            close = [i for i, other in enumerate(one.decision_ticks) if abs(other - tick) <= near]
            if close:
                best = min(close, key=lambda i: abs(one.decision_ticks[i] - tick))
                hit += 1
                used.add(best)
                pair = (answer, one.answers[best])
                pairs[pair] = pairs.get(pair, 0) + 1
        extra += len(one.decision_ticks) - len(used)
    best_of: dict[int, int] = {}
    for (_, label), count in pairs.items():
        best_of[label] = max(best_of.get(label, 0), count)
    return {
        "episodes": len(mine),
        "annotated": annotated,
        "within": hit,
        "extra": extra,
        "agree": sum(best_of.values()),
        "answers": len(best_of),
    }
