"""Policy families with and without memory on the arm tasks: TRACE's table 1, and diffusion's inference steps."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from studies import options
from studies.grid import Figures, do, say
from studies.policies import jobs
from studies.policies.plan import (
    INFERENCE_STEPS,
    MEMORIES,
    POLICIES,
    RECIPES,
    TASKS,
    PoliciesPlan,
    quick_plan,
)
from studies.policies.table import figures_of, tables
from trace_memory_ros.arm.design import checkpoint_name
from trace_memory_ros.measure.workers import do_all
from trace_memory_ros.runtime.checkpoint import load

__all__ = ["add_options", "run", "tables"]

SEEDS, PAIRS, STEP_PAIRS = 3, 9, 10


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, families, pairs, base policies, and those of a grid."""
    options.add_names(parser, "--task", TASKS, "tasks")
    options.add_names(parser, "--policy", POLICIES, "families")
    options.add_counts(
        parser,
        pairs=(PAIRS, "evaluation pairs per training seed"),
        step_pairs=(STEP_PAIRS, "pairs per number of inference steps"),
    )
    options.add_grid(parser, workers=2, seeds=SEEDS)
    parser.add_argument("--bases", type=Path, default=Path("weights"), help="memoryless checkpoints to start from")


def run(
    out_dir: Path,
    quick: bool,
    task: tuple[str, ...] = TASKS,
    policy: tuple[str, ...] = POLICIES,
    seeds: int = SEEDS,
    pairs: int = PAIRS,
    step_pairs: int = STEP_PAIRS,
    workers: int = 2,
    report: bool = False,
    bases: Path = Path("weights"),
    demos: Path = options.DEMOS,
) -> Figures:
    """Train and measure what `out_dir` does not hold yet, and return the figures of all that it holds.

    report: train and measure nothing. Raises ValueError for a base policy that is missing.
    """
    plan = PoliciesPlan(
        tasks=task,
        policies=policy,
        memories=MEMORIES,
        seeds=tuple(range(seeds)),
        pairs=pairs,
        recipes=RECIPES,
        inference_steps=INFERENCE_STEPS,
        step_pairs=step_pairs,
        out_dir=out_dir,
        bases=bases,
        demos=demos,
    )
    plan = quick_plan(plan) if quick else plan
    check_bases(plan)
    if not report:
        do(partial(jobs.train_and_drive, plan), plan.runs(), plan.run_folder, workers)
        for trial, reason in do_all(partial(jobs.try_steps, plan), plan.step_trials(), workers, say):
            say(f"{trial}: {reason}")
    return figures_of(plan)


def check_bases(plan: PoliciesPlan) -> None:
    """Raise ValueError with the command that trains a base policy that is missing or of another family."""
    for task in plan.tasks:
        for policy in plan.policies:
            folder = plan.base_folder(task, policy)
            remedy = f"train it: trace-memory train {task} --memory none --policy {policy} --out {folder}"
            if not folder.is_dir():
                raise ValueError(
                    f"the base policy {checkpoint_name(task, 'none', policy)} is not in {plan.bases}; {remedy}"
                )
            found = load(folder).policy.family
            if found != policy:
                raise ValueError(f"{folder} holds a policy of family {found!r}, not {policy!r}; {remedy}")
