"""Trainings of `bench memory-modules`: the memoryless base policy of a task, and each row from it."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import torch

from studies.grid import Run
from studies.memory_modules.plan import ModulesPlan
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.arm.design import arm_design
from trace_memory_ros.learning import build
from trace_memory_ros.learning.batches import BatchBuilder
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.progress import Progress
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.trainer import Trainer
from trace_memory_ros.runtime.checkpoint import WEIGHTS, load
from trace_memory_ros.runtime.window import PathWindow

REPORT_EVERY = 50


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
    training, held_out = prepared(task, design.depth, design.window, recipe.pairs, recipe.held_out_pairs, demos)
    torch.manual_seed(seed)
    agent = build.build_agent(design, training)
    if start is not None:
        build.adopt_policy(agent, load(start))
    log: list[Progress] = []
    begun = time.monotonic()
    if list(agent.memory.parameters()):
        learn_memory(agent, training, held_out, recipe, seed, log.append)
    memory_s = time.monotonic() - begun
    memory_steps, attempts = (log[-1].step, log[-1].attempt) if log else (0, 0)
    last = Trainer(agent, training, held_out, recipe, seed).run(log.append, REPORT_EVERY)
    figures: dict[str, Any] = {
        "train_branch_accuracy": last.train_branch_accuracy,
        "held_out_branch_accuracy": last.held_out_branch_accuracy,
        "memory_steps": memory_steps,
        "attempts": attempts,
        "memory_s": memory_s,
        "joint_s": time.monotonic() - begun - memory_s,
        "memory_parameters": sum(p.numel() for p in agent.memory.parameters()),
        "state_bytes": agent.memory.state_bytes,
    }
    provenance = {"seed": seed, "recipe": recipe.to_dict(), "figures": dict(figures)}
    figures["model_id"] = build.save_checkpoint(agent, design, training, task, provenance, folder)
    return figures


@lru_cache(maxsize=2)
def _demonstrations(task: str, pairs: int, held_out_pairs: int, demos: Path) -> tuple[build.Pairs, build.Pairs]:
    recipe = Recipe(pairs=pairs, held_out_pairs=held_out_pairs)
    found = list(collect(task, recipe.training_seeds + recipe.held_out_seeds, _data_design(0).observation, demos))
    return found[:pairs], found[pairs:]


@lru_cache(maxsize=4)
def prepared(
    task: str, depth: int, window: PathWindow | None, pairs: int, held_out_pairs: int, demos: Path
) -> tuple[BatchBuilder, BatchBuilder]:
    """Batches of a task's training and held-out demonstrations; kept, since many runs need the same."""
    training, held_out = _demonstrations(task, pairs, held_out_pairs, demos)
    return build.prepare(_data_design(depth, window), training, held_out)


def _data_design(depth: int, window: PathWindow | None = None) -> Design:
    """What the data depend on, which is alike for all mechanisms but for the signature's depth and window."""
    return replace(arm_design("none", depth), depth=depth, window=window)
