"""From the stored parts of all runs of `bench policies` to figures and printed tables."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
from rich.table import Table

from studies.grid import Figures, Store, parts
from studies.policies.jobs import chunk_times_ms
from studies.policies.plan import PoliciesPlan
from studies.tables import success_of, table, with_interval
from trace_memory_ros.measure.statistics import percentiles, wilson_interval

RESAMPLES = 4_000
PAPER = {"act none": 25.5, "act trace": 69.23, "diffusion none": 25.0, "diffusion trace": 59.53}
"""Average stage progress (%) of TRACE's table 1: five tasks on a real robot, by the same score."""


def figures_of(plan: PoliciesPlan) -> dict[str, Any]:
    """Figures of every task, family and memory that has results, of what has failed, and of inference steps."""
    tasks = {task: {row: _cell(plan, task, row) for row in plan.rows} for task in plan.tasks}
    return {
        "seeds": len(plan.seeds),
        "episodes_per_seed": 2 * plan.pairs,
        "recipes": {p: {t: plan.recipes[p][t].to_dict() for t in plan.tasks} for p in plan.policies},
        "tasks": tasks,
        "average": {row: _average(plan, row) for row in plan.rows},
        "paper_average_progress": {row: PAPER[row] for row in plan.rows if row in PAPER},
        "inference_steps": {task: _steps(plan, task) for task in plan.tasks if plan.step_trials()},
        "missing": plan.missing(tasks),
    }


def _cell(plan: PoliciesPlan, task: str, row: str) -> dict[str, Any]:
    stores = plan.stores(task, row)
    driven = parts(stores, "closed_loop")
    figures: dict[str, Any] = {"runs": len(driven)}
    if failures := plan.failures(task, row):
        figures["failed"] = failures
    if not driven:
        return figures
    trained = parts(stores, "training")
    first = next(store.folder for store in stores if store.read("training") is not None)
    return figures | {
        "branch_success": success_of(driven),
        "progress": progress_of([driven]),
        "held_out_branch_accuracy": [t["held_out_branch_accuracy"] for t in trained],
        "parameters": trained[0]["parameters"],
        "adapter_parameters": trained[0]["adapter_parameters"],
        "chunk_cpu_ms": chunk_times_ms(first, task, [None])[None],
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


def _average(plan: PoliciesPlan, row: str) -> dict[str, Any]:
    """Over tasks; empty where one has no results."""
    driven = [parts(plan.stores(task, row), "closed_loop") for task in plan.tasks]
    if not all(driven):
        return {}
    return {
        "progress": progress_of(driven),
        "branch_success": float(np.mean([found["success"] for d in driven if (found := success_of(d))])),
    }


def _steps(plan: PoliciesPlan, task: str) -> dict[str, Any]:
    """By number of inference steps: success, progress and the CPU time of a chunk."""
    folder = plan.run_folder(plan.stepped(task))
    trials = {n: found for n in plan.inference_steps if (found := Store(folder).read(f"steps_{n}")) is not None}
    if not trials:
        return {}
    times = chunk_times_ms(folder, task, list(trials))
    return {str(n): _trial(found["episodes"]) | {"chunk_cpu_ms": times[n]} for n, found in trials.items()}


def _trial(episodes: Sequence[Figures]) -> dict[str, Any]:
    won, count = sum(e["success"] for e in episodes), len(episodes)
    return {
        "episodes": count,
        "branch_success": won / count,
        "ci95": list(wilson_interval(won, count)),
        "progress": 100 * sum(e["progress"] for e in episodes) / count,
    }


def tables(figures: dict[str, Any]) -> Iterator[Table | str]:
    """Progress and success by row, then by number of inference steps."""
    title = "stage progress in %, mean ± SE, and branch success with its 95 % interval"
    columns = ("policy and memory", *figures["tasks"], "average", "chunk CPU ms")
    yield table(title, columns, ((row, *_cells(figures, row)) for row in figures["average"]))
    columns = ("inference steps", "branch success", "progress %", "chunk CPU ms")
    for task, trials in figures["inference_steps"].items():
        rows = (
            (n, with_interval(t, "branch_success"), f"{t['progress']:.0f}", f"{t['chunk_cpu_ms']['median']:.1f}")
            for n, t in trials.items()
        )
        yield table(f"{task}: diffusion", columns, rows)
    if figures["missing"]:
        yield f"without all their runs: {', '.join(figures['missing'])}"


def _cells(figures: dict[str, Any], row: str) -> Iterator[str]:
    cells = [rows[row] for rows in figures["tasks"].values()]
    for cell in cells:
        if not cell["runs"]:
            yield ""
            continue
        progress = cell["progress"]
        yield f"{progress['mean']:.1f} ± {progress['se']:.1f}\n{with_interval(cell['branch_success'])}"
    average = figures["average"][row]
    yield f"{average['progress']['mean']:.1f} ± {average['progress']['se']:.1f}" if average else ""
    yield " / ".join(f"{cell['chunk_cpu_ms']['median']:.1f}" for cell in cells if "chunk_cpu_ms" in cell)
