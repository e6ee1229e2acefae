"""Passive T-maze: trained on corridors of 30 steps, asked at the end of corridors of up to a million."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import torch

from trace_memory_ros.evaluation.statistics import wilson_interval
from trace_memory_ros.learning.recall.tmaze import Choice, MazeModel, path_size, walk
from trace_memory_ros.learning.recall.trainer import RecallRecipe, train
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.tasks.recall.tmaze import TMaze

SEGMENT, SEGMENTS = 10, 3
TASK = TMaze(longest=SEGMENT * SEGMENTS)
LENGTHS = (30, 100, 1_000, 9_600, 100_000, 1_000_000)
QUICK_LONGEST = 9_600
PHASES = SEGMENT
"""Corridors per length: it and the ones up to nine steps shorter, so that every place in a segment is met."""
WIDTH = 32


@dataclass(frozen=True)
class Contestant:
    """A memory with its options, where its signatures come from, and how far it is worth walking."""

    memory: str
    options: dict[str, Any] = field(default_factory=dict)
    slots: int = 2
    path: str = "observation"
    learning_rate: float = 3e-3
    longest: int = LENGTHS[-1]


def _elmur(slots: int = 2, longest: int = 9_600, **options: Any) -> Contestant:
    return Contestant("elmur", {"segment": SEGMENT, **options}, slots, learning_rate=1e-3, longest=longest)


_NORMED = {"read_norm": True, "address_norm": True}
CONTESTANTS = {
    "elmur": _elmur(longest=LENGTHS[-1]),
    "gru": Contestant("gru"),
    "prism, window 30": Contestant("prism", {"window": 30}, longest=1_000),
    "transformer, window 30": Contestant("transformer", {"window": 30, "layers": 2}, longest=1_000),
    "trace, path of what is seen": Contestant("trace", _NORMED, slots=4),
    "trace, path of progress": Contestant("trace", _NORMED, slots=4, path="progress", longest=100_000),
    "elmur, 1 slot": _elmur(slots=1),
    "elmur, 4 slots": _elmur(slots=4),
    "elmur, paper's stop-gradient": _elmur(gradient_segments=1),
}


def run(out_dir: Path, quick: bool, seeds: int) -> dict[str, Any]:
    """Train every contestant that is registered `seeds` times and walk it down corridors of all lengths, both goals."""
    recipe = RecallRecipe(steps=200, batch=32)
    longest = QUICK_LONGEST if quick else LENGTHS[-1]
    seeds = 1 if quick else seeds
    results = {}
    for name, contestant in CONTESTANTS.items():
        if contestant.memory in registry.names():
            results[name] = measure(name, contestant, recipe, seeds, min(longest, contestant.longest))
    show(results, seeds)
    return {
        "trained_on_steps": TASK.longest,
        "training": {"steps": recipe.steps, "batch": recipe.batch},
        "episodes_per_length_and_seed": 2 * PHASES,
        "seeds": seeds,
        "results": results,
        "elmur_right_at_every_length": results["elmur"]["perfect_up_to"] == longest,
    }


def build(contestant: Contestant, seed: int) -> MazeModel:
    """An untrained model."""
    torch.manual_seed(seed)
    uses_signature = registry.build(contestant.memory, MemoryDims(2, 1, 2, 1)).uses_signature
    size = path_size(contestant.path) if uses_signature else 0
    memory = registry.build(contestant.memory, MemoryDims(WIDTH, size, WIDTH, contestant.slots), contestant.options)
    return MazeModel(memory, TASK, contestant.path)


def measure(name: str, contestant: Contestant, recipe: RecallRecipe, seeds: int, longest: int) -> dict[str, Any]:
    """Figures of one contestant; prints a line per seed."""
    lengths = [length for length in LENGTHS if length <= longest]
    asked = [length - phase for length in lengths for phase in range(PHASES)]
    choices, trained, seconds = [], [], []
    for seed in range(seeds):
        model = build(contestant, seed)
        own = RecallRecipe(recipe.steps, recipe.batch, contestant.learning_rate)
        trained.append(train(model, TASK, own, seed).progress[-1].success)
        started = time.process_time()
        choices.append(walk(model.eval(), asked))
        seconds.append(time.process_time() - started)
        print(f"{name}, seed {seed}: {_line(choices[-1], lengths)}", flush=True)
    table = {str(length): _figures([_at(found, length) for found in choices]) for length in lengths}
    perfect = [length for length in lengths if table[str(length)]["success"] == 1.0]
    return {
        "memory": contestant.memory,
        "options": contestant.options,
        "slots": contestant.slots,
        "path": contestant.path if model.memory.uses_signature else None,
        "learning_rate": contestant.learning_rate,
        "parameters": sum(p.numel() for p in model.memory.parameters()),
        "state_bytes": model.memory.state_bytes,
        "training_success": trained,
        "steps_walked": max(asked),
        "cpu_us_per_step": 1e6 * sum(seconds) / (seeds * max(asked)),
        "perfect_up_to": max((n for i, n in enumerate(lengths) if lengths[: i + 1] == perfect[: i + 1]), default=0),
        "lengths": table,
    }


def _at(found: list[Choice], length: int) -> list[Choice]:
    return [choice for choice in found if length - PHASES < choice.steps <= length]


def _figures(by_seed: list[list[Choice]]) -> dict[str, Any]:
    """Shares of right choices. The interval is over seeds, since the episodes of one are all there are, and alike."""
    shares = [sum(sum(choice.right) for choice in found) / (2 * len(found)) for found in by_seed]
    perfect = sum(share == 1.0 for share in shares)
    return {
        "success": sum(shares) / len(shares),
        "by_seed": shares,
        "perfect_seeds": perfect,
        "perfect_seeds_ci95": list(wilson_interval(perfect, len(shares))),
        "least_margin": min(min(choice.margin) for found in by_seed for choice in found),
    }


def _line(found: list[Choice], lengths: list[int]) -> str:
    shares = {n: sum(sum(c.right) for c in _at(found, n)) for n in lengths}
    return ", ".join(f"{n:,} steps {right}/{2 * PHASES}" for n, right in shares.items())


def show(results: dict[str, Any], seeds: int) -> None:
    """Print success by corridor length."""
    from rich.console import Console
    from rich.table import Table

    table = Table(title=f"T-maze: right choices after a corridor, trained on {TASK.longest} steps, {seeds} seeds")
    for column in ("", *(f"{length:,}" for length in LENGTHS), "parameters", "state bytes"):
        table.add_column(column, justify="right" if column else "left")
    for name, result in results.items():
        cells = [result["lengths"].get(str(length)) for length in LENGTHS]
        shown = ["-" if cell is None else f"{100 * cell['success']:.0f} %" for cell in cells]
        table.add_row(name, *shown, f"{result['parameters']:,}", f"{result['state_bytes']:,}")
    Console(width=140).print(table)
