"""Gated long context: what PRISM's hierarchy saves at n ticks, and what its gate is worth among distractors.

Cost: `long_context_cost`. Quality: one hierarchy per gate learns the task `streams/long_context`, with equal
parameters (a gate that is simpler gets wider feed-forward layers), first on short streams, then on longer ones; it is
then asked in contexts up to eight times as long as any it was trained on, so with eight times the distractors.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from studies.grid import cores, measure_all
from studies.recall.streams.long_context import QUERY, LongContext
from studies.recall.streams.stream import SymbolStream
from studies.recall.tasks.long_context_cost import PAPER, CostSizes, compare, resident_growth
from studies.recall.tasks.long_context_models import Hierarchy, TickClassifier, parameter_count
from studies.tables import bootstrapped
from trace_memory_ros.learning.engine.optimise import clip_and_step
from trace_memory_ros.memory.prism.layers import GATES


@dataclass(frozen=True)
class Lesson:
    """Streams of `ticks`, `steps` batches of `batch` of them."""

    ticks: int
    steps: int
    batch: int


@dataclass(frozen=True)
class QualitySizes:
    """demonstrations: how many streams there are to train on, per stage (None: fresh ones for ever).

    contexts: lengths of the test streams; tests: how many of each. The window is the longest context.
    """

    stages: tuple[Lesson, ...] = (Lesson(12, 150, 64), Lesson(32, 80, 32), Lesson(64, 60, 16))
    contexts: tuple[int, ...] = (64, 128, 256, 512)
    tests: int = 64
    demonstrations: int | None = None
    width: int = 32
    heads: int = 4
    layers: int = 2
    learning_rate: float = 3e-3


QUICK_SIZES = QualitySizes(stages=(Lesson(12, 120, 32), Lesson(24, 30, 16)), contexts=(24, 64, 128), tests=32)
FEW_STREAMS = (80, 128)
"""To train on, over and over. With 50, as many demonstrations as the paper has, every gate memorised in a trial."""


def run(out_dir: Path, quick: bool, seeds: int) -> dict[str, Any]:
    """Measure both parts and return the figures; finished trainings are kept in `<out_dir>/cells`."""
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"paper": PAPER, "cost": cost(quick)}
    sizes = QUICK_SIZES if quick else QualitySizes()
    folder = out_dir / "cells"
    figures["quality"] = {"fresh_streams": quality(sizes, seeds, folder, cores())}
    for count in FEW_STREAMS:
        few = replace(sizes, demonstrations=count)
        figures["quality"][f"{count}_streams"] = quality(few, seeds, folder, cores())
    figures["longest_context"] = longest_context(sizes)
    return figures


def longest_context(sizes: QualitySizes) -> dict[str, float]:
    """Why recall falls beyond the trained length: one model there with as many distractors as it was trained on."""
    model, ticks = train("feature", 0, sizes), max(sizes.contexts)
    share = LongContext().distractors
    shares = {"usual": share, "as_many_as_trained_on": share * sizes.stages[-1].ticks / ticks, "none": 0.0}
    return {
        f"{name}_distractors": recall(model, LongContext(steps=ticks, distractors=part), 0, sizes)
        for name, part in shares.items()
    }


def cost(quick: bool) -> dict[str, Any]:
    """Training step, whole inference and streaming tick over context lengths; more blocks; more tokens per tick."""
    lengths, rounds = ((64, 128), 2) if quick else ((64, 128, 256, 512), 3)
    uses = ("training_step", "whole_inference", "streaming_tick")
    sizes = CostSizes(ticks=lengths[-1])
    models = sizes.both()
    figures: dict[str, Any] = {
        "parameters": {name: parameter_count(model) for name, model in models.items()},
        **{use: {f"n{n}": compare(use, replace(sizes, ticks=n), rounds) for n in lengths} for use in uses},
        "training_step_of_8_blocks": compare("training_step", replace(sizes, blocks=8), 1),
        "resident_mib": {
            f"{use}_{name}": resident_growth(use, name, sizes) / 2**20
            for use in ("training_step", "whole_inference")
            for name in models
        },
    }
    if not quick:
        # The paper's own count: 198 visual tokens from each of two cameras, one of state, one of the last action.
        figures["streaming_tick_of_398_tokens"] = compare("streaming_tick", replace(sizes, tokens=398), 3)
    return figures


def quality(sizes: QualitySizes, seeds: int, folder: Path, workers: int) -> dict[str, Any]:
    """Share of queries answered right by gate and context: mean over seeds, interval, and every seed."""
    jobs = {f"{gate}, seed {seed}": Examined(gate, seed, sizes) for seed in range(seeds) for gate in GATES}
    found = measure_all(examine, jobs, folder, workers, _words)
    results = {gate: [found[f"{gate}, seed {seed}"] for seed in range(seeds)] for gate in GATES}
    figures: dict[str, Any] = {"parameters": {gate: parameter_count(build(gate, sizes)) for gate in GATES}}
    contexts = [f"context_{ticks}" for ticks in sizes.contexts]
    for gate, rows in results.items():
        figures[gate] = {context: bootstrapped([row[context] for row in rows]) for context in contexts}
    for other in GATES[1:]:
        pairs = list(zip(results["feature"], results[other], strict=True))
        figures[f"feature_minus_{other}"] = {
            context: bootstrapped([a[context] - b[context] for a, b in pairs]) for context in contexts
        }
    return figures


class Examined(NamedTuple):
    """One training of a gate."""

    gate: str
    seed: int
    sizes: QualitySizes


def examine(job: Examined) -> dict[str, float]:
    """Train one model; what it recalls in every context."""
    model = train(*job)
    return {
        f"context_{ticks}": recall(model, LongContext(steps=ticks), job.seed, job.sizes) for ticks in job.sizes.contexts
    }


def _words(shares: dict[str, float]) -> str:
    return ", ".join(f"{context} {share:.2f}" for context, share in shares.items())


def build(gate: str, sizes: QualitySizes) -> TickClassifier:
    """A hierarchy whose gates are of one kind; what a gate's MLP would cost goes to the feed-forward layers."""
    task, width = LongContext(), sizes.width
    hidden = 2 * width if gate == "feature" else 3 * width
    history = Hierarchy(width, sizes.heads, sizes.layers, hidden, gate, max(sizes.contexts))
    return TickClassifier(task.fields, task.classes, width, history)


