"""The two training phases, whatever the episodes come from."""

from __future__ import annotations

import time
from pathlib import Path
from typing import Any

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.batches import BatchBuilder
from trace_memory_ros.learning.console import bar, console, show
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.progress import Progress as Step
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.trainer import Trainer

REPORT_EVERY = 50


def run_phases(
    agent: Agent,
    training: BatchBuilder,
    held_out: BatchBuilder,
    recipe: Recipe,
    seed: int,
    save_to: Path,
    resume: bool,
) -> Step:
    """Memory first, then all together; the joint phase is saved to `save_to` as it goes, and resumed from there."""
    trainer = Trainer(agent, training, held_out, recipe, seed)
    if resume and save_to.exists():
        trainer.load(save_to)
        console.print(f"resumed at step {trainer.step} of {recipe.steps}")
    elif list(agent.memory.parameters()):
        learn_memory(agent, training, held_out, recipe, seed, show)
        trainer.save(save_to)
    return _optimise(trainer, recipe, save_to)


def figures_of(agent: Agent, held_out: BatchBuilder, last: Step, started: float) -> dict[str, Any]:
    """What a summary says of a training that began at `started` on the monotonic clock."""
    return {
        "train_branch_accuracy": last.train_branch_accuracy,
        "held_out_branch_accuracy": last.held_out_branch_accuracy,
        "held_out_episodes": len(held_out.data.episodes),
        "losses": last.losses,
        "parameters": {name: sum(p.numel() for p in m.parameters()) for name, m in agent.named_children()},
        "training_minutes": (time.monotonic() - started) / 60.0,
    }


def _optimise(trainer: Trainer, recipe: Recipe, save_to: Path) -> Step:
    with bar() as shown:
        task = shown.add_task("training (steps)", total=recipe.steps, completed=trainer.step)

        def report(step: Step) -> None:
            shown.update(task, completed=step.step)
            show(step)

        return trainer.run(report, REPORT_EVERY, save_to)
