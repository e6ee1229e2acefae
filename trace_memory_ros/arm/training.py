"""What `trace-memory train` does, step by step."""

from __future__ import annotations

import argparse
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from trace_memory_ros.arm.closed_loop import EpisodeOutcome, figures_of, held_out_scenarios, run_episodes
from trace_memory_ros.arm.demonstrations import collect_splits
from trace_memory_ros.arm.design import arm_defaults, checkpoint_name, design_of, of_memory
from trace_memory_ros.learning.build import Pairs, prepare, with_features
from trace_memory_ros.learning.decisions.candidates import Selection
from trace_memory_ros.learning.fit import check_start, claim_folder, fit_shown
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.report.console import bar, command, console, say
from trace_memory_ros.learning.report.page import write_page
from trace_memory_ros.learning.run_config import RunConfig, resolve
from trace_memory_ros.learning.selection import FOLDER, Planned, memory_file, select_memory
from trace_memory_ros.measure.summary import write_summary
from trace_memory_ros.observation.config import ObservationConfig


def train(args: argparse.Namespace, task: str, given: Mapping[str, Any]) -> dict[str, Any]:
    """Collect, train, save, check in closed loop; returns the figures written to the summary."""
    asked = resolve(arm_defaults(task, given), {**given, "task": task})
    # What is seen does not depend on the memory.
    seen = design_of(of_memory(asked, asked.memory.candidates[0])).observation
    check_start(asked)
    name = checkpoint_name(task, asked.memory.name, asked.policy.family)
    folder: Path = args.out or Path("out/train") / f"{name}_{asked.seed}"
    selected = None
    with args.group.first_before_others():
        if args.group.writes:
            claim_folder(folder, args.resume)
        pairs = _demonstrations(args, task, asked.recipe, seen)
        if asked.memory.chosen:
            selected = _select(args, pairs, asked, folder)
        config = asked if selected is None else of_memory(asked, selected.chosen.memory)
        design, recipe, data = _planned(args, pairs, config)
    learned = memory_file(folder / FOLDER, config.memory.name) if selected and selected.learned else None
    how: dict[str, Any] = dict(hardware=args.hardware, group=args.group, memory_file=learned)
    fitted = fit_shown(config, design, recipe, data, folder, args.resume, **how)
    if not args.group.writes:
        return {}
    figures = fitted.figures() | {"selection": None if selected is None else selected.to_dict()}
    figures["model_id"] = fitted.save(folder, task, figures, command=command())
    if args.closed_loop:
        figures["closed_loop"] = _closed_loop(folder, task, args.closed_loop)
    write_summary(folder, command(), figures)
    write_page(folder, f"{task}: {config.memory.name}, seed {config.seed}", figures)
    console.print(f"checkpoint, summary.json and training.html in {folder}, model {figures['model_id'][:12]}")
    return figures


def _select(args: argparse.Namespace, pairs: Sequence[Pairs], config: RunConfig, folder: Path) -> Selection:
    """Choose the memory by validation pairs; says what each candidate decided."""

    def planned(name: str) -> Planned:
        return _planned(args, pairs, of_memory(config, name))

    reuse, episodes = args.resume or not args.group.writes, [str(seed) for seed in config.recipe.all_seeds]
    return select_memory(config, {"episodes": episodes}, planned, say, folder / FOLDER, reuse, args.hardware)


def _planned(args: argparse.Namespace, pairs: Sequence[Pairs], config: RunConfig) -> Planned:
    """What the configuration asks for, and what it is trained on."""
    design, recipe = design_of(config), config.recipe
    data = prepare(design, *pairs)
    return Planned(design, recipe, with_features(data, design, recipe.augmentation, args.features))


def _demonstrations(args: argparse.Namespace, task: str, recipe: Recipe, seen: ObservationConfig) -> list[Pairs]:
    """Pairs of the training, validation and held-out splits."""
    with bar() as shown:
        row = shown.add_task("demonstrations (pairs)", total=len(recipe.all_seeds))
        pairs = []
        for pair in collect_splits(task, recipe, seen, args.demos, args.workers):
            pairs.append(pair)
            shown.advance(row)
    return recipe.by_split(pairs)


def _closed_loop(folder: Path, task: str, episodes: int) -> dict[str, Any]:
    with bar() as shown:
        row = shown.add_task("closed-loop episodes", total=episodes)

        def report(_: EpisodeOutcome) -> None:
            shown.advance(row)

        figures = figures_of(run_episodes(folder, task, held_out_scenarios(task, episodes), report))
    success, progress = figures["branch_success"], figures["progress"]
    console.print(f"closed loop: {success:.0%} of {episodes} took the right branch, mean progress {progress:.2f}")
    return figures
