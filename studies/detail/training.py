"""One row of the table: episodes, eyes, the memory-first phase, and decisions that nothing was chosen by."""

from __future__ import annotations

import time
from functools import lru_cache

import torch

from studies.detail.plan import CHOOSING_SEED, FRAME_S, TESTED_SEED, DetailPlan, design_of, parts_of, recorded
from studies.grid import Figures, Run, Store
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.learning.build import Pairs, prepare, with_features
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.report.progress import Progress


def seeds_of(plan: DetailPlan) -> list[list[int]]:
    """Scenario seeds of the three splits."""
    recipe = plan.recipe
    counts = ((0, recipe.pairs), (CHOOSING_SEED, recipe.validation_pairs), (TESTED_SEED, plan.pairs))
    return [list(range(first, first + count)) for first, count in counts]


@lru_cache(maxsize=1)
def demonstrations(plan: DetailPlan, task: str, crop: tuple[float, float, float, float] | None) -> list[Pairs]:
    """Pairs of the three splits, rendered once."""
    config = recorded(crop)
    return [list(collect(task, seeds, config, plan.demos, frame_s=FRAME_S)) for seeds in seeds_of(plan)]


def measure(plan: DetailPlan, run: Run, store: Store) -> str:
    """Train a run and count its decisions, unless that is kept; returns a line about it."""
    found = store.get("decisions", {}, lambda: _measure(plan, run))
    return f"{found['right']} of {found['decisions']} right after {found['steps']} steps, {found['cpu_s']:.0f} s"


def _measure(plan: DetailPlan, run: Run) -> Figures:
    torch.set_num_threads(1)
    eyes, memory = parts_of(run.row)
    design, recipe = design_of(eyes, memory), plan.recipe_of(eyes)
    begun = time.process_time()
    data = prepare(design, *demonstrations(plan, run.task, eyes.crop))
    if eyes.kept:
        data = with_features(data, design, recipe.augmentation, plan.features)
    prepared = time.process_time()
    agent = new_agent(design, data, run.seed)
    log: list[Progress] = []
    model = learn_memory(agent, data.training, data.validation, recipe, run.seed, log.append).eval()
    learned = time.process_time()
    assert data.held_out is not None
    found, trained = branch_accuracy(model, data.held_out), log[-1].train_branch_accuracy
    assert found is not None
    assert trained is not None
    cache = data.training.features
    return {
        "right": found.right,
        "decisions": found.count,
        "training_branch_accuracy": trained.value,
        "steps": log[-1].step,
        "attempts": log[-1].attempt,
        "cpu_s": learned - prepared,
        "prepare_cpu_s": prepared - begun,
        "images_computed": 0 if cache is None else cache.computed,
    }