def train(gate: str, seed: int, sizes: QualitySizes) -> TickClassifier:
    """Cross-entropy at every tick, and once more at the queries, which are few; all gates see the same streams."""
    torch.manual_seed(seed)
    model, rng = build(gate, sizes), np.random.default_rng([seed, 0])
    total = sum(stage.steps for stage in sizes.stages)
    optimiser = torch.optim.AdamW(model.parameters(), lr=sizes.learning_rate, weight_decay=1e-2)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimiser, lambda step: min((step + 1) / 50, 1.0, 0.05 + 0.95 * (total - step) / (0.4 * total))
    )
    for stream in streams(sizes, rng):
        logits, answers = model(torch.from_numpy(stream.symbols)), torch.from_numpy(stream.answers)
        losses = functional.cross_entropy(logits.transpose(1, 2), answers, reduction="none")
        optimiser.zero_grad(set_to_none=True)
        (losses.mean() + losses[torch.from_numpy(stream.kind == QUERY)].mean()).backward()
        clip_and_step(optimiser, 1.0)
        schedule.step()
    return model


def streams(sizes: QualitySizes, rng: np.random.Generator) -> Iterator[SymbolStream]:
    """The batches of all stages."""
    for stage in sizes.stages:
        task, count = LongContext(steps=stage.ticks), sizes.demonstrations
        known = task.sample(rng, count) if count else None
        for _ in range(stage.steps):
            if known is None:
                yield task.sample(rng, stage.batch)
            else:
                symbols, answers, asked, kind = known
                row = rng.integers(0, len(symbols), stage.batch)
                yield SymbolStream(symbols[row], answers[row], asked[row], kind[row])


@torch.no_grad()
def recall(model: nn.Module, task: LongContext, seed: int, sizes: QualitySizes) -> float:
    """Share of the queries of fresh streams of `task` that are answered right."""
    stream = task.sample(np.random.default_rng([seed, 1, task.steps]), sizes.tests)
    parts = torch.from_numpy(stream.symbols).split(8)
    given: NDArray[np.int64] = torch.cat([model(part).argmax(dim=-1) for part in parts]).numpy()
    return float((given == stream.answers)[stream.kind == QUERY].mean())
