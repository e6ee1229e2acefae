"""The eight variants of the AURA paper as registered memories; training and measuring them, a process per core."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from concurrent.futures import Executor, Future, ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from multiprocessing import get_context
from pathlib import Path
from typing import Any, NamedTuple

import torch

from studies.recall.learning.measure import Measured, held_out, measure
from studies.recall.learning.model import SymbolModel
from studies.recall.learning.trainer import RecallRecipe, Trained, train
from studies.recall.streams.stream import SymbolTask
from studies.store import Store
from trace_memory_ros.measure.statistics import t_interval
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims

WIDTH = 64
CONTROL_HZ = 20.0
GATED = "aura"
DENSE = "write_every_step"
# The head reads the vector, whatever the tokens are; `offer: rows` is what the kept figures were made with.
# Open until the task is learned, and then pressed hard; docs/explanation/recall.md says what else was tried.
GATE_OPTIONS = {"offer": "rows", "write_weight": 10.0, "ramp_from": 0.4, "ramp": 0.8}
# Of the blind schedules: the most that five times fewer writes allows, whatever AURA writes.
CONTROL_RATE = 0.2
# Encoder units that make up for the gate's 6,337 parameters.
_MATCHED_HIDDEN = WIDTH + 49


@dataclass(frozen=True)
class Variant:
    """A memory with its options. length: of its training, in recipes. read_first: as `SymbolModel` explains."""

    memory: str
    options: dict[str, Any] = field(default_factory=dict)
    length: float = 1.0
    read_first: bool = True


VARIANTS = {
    GATED: Variant("aura", GATE_OPTIONS),
    DENSE: Variant("aura", {"offer": "rows", "gate": "always"}),
    "fixed_size_state": Variant("aura", {"offer": "rows", "gate": "always", "encoder_hidden": _MATCHED_HIDDEN}),
    # The draw of seed 4 writes 0.21 and 0.23 of the first 128 and 96 steps; that of seed 0 only 0.14.
    "random_write": Variant("aura", {"offer": "rows", "gate": "random", "rho": CONTROL_RATE, "schedule_seed": 4}),
    "periodic_write": Variant("aura", {"offer": "rows", "gate": "periodic", "rho": CONTROL_RATE}),
    "learned_token_gate": Variant("aura", {"gate_signal": "token", **GATE_OPTIONS}),
    "full_recurrence": Variant("gru", length=3.0, read_first=False),
    "no_memory": Variant("none", length=0.25, read_first=False),
}


class Cell(NamedTuple):
    """A trained model with what was measured on it."""

    model: SymbolModel
    trained: Trained
    measured: Measured


@dataclass(frozen=True)
class Job:
    """One training: `extra` adds figures of the trained cell; those of seeds from `extra_seeds` on go without."""

    name: str
    memory: str
    options: dict[str, Any]
    task: SymbolTask
    recipe: RecallRecipe
    seed: int
    streams: int
    extra: Callable[[Cell], dict[str, Any]] | None = None
    extra_seeds: int = 1_000_000
    read_first: bool = False

    @property
    def key(self) -> str:
        """Tells jobs apart that may find something else."""
        wants = "" if self.extra is None else f"{self.extra} {self.extra_seeds}".split(" at 0x")[0]
        order = ["read first"] * self.read_first
        parts = (
            *(self.name, self.memory, sorted(self.options.items())),
            *(self.task, self.recipe, self.streams, wants, *order),
        )
        return f"{hashlib.sha256(repr(parts).encode()).hexdigest()[:12]}-{self.seed}"


class Outcome(NamedTuple):
    """What one job found; shares by kind of step. curve: training step, success, write rate."""

    success: float
    write_rate: float
    written_by_kind: dict[str, float]
    gate_by_kind: dict[str, float]
    parameters: int
    state_bytes: int
    curve: list[list[float]]
    cpu_seconds: float
    extra: dict[str, Any]


@contextmanager
def workers() -> Iterator[Executor]:
    """A process per core that may be used."""
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
        yield pool


def submit(pool: Executor, job: Job, seeds: int, store: Path) -> list[Future[Outcome]]:
    """The job with seeds 0, 1, ..., instead of its own."""
    return [pool.submit(find, replace(job, seed=seed), store) for seed in range(seeds)]


def find(job: Job, store: Path) -> Outcome:
    """What an earlier run left in the folder `store`, else `train_one`, left there; prints a line."""
    outcome = Outcome(**Store(store).get(job.key, {}, lambda: train_one(job)._asdict()))
    print(
        f"{job.name}, seed {job.seed}: success {outcome.success:.4f}, writes {outcome.write_rate:.4f} of steps "
        f"({job.recipe.steps} training steps, {outcome.cpu_seconds:.0f} s of CPU)",
        flush=True,
    )
    return outcome


def train_one(job: Job) -> Outcome:
    """Train, and measure on held-out streams."""
    torch.set_num_threads(1)
    started = time.process_time()
    torch.manual_seed(job.seed)
    memory = registry.build(job.memory, MemoryDims(WIDTH, 0, WIDTH, 1), job.options)
    model = SymbolModel(job.task.fields, job.task.classes, memory, job.read_first)
    trained = train(model, job.task, job.recipe, job.seed, report_every=25)
    measured = measure(model, held_out(job.task, job.seed, job.streams))
    seconds = time.process_time() - started
    extra = job.extra(Cell(model, trained, measured)) if job.extra and job.seed < job.extra_seeds else {}
    return Outcome(
        measured.success,
        measured.write_rate,
        measured.by_kind(measured.wrote, job.task.kinds),
        measured.by_kind(measured.gate, job.task.kinds),
        trained.parameters,
        memory.state_bytes,
        [[p.step, round(p.success, 4), round(p.write_rate, 4)] for p in trained.progress],
        seconds,
        extra,
    )


def figures_of(job: Job, outcomes: list[Outcome]) -> dict[str, Any]:
    """What a summary holds of one variant; one outcome per seed."""
    rate = spread([outcome.write_rate for outcome in outcomes])
    return {
        "memory": job.memory,
        "options": job.options,
        "read_first": job.read_first,
        "training_steps": job.recipe.steps,
        "parameters": outcomes[0].parameters,
        "state_bytes": outcomes[0].state_bytes,
        "success": spread([outcome.success for outcome in outcomes]),
        "write_rate": rate,
        "writes_per_second": CONTROL_HZ * rate["mean"],
        "fewer_writes": 1 / rate["mean"] if rate["mean"] else None,
        "written_by_kind": _mean_by_kind([outcome.written_by_kind for outcome in outcomes]),
        "gate_by_kind": _mean_by_kind([outcome.gate_by_kind for outcome in outcomes]),
        "learning_curve": outcomes[0].curve,
        "cpu_seconds": _mean([outcome.cpu_seconds for outcome in outcomes]),
    }


def spread(values: list[float]) -> dict[str, Any]:
    """Mean over seeds, its 95 % Student interval (None for one seed), and every seed."""
    return {"mean": _mean(values), "ci95": list(t_interval(values)) if len(values) > 1 else None, "seeds": values}


def _mean(values: list[float]) -> float:
    return sum(values) / len(values)


def _mean_by_kind(shares: list[dict[str, float]]) -> dict[str, float]:
    return {kind: _mean([share[kind] for share in shares]) for kind in shares[0]}
