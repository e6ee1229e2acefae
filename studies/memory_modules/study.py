"""All memory mechanisms under one ACT policy on the arm tasks: TRACE's table 2, with harder columns."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from studies.memory_modules import jobs
from studies.memory_modules.plan import (
    BASE_RECIPES,
    CONDITIONS,
    HANDOVER,
    JOINT,
    ROWS,
    TASKS,
    Plan,
    known_conditions,
    known_rows,
    quick_plan,
)
from studies.memory_modules.plots import write_plots
from studies.memory_modules.table import figures_of, show
from studies.memory_modules.training import train_base
from studies.options import names_of
from trace_memory_ros.measure.workers import do_all

SEEDS = 3
PAIRS = 9

console = Console()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, rows, seeds, workers."""
    parser.add_argument("--task", type=names_of(TASKS), default=TASKS, help="tasks, by comma (default: all)")
    parser.add_argument("--rows", type=names_of(ROWS), default=tuple(ROWS), help="rows, by comma (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"training seeds (default: {SEEDS})")
    parser.add_argument("--pairs", type=int, default=PAIRS, help="evaluation pairs per training seed (default: 9)")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--report", action="store_true", help="train and measure nothing, tabulate what is there")
    parser.add_argument("--demos", type=Path, default=Path("out/demonstrations"), help="demonstration cache")


def run(
    out_dir: Path,
    quick: bool,
    task: tuple[str, ...] = TASKS,
    rows: tuple[str, ...] = tuple(ROWS),
    seeds: int = SEEDS,
    pairs: int = PAIRS,
    workers: int = 2,
    report: bool = False,
    demos: Path = Path("out/demonstrations"),
) -> dict[str, Any]:
    """Train and measure what `out_dir` does not hold yet, and return the figures of all that it holds.

    report: train and measure nothing. Raises ValueError for a count below 1, RuntimeError when a base policy or a
    recording cannot be made.
    """
    for name, count in (("seeds", seeds), ("pairs", pairs), ("workers", workers)):
        if count < 1:
            raise ValueError(f"--{name} is {count}: give at least 1")
    known, unknown = known_rows(rows)
    if unknown:
        console.print(f"left out, since no such mechanism is registered: {', '.join(unknown)}")
    plan = Plan(
        tasks=task,
        rows=known,
        seeds=tuple(range(seeds)),
        pairs=pairs,
        conditions=known_conditions(CONDITIONS),
        recipes=JOINT,
        base_recipes=BASE_RECIPES,
        out_dir=out_dir,
        demos=demos,
        handover=HANDOVER,
    )
    plan = quick_plan(plan) if quick else plan
    if not report:
        prepare(plan, workers)
        # Decisions on recordings come first: closed loops take longest, and mostly repeat what was decided.
        for part in (jobs.train_and_listen, jobs.drive):
            for unfinished, reason in do_all(partial(part, plan), plan.runs(), workers, _say):
                _say(f"{unfinished}: {reason}")
    figures = figures_of(plan)
    show(figures, console)
    for path in write_plots(figures, out_dir):
        _say(f"plot in {path}")
    return figures


def prepare(plan: Plan, workers: int) -> None:
    """Base policies, then recordings; RuntimeError names what could not be made."""
    no_base = do_all(partial(train_base, plan), plan.tasks, workers, _say)
    if no_base:
        raise RuntimeError("; ".join(f"base policy of {task}: {reason}" for task, reason in no_base))
    not_recorded = do_all(partial(jobs.record, plan), plan.recordings(), workers, _say)
    if not_recorded:
        raise RuntimeError("; ".join(f"{what}: {reason}" for what, reason in not_recorded))


def _say(line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)
