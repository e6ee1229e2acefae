"""One row of the table: episodes, eyes, the memory-first phase, and decisions that nothing was chosen by."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from typing import NamedTuple

import torch

from studies.detail.plan import CHOOSING_SEED, FRAME_S, TESTED_SEED, DetailPlan, design_of, parts_of, recorded
from studies.grid import Figures, Run, Store
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.learning.batches import BatchBuilder, Data
from trace_memory_ros.learning.branch_accuracy import decisions_right
from trace_memory_ros.learning.build import Design, Pairs, prepare, with_features
from trace_memory_ros.learning.dataset import StatePath, TrainingSet
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.progress import Progress


class Splits(NamedTuple):
    """Batches of what is learned from, what restarts look at, and what is reported."""

    training: BatchBuilder
    choosing: BatchBuilder
    tested: BatchBuilder


def seeds_of(plan: DetailPlan) -> list[list[int]]:
    """Scenario seeds of the three splits."""
    recipe = plan.recipe
    counts = ((0, recipe.pairs), (CHOOSING_SEED, recipe.held_out_pairs), (TESTED_SEED, plan.pairs))
    return [list(range(first, first + count)) for first, count in counts]


@lru_cache(maxsize=1)
def demonstrations(plan: DetailPlan, task: str, crop: tuple[float, float, float, float] | None) -> list[Pairs]:
    """Pairs of the three splits, rendered once."""
    config = recorded(crop)
    return [list(collect(task, seeds, config, plan.demos, frame_s=FRAME_S)) for seeds in seeds_of(plan)]


def splits(plan: DetailPlan, run: Run) -> Splits:
    """Batches of a run's design, without features."""
    eyes, memory = parts_of(run.row)
    design = design_of(eyes, memory)
    training, choosing, tested = demonstrations(plan, run.task, eyes.crop)
    data = prepare(design, training, choosing)
    return Splits(data.training, data.held_out, replace(data.held_out, data=_set(design, data.training, tested)))


def _set(design: Design, training: BatchBuilder, pairs: Pairs) -> TrainingSet:
    seen = design.observation
    state = training.statistics.state
    path = StatePath(state, design.depth, design.window, seen.tick_period_ms, seen.path_rows)
    return TrainingSet.build(pairs, path, seen.thumbnail_px)


def measure(plan: DetailPlan, run: Run, store: Store) -> str:
    """Train a run and count its decisions, unless that is kept; returns a line about it."""
    found = store.get("decisions", {}, lambda: _measure(plan, run))
    return f"{found['right']} of {found['decisions']} right after {found['steps']} steps, {found['cpu_s']:.0f} s"


def _measure(plan: DetailPlan, run: Run) -> Figures:
    torch.set_num_threads(1)
    eyes, memory = parts_of(run.row)
    design, recipe = design_of(eyes, memory), plan.recipe_of(eyes)
    begun = time.process_time()
    parts = splits(plan, run)
    if eyes.kept:
        data = with_features(Data(parts.training, parts.choosing), design, recipe.augmentation, plan.features)
        parts = Splits(*data, replace(parts.tested, features=data.training.features))
    prepared = time.process_time()
    agent = new_agent(design, Data(parts.training, parts.choosing), run.seed)
    log: list[Progress] = []
    model = learn_memory(agent, parts.training, parts.choosing, recipe, run.seed, log.append).eval()
    learned = time.process_time()
    right = [decisions_right(model, parts.tested, pair).flatten() for pair in range(parts.tested.data.pairs)]
    cache = parts.training.features
    return {
        "right": int(torch.cat(right).sum()),
        "decisions": int(torch.cat(right).numel()),
        "training_branch_accuracy": log[-1].train_branch_accuracy,
        "steps": log[-1].step,
        "attempts": log[-1].attempt,
        "cpu_s": learned - prepared,
        "prepare_cpu_s": prepared - begun,
        "images_computed": 0 if cache is None else cache.computed,
    }
