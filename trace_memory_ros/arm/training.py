"""What `trace-memory train` does, step by step."""

from __future__ import annotations

import argparse
from dataclasses import replace
from pathlib import Path
from typing import Any

from trace_memory_ros.arm.closed_loop import EpisodeOutcome, figures_of, held_out_scenarios, run_episodes
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.arm.design import arm_design, arm_recipe, checkpoint_name
from trace_memory_ros.learning.build import Design, Pairs, prepare
from trace_memory_ros.learning.console import TrainingReport, bar, command, console
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.measure.summary import write_summary
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.window import PathWindow


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Collect, train, save, check in closed loop; returns the figures written to the summary."""
    folder: Path = args.out or Path("out/train") / f"{checkpoint_name(args.task, args.memory, args.policy)}_{args.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    recipe = _recipe(args)
    window = None if args.window is None else PathWindow(stretches=args.window)
    design = arm_design(args.memory, args.depth, window=window, policy=args.policy)
    data = prepare(design, *_demonstrations(args, recipe, design))
    start = load(args.policy_from) if args.policy_from else None
    save_to = folder / "training.safetensors"
    with TrainingReport(recipe.steps) as report:
        fitted = fit(design, data, recipe, args.seed, start=start, report=report, save_to=save_to, resume=args.resume)
    figures = fitted.figures()
    figures["model_id"] = fitted.save(folder, args.task, figures, command=command())
    if args.closed_loop:
        figures["closed_loop"] = _closed_loop(folder, args.task, args.closed_loop)
    write_summary(folder, command(), figures)
    console.print(f"checkpoint and summary.json in {folder}, model {figures['model_id'][:12]}")
    return figures


def _recipe(args: argparse.Namespace) -> Recipe:
    recipe = arm_recipe(args.task, args.policy)
    return replace(recipe, steps=args.steps or recipe.steps, pairs=args.pairs or recipe.pairs)


def _demonstrations(args: argparse.Namespace, recipe: Recipe, design: Design) -> tuple[Pairs, Pairs]:
    seeds, held = recipe.training_seeds, recipe.held_out_seeds
    with bar() as shown:
        task = shown.add_task("demonstrations (pairs)", total=len(seeds) + len(held))
        pairs = []
        for pair in collect(args.task, seeds + held, design.observation, args.demos, args.workers):
            pairs.append(pair)
            shown.advance(task)
    return pairs[: len(seeds)], pairs[len(seeds) :]


def _closed_loop(folder: Path, task: str, episodes: int) -> dict[str, Any]:
    with bar() as shown:
        row = shown.add_task("closed-loop episodes", total=episodes)

        def report(_: EpisodeOutcome) -> None:
            shown.advance(row)

        figures = figures_of(run_episodes(folder, task, held_out_scenarios(task, episodes), report))
    success, progress = figures["branch_success"], figures["progress"]
    console.print(f"closed loop: {success:.0%} of {episodes} took the right branch, mean progress {progress:.2f}")
    return figures
