"""From the stored parts of all runs of `bench policies` to figures and printed tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from studies.memory_modules.table import success_of
from studies.policies.jobs import chunk_times_ms
from studies.policies.plan import Plan, Run
from studies.store import FAILURE, Figures, Store
from trace_memory_ros.measure.statistics import percentiles, wilson_interval

RESAMPLES = 4_000
PAPER = {
    "act": {"none": 25.5, "trace": 69.23},
    "diffusion": {"none": 25.0, "trace": 59.53},
}
"""Average stage progress (%) of TRACE's table 1: five tasks on a real robot, by the same score."""


def figures_of(plan: Plan) -> dict[str, Any]:
    """Figures of every task, family and memory that has results, of what has failed, and of inference steps."""
    tasks = {
        task: {_row(policy, memory): _cell(plan, task, policy, memory) for policy, memory in _rows(plan)}
        for task in plan.tasks
    }
    return {
        "seeds": len(plan.seeds),
        "episodes_per_seed": 2 * plan.pairs,
        "recipes": {p: {t: plan.recipes[p][t].to_dict() for t in plan.tasks} for p in plan.policies},
        "tasks": tasks,
        "average": {_row(policy, memory): _average(plan, policy, memory) for policy, memory in _rows(plan)},
        "paper_average_progress": {_row(p, m): PAPER[p][m] for p, m in _rows(plan) if m in PAPER.get(p, {})},
        "inference_steps": {task: _steps(plan, task) for task in plan.tasks if plan.step_trials()},
        "missing": [
            f"{task} {row}" for task, rows in tasks.items() for row, f in rows.items() if f["runs"] < len(plan.seeds)
        ],
    }


def _rows(plan: Plan) -> list[tuple[str, str]]:
    return [(policy, memory) for policy in plan.policies for memory in plan.memories]


def _row(policy: str, memory: str) -> str:
    return f"{policy} {memory}"


def _stores(plan: Plan, task: str, policy: str, memory: str) -> list[Store]:
    return [Store(plan.run_folder(Run(task, policy, memory, seed))) for seed in plan.seeds]


def _driven(plan: Plan, task: str, policy: str, memory: str) -> list[Figures]:
    found = [store.read("closed_loop") for store in _stores(plan, task, policy, memory)]
    return [figures for figures in found if figures is not None]


def _cell(plan: Plan, task: str, policy: str, memory: str) -> dict[str, Any]:
    stores = _stores(plan, task, policy, memory)
    driven = _driven(plan, task, policy, memory)
    figures: dict[str, Any] = {"runs": len(driven)}
    failures = {str(seed): f["error"] for seed, s in zip(plan.seeds, stores, strict=True) if (f := s.read(FAILURE))}
    if failures:
        figures["failed"] = failures
    if not driven:
        return figures
    trained = [found for store in stores if (found := store.read("training")) is not None]
    first = next(seed for seed, s in zip(plan.seeds, stores, strict=True) if s.read("training") is not None)
    return figures | {
        "branch_success": success_of(driven),
        "progress": progress_of([driven]),
        "held_out_branch_accuracy": [t["held_out_branch_accuracy"] for t in trained],
        "parameters": trained[0]["parameters"],
        "adapter_parameters": trained[0]["adapter_parameters"],
        "chunk_cpu_ms": chunk_times_ms(plan.run_folder(Run(task, policy, memory, first)), task, [None])[None],
        "ticks_per_chunk": trained[0]["execute"],
    }


def progress_of(tasks: Sequence[Sequence[Figures]]) -> dict[str, Any]:
    """Mean stage progress in % (TRACE eq. 10), every task weighing alike.

    tasks: the stored episodes of every training seed, by task. se: by bootstrap over the episodes of each task and
    seed; ci95: by bootstrap over seeds too.
    """
    random = np.random.default_rng(0)
    shares = [[np.array([e["progress"] for e in seed["episodes"]]) for seed in seeds] for seeds in tasks]
    mean = float(np.mean([np.mean([s.mean() for s in seeds]) for seeds in shares]))
    rollouts, both = [], []
    for _ in range(RESAMPLES):
        drawn = [[random.choice(s, len(s)).mean() for s in seeds] for seeds in shares]
        rollouts.append(np.mean([np.mean(seeds) for seeds in drawn]))
        both.append(np.mean([np.mean(random.choice(seeds, len(seeds))) for seeds in drawn]))
    return {
        "mean": 100 * mean,
        "se": 100 * float(np.std(rollouts)),
        "ci95": [100 * bound for bound in percentiles(both, (2.5, 97.5))],
        "episodes": sum(len(s) for seeds in shares for s in seeds),
    }


def _average(plan: Plan, policy: str, memory: str) -> dict[str, Any]:
    """Over tasks; empty where one has no results."""
    driven = [_driven(plan, task, policy, memory) for task in plan.tasks]
    if not all(driven):
        return {}
    return {
        "progress": progress_of(driven),
        "branch_success": float(np.mean([found["success"] for d in driven if (found := success_of(d))])),
    }


def _steps(plan: Plan, task: str) -> dict[str, Any]:
    """By number of inference steps: success, progress and the CPU time of a chunk."""
    folder = plan.run_folder(plan.stepped(task))
    parts = {n: found for n in plan.inference_steps if (found := Store(folder).read(f"steps_{n}")) is not None}
    if not parts:
        return {}
    times = chunk_times_ms(folder, task, list(parts))
    return {str(n): _trial(part["episodes"]) | {"chunk_cpu_ms": times[n]} for n, part in parts.items()}


def _trial(episodes: Sequence[Figures]) -> dict[str, Any]:
    won, count = sum(e["success"] for e in episodes), len(episodes)
    return {
        "episodes": count,
        "branch_success": won / count,
        "ci95": list(wilson_interval(won, count)),
        "progress": 100 * sum(e["progress"] for e in episodes) / count,
    }


def show(figures: dict[str, Any], console: Console) -> None:
    """Print the tables."""
    tasks = list(figures["tasks"])
    table = Table(title="stage progress in %, mean ± SE, and branch success with its 95 % interval")
    for column in ("policy and memory", *tasks, "average", "chunk CPU ms"):
        table.add_column(column)
    for row in figures["average"]:
        table.add_row(row, *_cells(figures, row))
    console.print(table)
    for task, trials in figures["inference_steps"].items():
        table = Table("inference steps", "branch success", "progress %", "chunk CPU ms", title=f"{task}: diffusion")
        for steps, found in trials.items():
            low, high = found["ci95"]
            success = f"{found['branch_success']:.2f} ({low:.2f}-{high:.2f})"
            table.add_row(steps, success, f"{found['progress']:.0f}", f"{found['chunk_cpu_ms']['median']:.1f}")
        console.print(table)
    if figures["missing"]:
        console.print(f"without all their runs: {', '.join(figures['missing'])}")


def _cells(figures: dict[str, Any], row: str) -> Iterator[str]:
    cells = [rows[row] for rows in figures["tasks"].values()]
    for cell in cells:
        if not cell["runs"]:
            yield ""
            continue
        progress, success = cell["progress"], cell["branch_success"]
        low, high = success["ci95"]
        yield f"{progress['mean']:.1f} ± {progress['se']:.1f}\n{success['success']:.2f} ({low:.2f}-{high:.2f})"
    average = figures["average"][row]
    yield f"{average['progress']['mean']:.1f} ± {average['progress']['se']:.1f}" if average else ""
    yield " / ".join(f"{cell['chunk_cpu_ms']['median']:.1f}" for cell in cells if "chunk_cpu_ms" in cell)
