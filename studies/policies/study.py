"""Policy families with and without memory on the arm tasks: TRACE's table 1, and diffusion's inference steps."""

from __future__ import annotations

import argparse
from functools import partial
from pathlib import Path
from typing import Any

from rich.console import Console

from studies.policies import jobs
from studies.policies.plan import (
    INFERENCE_STEPS,
    MEMORIES,
    POLICIES,
    RECIPES,
    TASKS,
    Plan,
    quick_plan,
)
from studies.policies.table import figures_of, show
from trace_memory_ros.arm.design import checkpoint_name
from trace_memory_ros.measure.workers import do_all
from trace_memory_ros.runtime.checkpoint import load

SEEDS = 3
PAIRS = 9
STEP_PAIRS = 10

console = Console()


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, families, seeds, workers."""
    parser.add_argument("--task", type=_names(TASKS), default=TASKS, help="tasks, by comma (default: all)")
    parser.add_argument("--policy", type=_names(POLICIES), default=POLICIES, help="families, by comma (default: all)")
    parser.add_argument("--seeds", type=int, default=SEEDS, help=f"training seeds (default: {SEEDS})")
    parser.add_argument("--pairs", type=int, default=PAIRS, help=f"evaluation pairs per seed (default: {PAIRS})")
    parser.add_argument("--step-pairs", type=int, default=STEP_PAIRS, help="pairs per number of inference steps")
    parser.add_argument("--workers", type=int, default=2, help="processes (default: 2)")
    parser.add_argument("--report", action="store_true", help="train and measure nothing, tabulate what is there")
    parser.add_argument("--bases", type=Path, default=Path("weights"), help="memoryless checkpoints to start from")
    parser.add_argument("--demos", type=Path, default=Path("out/demonstrations"), help="demonstration cache")


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
    demos: Path = Path("out/demonstrations"),
) -> dict[str, Any]:
    """Train and measure what `out_dir` does not hold yet, and return the figures of all that it holds.

    report: train and measure nothing. Raises ValueError for a count below 1 or a base policy that is missing.
    """
    for name, count in (("seeds", seeds), ("pairs", pairs), ("step-pairs", step_pairs), ("workers", workers)):
        if count < 1:
            raise ValueError(f"--{name} is {count}: give at least 1")
    plan = Plan(
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
        _do(partial(jobs.train_and_drive, plan), plan.runs(), workers)
        _do(partial(jobs.try_steps, plan), plan.step_trials(), workers)
    figures = figures_of(plan)
    show(figures, console)
    return figures


def check_bases(plan: Plan) -> None:
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


def _do(work: Any, todo: list[Any], workers: int) -> None:
    for unfinished, reason in do_all(work, todo, workers, _say):
        _say(f"{unfinished}: {reason}")


def _say(line: str) -> None:
    console.print(line, highlight=False, soft_wrap=True)


def _names(known: tuple[str, ...]) -> Any:
    def parse(text: str) -> tuple[str, ...]:
        names = tuple(part.strip() for part in text.split(","))
        if unknown := [name for name in names if name not in known]:
            raise argparse.ArgumentTypeError(f"{', '.join(unknown)}: choose from {', '.join(known)}")
        return names

    return parse
