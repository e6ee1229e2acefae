"""LeRobot's ACT on an arm task, alone and with a trained memory, frozen and not; with cameras it also drives."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from studies import options
from studies.grid import Figures, Store, say
from studies.lerobot import training as learning
from studies.lerobot.training import Remembered
from studies.tables import table, with_interval
from trace_memory_ros.arm.closed_loop import figures_of, held_out_scenarios, run_episodes
from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.arm.sim.names import ACTION_NAMES
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, chunk_error
from trace_memory_ros.learning.recipe import ReadShares, Recipe
from trace_memory_ros.policies.lerobot import family as lerobot_family
from trace_memory_ros.policies.lerobot import files as lerobot_files
from trace_memory_ros.policies.lerobot.chunks import LerobotChunks
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.runtime.checkpoint import Checkpoint, PolicyConfig, load, save

CHUNK = 20
EXECUTE = 8
"""Ticks of a chunk that are executed: chunks that are looked at more often correct more."""
SIZES: dict[str, Any] = dict(
    chunk_size=CHUNK,
    n_action_steps=EXECUTE,
    dim_model=64,
    n_heads=4,
    dim_feedforward=128,
    n_encoder_layers=2,
    use_vae=False,
    dropout=0.0,
    pretrained_backbone_weights=None,
)
RECIPE = replace(
    Recipe(), batch_pairs=2, reads=8, shares=ReadShares(near_branch=0.3, apart=0.2, pauses=0.1), learning_rate=5e-4
)
REPORT_EVERY = 25
CAMERAS, THUMBNAILS = "cameras", "thumbnails"


@dataclass(frozen=True)
class Training:
    """How a row is trained. after: the row whose LeRobot weights it starts from; None from scratch."""

    name: str
    steps: int
    after: str | None = None
    remembers: bool = False
    frozen: bool = False
    rate: float = 5e-4

    @property
    def settings(self) -> dict[str, Any]:
        """What its figures depend on."""
        return {**vars(self), "sizes": SIZES, "recipe": RECIPE.to_dict()}


def rows_of(steps: int) -> tuple[Training, ...]:
    """The rows, where LeRobot's policy is trained for `steps` before it is given a memory."""
    return (
        Training("act", steps),
        Training("act_frozen_with_memory", 300, after="act", remembers=True, frozen=True, rate=2e-3),
        Training("act_trained_with_memory", 150, after="act", remembers=True),
        Training("act_trained_longer", 150, after="act"),
    )


ROWS = {THUMBNAILS: rows_of(300), CAMERAS: rows_of(1200)}
"""With thumbnails no robot is driven, and the branch is learned long before the arm could move well."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Task, camera size, memory, seed, pairs."""
    parser.add_argument(
        "--eyes",
        default=CAMERAS,
        choices=(CAMERAS, THUMBNAILS),
        help="48 px through LeRobot's resnet18, or 16 px as its environment state (default: cameras)",
    )
    parser.add_argument("--task", default="origin", choices=("origin", "colour"), help="task (default: origin)")
    parser.add_argument("--memory", type=Path, help="checkpoint whose memory is adopted (default: weights/TASK_trace)")
    parser.add_argument("--seed", type=int, default=0, help="seed of initialisation and sampling")
    options.add_counts(parser, pairs=(10, "closed-loop pairs, with cameras"))
    options.add_demos(parser)


def run(
    out_dir: Path, quick: bool, task: str, eyes: str, memory: Path | None, demos: Path, seed: int, pairs: int
) -> dict[str, Any]:
    """Train every row, each as soon as the one it starts from is there; resumes row by row."""
    lerobot()
    remembered = _remembered(task, memory or Path("weights") / f"{task}_trace", demos, quick)
    store = Store(out_dir / "rows")
    figures = {}
    for row in ROWS[eyes]:
        steps = row.steps if not quick else 4
        settings = {**row.settings, "steps": steps, "task": task, "seed": seed, "eyes": eyes}
        job = partial(_train, replace(row, steps=steps), remembered, out_dir, seed, eyes == CAMERAS)
        figures[row.name] = store.get(row.name, {**settings, "memory": remembered.checkpoint.model_id}, job)
        if eyes == CAMERAS:
            scenes = {**settings, "pairs": 1 if quick else pairs}
            drive = partial(_drive, out_dir / row.name, remembered.checkpoint, task, scenes["pairs"])
            figures[row.name] |= store.get(f"{row.name}_driven", scenes, drive)
        say(f"{row.name}: {_line(figures[row.name])}")
    return {
        "task": task,
        "eyes": eyes,
        "lerobot": lerobot().__version__,
        "memory": str(remembered.checkpoint.folder),
        "seed": seed,
        "rows": figures,
    }


