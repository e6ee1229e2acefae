"""All memory mechanisms under one ACT policy on the arm tasks: TRACE's table 2, with harder columns."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path

from studies import options
from studies.grid import Figures, do, say
from studies.memory_modules import jobs
from studies.memory_modules.plan import (
    BASE_RECIPES,
    CONDITIONS,
    JOINT,
    ROWS,
    TASKS,
    ModulesPlan,
    known_conditions,
    known_rows,
    quick_plan,
)
from studies.memory_modules.plots import write_plots as plots
from studies.memory_modules.table import figures_of, tables
from studies.memory_modules.training import train_base
from trace_memory_ros.measure.workers import do_all

__all__ = ["add_options", "plots", "run", "tables"]

SEEDS, PAIRS = 3, 9


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, rows, pairs, and those of a grid."""
    options.add_names(parser, "--task", TASKS, "tasks")
    options.add_names(parser, "--rows", ROWS, "rows")
    options.add_counts(parser, pairs=(PAIRS, "evaluation pairs per training seed"))
    options.add_grid(parser, workers=2, seeds=SEEDS)


def run(
    out_dir: Path,
    quick: bool,
    task: tuple[str, ...] = TASKS,
    rows: tuple[str, ...] = tuple(ROWS),
    seeds: int = SEEDS,
    pairs: int = PAIRS,
    workers: int = 2,
    report: bool = False,
    demos: Path = options.DEMOS,
) -> Figures:
    """Train and measure what `out_dir` does not hold yet, and return the figures of all that it holds.

    report: train and measure nothing. Raises RuntimeError when a base policy or an expert's episode cannot be made.
    """
    known, unknown = known_rows(rows)
    if unknown:
        say(f"left out, since no such mechanism is registered: {', '.join(unknown)}")
    plan = ModulesPlan(
        tasks=task,
        rows=known,
        seeds=tuple(range(seeds)),
        pairs=pairs,
        conditions=known_conditions(CONDITIONS),
        recipes=JOINT,
        base_recipes=BASE_RECIPES,
        out_dir=out_dir,
        demos=demos,
    )
    plan = quick_plan(plan) if quick else plan
    if not report:
        prepare(plan, workers)
        # Open loop comes first: closed loops take longest, and mostly repeat what was decided.
        for part in (jobs.train_and_decide, jobs.drive):
            do(partial(part, plan), plan.runs(), plan.run_folder, workers)
    return figures_of(plan)


def prepare(plan: ModulesPlan, workers: int) -> None:
    """Base policies, then the expert's episodes; RuntimeError names what could not be made."""
    no_base = do_all(partial(train_base, plan), plan.tasks, workers, say)
    if no_base:
        raise RuntimeError("; ".join(f"base policy of {task}: {reason}" for task, reason in no_base))
    not_recorded = do_all(partial(jobs.record, plan), plan.to_record(), workers, say)
    if not_recorded:
        raise RuntimeError("; ".join(f"{what}: {reason}" for what, reason in not_recorded))
