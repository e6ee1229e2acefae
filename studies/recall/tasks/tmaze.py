"""Passive T-maze: trained on corridors of 30 steps, asked at the end of corridors of up to a million."""

from __future__ import annotations

import os
import re
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from studies.grid import Store
from studies.recall.learning.tmaze import Choice, MazeModel, path_size, walk
from studies.recall.learning.trainer import RecallRecipe, train
from studies.recall.streams.tmaze import TMaze
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims

SEGMENT, SEGMENTS = 10, 3
TASK = TMaze(longest=SEGMENT * SEGMENTS)
LENGTHS = (30, 100, 1_000, 9_600, 100_000, 1_000_000)
QUICK_LONGEST = 9_600
PHASES = SEGMENT
"""Corridors per length: it and the ones up to nine steps shorter, so that every place in a segment is met."""
WIDTH = 32
BATCH = 32


@dataclass(frozen=True)
class Contestant:
    """A memory with its options, where its signatures come from, its training, and how far it is worth walking."""

    memory: str
    options: dict[str, Any] = field(default_factory=dict)
    slots: int = 2
    path: str = "observation"
    steps: int = 200
    learning_rate: float = 3e-3
    longest: int = LENGTHS[-1]

    @property
    def recipe(self) -> RecallRecipe:
        """Of its training."""
        return RecallRecipe(self.steps, BATCH, self.learning_rate)


def _elmur(slots: int = 2, longest: int = 9_600, **options: Any) -> Contestant:
    return Contestant("elmur", {"segment": SEGMENT, **options}, slots, learning_rate=1e-3, longest=longest)


_NORMED = {"read_norm": True, "address_norm": True}
CONTESTANTS = {
    "elmur": _elmur(longest=LENGTHS[-1]),
    "gru": Contestant("gru"),
    "prism, window 30": Contestant("prism", {"window": 30}, longest=1_000),
    "transformer, window 30": Contestant("transformer", {"window": 30, "layers": 2}, longest=1_000),
    "trace, path of what is seen": Contestant("trace", _NORMED, slots=4, longest=100_000),
    "trace, path of progress": Contestant(
        "trace", _NORMED, slots=4, path="progress", steps=500, learning_rate=1e-3, longest=100_000
    ),
    "elmur, 1 slot": _elmur(slots=1),
    "elmur, 4 slots": _elmur(slots=4),
    "elmur, paper's stop-gradient": _elmur(gradient_segments=1),
}


def run(out_dir: Path, quick: bool, seeds: int) -> dict[str, Any]:
    """Train every contestant that is registered `seeds` times and walk it down corridors of all lengths, both goals."""
    longest = QUICK_LONGEST if quick else LENGTHS[-1]
    seeds = 1 if quick else seeds
    names = [name for name, contestant in CONTESTANTS.items() if contestant.memory in registry.names()]
    jobs = [(out_dir, name, seed, min(longest, CONTESTANTS[name].longest)) for name in names for seed in range(seeds)]
    walks: dict[str, list[Walk]] = {name: [] for name in names}
    workers = min(len(jobs), len(os.sched_getaffinity(0)))
    with ProcessPoolExecutor(workers, get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        for (_, name, seed, _), found in zip(jobs, pool.map(carry_out, *zip(*jobs, strict=True)), strict=True):
            walks[name].append(found)
            print(f"{name}, seed {seed}: {_line(found)}", flush=True)
    results = {name: _summary(CONTESTANTS[name], found) for name, found in walks.items()}
    show(results, seeds)
    return {
        "trained_on_steps": TASK.longest,
        "batch": BATCH,
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


class Walk(NamedTuple):
    """What one training came to: success on its last batch, choices by corridor, CPU seconds of the walk."""

    trained: float
    choices: list[Choice]
    seconds: float


def carry_out(out_dir: Path, name: str, seed: int, longest: int) -> Walk:
    """`train_and_walk`, or what an earlier run with the same settings left in `out_dir`."""
    settings = {**asdict(CONTESTANTS[name]), "longest": longest, "trained_on_steps": TASK.longest, "phases": PHASES}
    part = f"{re.sub('[^a-z0-9]+', '_', name)}_{seed}"
    kept = Store(out_dir / "walks").get(part, settings, lambda: train_and_walk(name, seed, longest)._asdict())
    choices = [Choice(steps, tuple(right), tuple(margin)) for steps, right, margin in kept["choices"]]
    return Walk(kept["trained"], choices, kept["seconds"])


def train_and_walk(name: str, seed: int, longest: int) -> Walk:
    """One training of one contestant, and its choices up to `longest`."""
    model = build(CONTESTANTS[name], seed)
    success = train(model, TASK, CONTESTANTS[name].recipe, seed).progress[-1].success
    started = time.process_time()
    asked = [length - phase for length in LENGTHS if length <= longest for phase in range(PHASES)]
    choices = walk(model.eval(), asked)
    return Walk(success, choices, time.process_time() - started)


def _summary(contestant: Contestant, walks: list[Walk]) -> dict[str, Any]:
    memory = build(contestant, 0).memory
    steps = max(choice.steps for choice in walks[0].choices)
    table = {n: _figures([_at(found.choices, n) for found in walks]) for n in LENGTHS if n <= steps}
    failed = [n for n, figures in table.items() if figures["success"] < 1.0]
    return {
        "memory": contestant.memory,
        "options": contestant.options,
        "slots": contestant.slots,
        "path": contestant.path if memory.uses_signature else None,
        "training_steps": contestant.steps,
        "learning_rate": contestant.learning_rate,
        "parameters": sum(p.numel() for p in memory.parameters()),
        "state_bytes": memory.state_bytes,
        "training_success": [found.trained for found in walks],
        "steps_walked": steps,
        "cpu_us_per_step": 1e6 * sum(found.seconds for found in walks) / (len(walks) * steps),
        "perfect_up_to": max((n for n in table if not failed or n < failed[0]), default=0),
        "lengths": {str(n): figures for n, figures in table.items()},
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


def _line(found: Walk) -> str:
    shares = {n: sum(sum(c.right) for c in _at(found.choices, n)) for n in LENGTHS if n <= found.choices[-1].steps}
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