def _remembered(task: str, memory: Path, demos: Path, quick: bool) -> Remembered:
    checkpoint = load(memory)
    recipe = replace(RECIPE, pairs=4, held_out_pairs=2) if quick else RECIPE
    seeds = recipe.training_seeds + recipe.held_out_seeds
    pairs = list(collect(task, seeds, checkpoint.config.observation, demos))
    cut = len(recipe.training_seeds)
    return learning.remember(checkpoint, pairs[:cut], pairs[cut:], CHUNK, ACTION_NAMES)


def _train(row: Training, remembered: Remembered, out_dir: Path, seed: int, cameras: bool) -> dict[str, Any]:
    torch.manual_seed(seed)
    base = learning.build(remembered, "act", SIZES, cameras)
    if row.after:
        base.load_state_dict(lerobot_files.load(out_dir / row.after).policy.base.state_dict())
    agent = learning.agent_of(remembered, base, row.remembers, row.frozen)
    recipe = replace(RECIPE, steps=row.steps, learning_rate=row.rate)
    wall, cpu = time.monotonic(), time.process_time()

    def report(step: int, losses: dict[str, float]) -> None:
        say(f"{row.name} {step:4d}  loss {losses['lerobot']:.4f}")

    learning.train(agent, remembered.training, recipe, seed, report, REPORT_EVERY)
    spent = {"cpu_minutes": (time.process_time() - cpu) / 60, "wall_minutes": (time.monotonic() - wall) / 60}
    assert isinstance(agent.policy, LerobotChunks)
    lerobot_files.save(out_dir / row.name, agent.policy.checkpoint)
    return _figures(agent, remembered, row) | spent


@torch.no_grad()
def _figures(agent: Agent, remembered: Remembered, row: Training) -> dict[str, Any]:
    agent.eval()
    chunks = agent.policy
    assert isinstance(chunks, LerobotChunks)
    held_out = remembered.held_out
    train, held = (branch_accuracy(agent, b, pairs=held_out.data.pairs) for b in (remembered.training, held_out))
    assert train is not None and held is not None
    adapter = sum(p.numel() for p in chunks.policy.adapter.parameters()) if row.remembers else 0
    base = 0 if row.frozen else sum(p.numel() for p in chunks.policy.base.parameters())
    figures: dict[str, Any] = {
        "train_branch_accuracy": train.to_dict(),
        "held_out_branch_accuracy": held.to_dict(),
        "held_out_chunk_error": chunk_error(agent, held_out),
        "steps": row.steps,
        "trained_parameters": adapter + base,
    }
    if row.remembers:
        gates = chunks.policy.adapter.state_dict()["gate"]
        figures["gate"] = {"mean": float(gates.mean()), "least": float(gates.min()), "most": float(gates.max())}
    return figures


def _drive(folder: Path, memory: Checkpoint, task: str, pairs: int) -> dict[str, Any]:
    """Held-out episodes in closed loop, in one process, of the memory with the policy in `folder`."""
    tensors = {name: tensor for name, tensor in memory.tensors.items() if not name.startswith("policy.")}
    policy = PolicyConfig("lerobot", lerobot_family.options_of(folder))
    driven = folder / "checkpoint"
    save(driven, replace(memory.config, policy=policy), tensors)
    outcomes = run_episodes(driven, task, held_out_scenarios(task, 2 * pairs))
    figures = figures_of(outcomes)
    figures["branch_success_ci95"] = figures.pop("ci95")
    return {**figures, "undecided": sum(outcome.branch < 0 for outcome in outcomes)}


def tables(figures: Figures) -> Iterator[Table]:
    """Held-out decisions and closed loop, by row."""
    columns = ("row", "train", "held out", "chunk error", "closed loop", "progress", "trained numbers", "CPU minutes")
    title = f"LeRobot {figures['lerobot']} on {figures['task']}, {figures['eyes']}: share of right decisions"
    yield table(title, columns, ((name, *_cells(row)) for name, row in figures["rows"].items()))


def _cells(row: Figures) -> Iterator[str]:
    yield with_interval(row["train_branch_accuracy"], "value")
    yield with_interval(row["held_out_branch_accuracy"], "value")
    yield f"{row['held_out_chunk_error']:.4f}"
    yield f"{row['branch_success']:.2f}" if "branch_success" in row else ""
    yield f"{row['progress']:.2f}" if "progress" in row else ""
    yield f"{row['trained_parameters']:,}"
    yield f"{row['cpu_minutes']:.1f}"


def _line(figures: dict[str, Any]) -> str:
    driven = f"; closed loop {figures['branch_success']:.2f}" if "branch_success" in figures else ""
    train, held = (with_interval(figures[f"{split}_branch_accuracy"], "value") for split in ("train", "held_out"))
    return (
        f"branch accuracy train {train}, held out {held}; held-out chunk error {figures['held_out_chunk_error']:.4f}; "
        f"{figures['cpu_minutes']:.1f} CPU minutes{driven}"
    )
