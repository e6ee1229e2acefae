"""Trainings of `bench memory-modules`: the memoryless base policy of a task, and each row from it."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

from studies.grid import Run
from studies.memory_modules.plan import ModulesPlan
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.arm.design import arm_design
from trace_memory_ros.learning import build
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.batches import Data
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.runtime.checkpoint import WEIGHTS, load
from trace_memory_ros.runtime.window import PathWindow


def train_base(plan: ModulesPlan, task: str) -> str:
    """The task's memoryless policy, trained unless it is there; returns a line about it."""
    folder = plan.base_folder(task)
    if not (folder / WEIGHTS).exists():
        for number, recipe in enumerate(plan.base_recipes):
            last = number == len(plan.base_recipes) - 1
            start = _stage(folder, number - 1) if number else None
            target = folder if last else _stage(folder, number)
            _train(plan.design("none"), task, recipe, 0, start, plan.demos, target)
    return f"{task} base policy: model {load(folder).model_id[:12]}"


def train_row(plan: ModulesPlan, run: Run, folder: Path) -> dict[str, Any]:
    """Train a row's memory, then memory and policy together; the checkpoint goes to `folder`."""
    return _train(
        plan.design(run.row), run.task, plan.recipes[run.task], run.seed, plan.base_folder(run.task), plan.demos, folder
    )


def _stage(folder: Path, number: int) -> Path:
    return folder.with_name(f"{folder.name}-stage{number}")


def _train(
    design: Design, task: str, recipe: Recipe, seed: int, start: Path | None, demos: Path, folder: Path
) -> dict[str, Any]:
    data = prepared(task, design.depth, design.window, recipe, demos)
    fitted = fit(design, data, recipe, seed, start=None if start is None else load(start))
    agent = fitted.agent
    figures: dict[str, Any] = {
        **fitted.figures(),
        "memory_parameters": sum(p.numel() for p in agent.memory.parameters()),
        "state_bytes": agent.memory.state_bytes,
    }
    figures["model_id"] = fitted.save(folder, task, figures)
    return figures


@lru_cache(maxsize=2)
def _demonstrations(task: str, splits: Recipe, demos: Path) -> list[build.Pairs]:
    return splits.by_split(list(collect(task, splits.all_seeds, _data_design(0).observation, demos)))


def prepared(task: str, depth: int, window: PathWindow | None, recipe: Recipe, demos: Path) -> Data:
    """Batches of a task's demonstrations, by the seeds of a recipe; kept, since many runs need the same."""
    sizes = Recipe(recipe.pairs, recipe.held_out_pairs, recipe.first_held_out_seed, recipe.validation_pairs)
    return _prepared(task, depth, window, sizes, demos)


@lru_cache(maxsize=4)
def _prepared(task: str, depth: int, window: PathWindow | None, splits: Recipe, demos: Path) -> Data:
    return build.prepare(_data_design(depth, window), *_demonstrations(task, splits, demos))


def _data_design(depth: int, window: PathWindow | None = None) -> Design:
    """What the data depend on, which is alike for all mechanisms but for the signature's depth and window."""
    return replace(arm_design("none", depth), depth=depth, window=window)
