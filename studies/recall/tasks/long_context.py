"""Gated long context: what PRISM's hierarchy saves at n ticks, and what its gate is worth among distractors.

Cost: `long_context_cost`. Quality: one hierarchy per gate learns the task `tasks/recall/long_context`, with equal
parameters (a gate that is simpler gets wider feed-forward layers), first on short streams, then on longer ones; it is
then asked in contexts up to eight times as long as any it was trained on, so with eight times the distractors.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import dataclass, replace
from itertools import repeat
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from torch.nn import functional

from studies.recall.streams.long_context import QUERY, LongContext
from studies.recall.streams.stream import SymbolStream
from studies.recall.tasks.long_context_cost import PAPER, CostSizes, compare, resident_growth
from studies.recall.tasks.long_context_models import Hierarchy, TickClassifier, parameter_count
from trace_memory_ros.measure.statistics import bootstrap_interval
from trace_memory_ros.memory.prism.layers import GATES


@dataclass(frozen=True)
class Stage:
    """Streams of `ticks`, `steps` batches of `batch` of them."""

    ticks: int
    steps: int
    batch: int


@dataclass(frozen=True)
class QualitySizes:
    """demonstrations: how many streams there are to train on, per stage (None: fresh ones for ever).

    contexts: lengths of the test streams; tests: how many of each. The window is the longest context.
    """

    stages: tuple[Stage, ...] = (Stage(12, 150, 64), Stage(32, 80, 32), Stage(64, 60, 16))
    contexts: tuple[int, ...] = (64, 128, 256, 512)
    tests: int = 64
    demonstrations: int | None = None
    width: int = 32
    heads: int = 4
    layers: int = 2
    learning_rate: float = 3e-3


QUICK_SIZES = QualitySizes(stages=(Stage(12, 120, 32), Stage(24, 30, 16)), contexts=(24, 64, 128), tests=32)
FEW_STREAMS = (80, 128)
"""To train on, over and over. With 50, as many demonstrations as the paper has, every gate memorised in a trial."""


def run(out_dir: Path, quick: bool, seeds: int) -> dict[str, Any]:
    """Measure both parts and return the figures; nothing is written to `out_dir`."""
    torch.set_num_threads(1)
    figures: dict[str, Any] = {"paper": PAPER, "cost": cost(quick)}
    sizes = QUICK_SIZES if quick else QualitySizes()
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn"), torch.set_num_threads, (1,)) as pool:
        figures["quality"] = {"fresh_streams": quality(sizes, seeds, pool)}
        for count in FEW_STREAMS:
            figures["quality"][f"{count}_streams"] = quality(replace(sizes, demonstrations=count), seeds, pool)
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


def quality(sizes: QualitySizes, seeds: int, pool: Executor) -> dict[str, Any]:
    """Share of queries answered right by gate and context: mean over seeds, interval, and every seed."""
    cells = [(gate, seed) for seed in range(seeds) for gate in GATES]
    results: dict[str, list[dict[int, float]]] = {gate: [] for gate in GATES}
    for (gate, _), shares in zip(cells, pool.map(examine, *zip(*cells, strict=True), repeat(sizes)), strict=True):
        results[gate].append(shares)
    figures: dict[str, Any] = {"parameters": {gate: parameter_count(build(gate, sizes)) for gate in GATES}}
    for gate, rows in results.items():
        figures[gate] = {f"context_{ticks}": _spread([row[ticks] for row in rows]) for ticks in sizes.contexts}
    for other in GATES[1:]:
        figures[f"feature_minus_{other}"] = {
            f"context_{ticks}": _spread(
                [a[ticks] - b[ticks] for a, b in zip(results["feature"], results[other], strict=True)]
            )
            for ticks in sizes.contexts
        }
    return figures


def examine(gate: str, seed: int, sizes: QualitySizes) -> dict[int, float]:
    """Train one model; what it recalls in every context."""
    model = train(gate, seed, sizes)
    return {ticks: recall(model, LongContext(steps=ticks), seed, sizes) for ticks in sizes.contexts}


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
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimiser.step()
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


def _spread(values: list[float]) -> dict[str, Any]:
    return {"mean": float(np.mean(values)), "ci95": list(bootstrap_interval(values)), "seeds": values}
