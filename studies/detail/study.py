"""Branch accuracy where the cue is a fortieth of the image, or one of five small shapes: sizes of images and eyes."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

from rich.table import Table

from studies import options
from studies.detail.plan import (
    EYES,
    FRAME_S,
    IMAGE_PX,
    MEMORIES,
    RECIPE,
    STRENGTHS,
    TASKS,
    TESTED,
    DetailPlan,
    parts_of,
    quick_plan,
    rows,
)
from studies.detail.training import measure, seeds_of
from studies.grid import Figures, do, parts
from studies.tables import table, with_interval
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.measure.statistics import wilson_interval

__all__ = ["add_options", "run", "tables"]

SEEDS = 3
EYES_NAMES = tuple(one.name for one in EYES.values())


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, memories, eyes, the features' cache, and those of a grid."""
    options.add_names(parser, "--task", TASKS, "tasks")
    options.add_names(parser, "--memory", MEMORIES, "memories")
    options.add_names(parser, "--eyes", EYES_NAMES, "eyes")
    options.add_grid(parser, workers=1, seeds=SEEDS)
    parser.add_argument("--features", type=Path, default=Path("out/features"), help="kept features (out/features)")


def run(
    out_dir: Path,
    quick: bool,
    task: tuple[str, ...] = TASKS,
    memory: tuple[str, ...] = MEMORIES,
    eyes: tuple[str, ...] = EYES_NAMES,
    seeds: int = SEEDS,
    workers: int = 1,
    report: bool = False,
    demos: Path = options.DEMOS,
    features: Path = Path("out/features"),
) -> Figures:
    """Train each row and count right decisions of episodes that nothing was chosen by; kept runs are not done again."""
    plan = DetailPlan(
        tasks=task,
        rows=tuple(row for row in rows() if _wanted(row, memory, eyes)),
        seeds=tuple(range(seeds)),
        pairs=TESTED,
        out_dir=out_dir,
        demos=demos,
        features=features,
        recipe=RECIPE,
    )
    plan = quick_plan(plan) if quick else plan
    if not report:
        do(partial(measure, plan), plan.runs(), plan.run_folder, workers)
    return figures_of(plan)


def _wanted(row: str, memories: tuple[str, ...], names: tuple[str, ...]) -> bool:
    eyes, memory = parts_of(row)
    return memory in memories and eyes.name in names


def figures_of(plan: DetailPlan) -> Figures:
    """Of every task and row the decisions of all seeds together and of each, and what the table was made with."""
    scenes = dict(zip(("training", "choosing", "tested"), map(len, seeds_of(plan)), strict=True))
    twins = {task: task_of(task).choices for task in plan.tasks}
    return {
        "scenes": scenes,
        "twins": twins,
        "image_px": IMAGE_PX,
        "frame_s": FRAME_S,
        "phase": "memory first",
        "chance": {task: 1 / count for task, count in twins.items()},
        "recipe": plan.recipe.to_dict(),
        "augmentation": {name: vars(strength) for name, strength in STRENGTHS.items()},
        "tasks": {task: {row: _cell(plan, task, row) for row in plan.rows} for task in plan.tasks},
    }


def _cell(plan: DetailPlan, task: str, row: str) -> dict[str, Any]:
    found = parts(plan.stores(task, row), "decisions")
    cell: dict[str, Any] = {"runs": len(found)}
    if failures := plan.failures(task, row):
        cell["failed"] = failures
    if not found:
        return cell
    right, decisions = (sum(seed[name] for seed in found) for name in ("right", "decisions"))
    return cell | {
        "right": right,
        "decisions": decisions,
        "branch_accuracy": right / decisions,
        # The same decisions for every seed, which makes nothing surer.
        "ci95": list(wilson_interval(right / len(found), decisions / len(found))),
        "seeds": found,
    }


def tables(figures: Figures) -> Iterator[Table | str]:
    """Branch accuracy by eyes and memory, and what a training took."""
    counts = figures["scenes"]
    chances = ", ".join(f"{task} {chance:.2g}" for task, chance in figures["chance"].items())
    yield (
        f"held-out decisions, chance {chances}; {counts['training']} training scenes with all their twins, "
        f"{counts['choosing']} for restarts, {counts['tested']} reported, the same for every seed; memory-first phase "
        "alone"
    )
    columns = ("eyes; memory", *figures["tasks"], "training accuracy", "steps", "CPU s")
    first = next(iter(figures["tasks"].values()))
    yield table("branch accuracy", columns, [(row, *_cells(figures, row)) for row in first if _done(figures, row)])


def _done(figures: Figures, row: str) -> bool:
    return any(rows[row]["runs"] for rows in figures["tasks"].values())


def _cells(figures: Figures, row: str) -> Iterator[str]:
    found = [rows[row] for rows in figures["tasks"].values()]
    for cell in found:
        counted = f", {cell['right']}/{cell['decisions']}" if cell["runs"] else ""
        yield (with_interval(cell, "branch_accuracy") if cell["runs"] else "") + counted
    seeds = [seed for cell in found for seed in cell.get("seeds", [])]
    for name, form in (("training_branch_accuracy", "{:.2f}"), ("steps", "{:.0f}"), ("cpu_s", "{:.0f}")):
        yield form.format(sum(seed[name] for seed in seeds) / len(seeds))
