"""What `trace-memory train` does, step by step."""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn

from trace_memory_ros.evaluation.closed_loop import EpisodeOutcome, figures_of, held_out_scenarios, run_episodes
from trace_memory_ros.evaluation.summary import write_summary
from trace_memory_ros.learning import build
from trace_memory_ros.learning.arm import arm_design
from trace_memory_ros.learning.demonstrations import collect
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.progress import Progress as Step
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.trainer import Trainer
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.window import PathWindow

REPORT_EVERY = 50

console = Console()


def train(args: argparse.Namespace) -> dict[str, Any]:
    """Collect, train, save, check in closed loop; returns the figures written to the summary."""
    started = time.monotonic()
    folder: Path = args.out or Path("out/train") / f"{args.task}_{args.memory}_{args.seed}"
    folder.mkdir(parents=True, exist_ok=True)
    recipe = _recipe(args)
    window = None if args.window is None else PathWindow(stretches=args.window)
    design = arm_design(args.memory, args.depth, window=window)
    training, held_out = _demonstrations(args, recipe, design)
    train_builder, held_builder = build.prepare(design, training, held_out)
    torch.manual_seed(args.seed)
    agent = build.build_agent(design, train_builder)
    if args.policy_from:
        build.adopt_policy(agent, load(args.policy_from))
    trainer = Trainer(agent, train_builder, held_builder, recipe, args.seed)
    resume = folder / "training.safetensors"
    if args.resume and resume.exists():
        trainer.load(resume)
        console.print(f"resumed at step {trainer.step} of {recipe.steps}")
    elif list(agent.memory.parameters()):
        learn_memory(agent, train_builder, held_builder, recipe, args.seed, _print)
        trainer.save(resume)
    last = _optimise(trainer, recipe, resume)
    figures: dict[str, Any] = {
        "train_branch_accuracy": last.train_branch_accuracy,
        "held_out_branch_accuracy": last.held_out_branch_accuracy,
        "held_out_episodes": len(held_builder.data.episodes),
        "losses": last.losses,
        "parameters": {name: sum(p.numel() for p in m.parameters()) for name, m in agent.named_children()},
        "training_minutes": (time.monotonic() - started) / 60.0,
    }
    command = _command()
    provenance = {"command": command, "seed": args.seed, "recipe": recipe.to_dict(), "figures": dict(figures)}
    figures["model_id"] = build.save_checkpoint(agent, design, train_builder, args.task, provenance, folder)
    if args.closed_loop:
        figures["closed_loop"] = _closed_loop(folder, args.task, args.closed_loop)
    write_summary(folder, command, figures)
    console.print(f"checkpoint and summary.json in {folder}, model {figures['model_id'][:12]}")
    return figures


def _recipe(args: argparse.Namespace) -> Recipe:
    recipe = Recipe()
    return replace(recipe, steps=args.steps or recipe.steps, pairs=args.pairs or recipe.pairs)


def _demonstrations(args: argparse.Namespace, recipe: Recipe, design: build.Design) -> tuple[build.Pairs, build.Pairs]:
    seeds, held = recipe.training_seeds, recipe.held_out_seeds
    with _bar() as bar:
        task = bar.add_task("demonstrations (pairs)", total=len(seeds) + len(held))
        pairs = []
        for pair in collect(args.task, seeds + held, design.observation, args.demos, args.workers):
            pairs.append(pair)
            bar.advance(task)
    return pairs[: len(seeds)], pairs[len(seeds) :]


def _optimise(trainer: Trainer, recipe: Recipe, resume: Path) -> Step:
    with _bar() as bar:
        task = bar.add_task("training (steps)", total=recipe.steps, completed=trainer.step)

        def report(step: Step) -> None:
            bar.update(task, completed=step.step)
            _print(step)

        return trainer.run(report, REPORT_EVERY, resume)


def _print(step: Step) -> None:
    losses = "  ".join(f"{name} {value:.4f}" for name, value in step.losses.items())
    console.print(
        f"{step.phase} {step.step:5d}  clock x{step.clock_factor:g}  branch accuracy: train "
        f"{step.train_branch_accuracy:.2f}, held out {step.held_out_branch_accuracy:.2f}  {losses}"
    )


def _closed_loop(folder: Path, task: str, episodes: int) -> dict[str, Any]:
    with _bar() as bar:
        row = bar.add_task("closed-loop episodes", total=episodes)

        def report(_: EpisodeOutcome) -> None:
            bar.advance(row)

        figures = figures_of(run_episodes(folder, task, held_out_scenarios(task, episodes), report))
    success, progress = figures["branch_success"], figures["progress"]
    console.print(f"closed loop: {success:.0%} of {episodes} took the right branch, mean progress {progress:.2f}")
    return figures


def _bar() -> Progress:
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn())
    return Progress(*columns, TimeElapsedColumn(), TimeRemainingColumn(), console=console)


def _command(argv: Sequence[str] | None = None) -> str:
    return " ".join(["trace-memory", *(argv if argv is not None else sys.argv[1:])])
