"""MQAR: many pairs recalled by VLA, DeltaNet, linear and softmax attention, and the claims of VLA's paper measured."""

from __future__ import annotations

import os
import statistics
from concurrent.futures import Executor, ProcessPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any, NamedTuple

import torch
from rich.console import Console
from rich.table import Table

from studies.recall.tasks import mqar_study as study
from studies.recall.tasks.mqar_models import (
    Backbone,
    Delta,
    ExactVla,
    FixedVla,
    Linear,
    Mixer,
    PaperDelta,
    Softmax,
    Vla,
    WeakVla,
)
from studies.recall.tasks.mqar_training import SIZES, VALIDATION_SEED, MqarRecipe, accuracy, train
from trace_memory_ros.measure.statistics import bootstrap_interval

SEEDS = (42, 123, 999)
"""The paper's; further ones count up from the last."""
PAPER = {
    "vla": {"8": 1.0, "16": 1.0, "24": 1.0, "32": 0.62, "48": 0.04},
    "deltanet": {"8": 0.73, "16": 0.009, "24": 0.011, "48": 0.008},
    "linear_attention": {"16": 0.091, "24": 0.074, "48": 0.043},
    "softmax": {"24": 0.081},
}
"""What the paper prints: two layers of four heads of 32, one model per size."""


@dataclass(frozen=True)
class Cell:
    """One row of the table: a mechanism, the backbone around it, and how it differs from the rows above."""

    mixer: type[Mixer]
    backbone: Backbone = field(default_factory=Backbone)


MECHANISMS = {
    "vla": Cell(Vla),
    "deltanet": Cell(Delta),
    "linear_attention": Cell(Linear),
    "softmax": Cell(Softmax),
}
VARIANTS = {
    "vla, u over sqrt(d_h) (algorithm 1)": Cell(WeakVla),
    "vla, A fixed": Cell(FixedVla),
    "vla, exact write direction": Cell(ExactVla),
    "deltanet, the paper's equation 4": Cell(PaperDelta),
}
UNBOUND: dict[str, Cell] = {
    "softmax, one layer": Cell(Softmax, Backbone(shift=False)),
    "softmax, two layers": Cell(Softmax, Backbone(shift=False, layers=2)),
    "softmax, two layers, positions": Cell(Softmax, Backbone(shift=False, layers=2, positions=3 * max(SIZES) + 1)),
    "deltanet, the paper's equation 4, two layers": Cell(PaperDelta, Backbone(shift=False, layers=2)),
    "vla, two layers": Cell(Vla, Backbone(shift=False, layers=2)),
}
"""Without the previous-token mix: nothing but a mechanism's own sense of order can bind a value to its key."""


RATES = (1e-3, 3e-3, 1e-2)
"""Learning rates of which each mechanism gets its best, by the first seed on sequences of their own."""


class Run(NamedTuple):
    """One training and its scores by number of pairs."""

    accuracy: dict[int, float]
    validation: float
    parameters: int


def run(out_dir: Path, quick: bool, seeds: int) -> dict[str, Any]:
    """Train every cell, score it at each number of pairs, measure the propositions; `out_dir` gets a plot.

    Only the mechanisms are trained with every seed; variants and ablations with the first, at their mechanism's rate.
    """
    recipe = MqarRecipe(evaluation_batches=4 if quick else 15)
    chosen = [SEEDS[i] if i < len(SEEDS) else SEEDS[-1] + i for i in range(seeds)]
    figures: dict[str, Any] = {"recipe": {**asdict(recipe), "backbone": asdict(Backbone()), "seeds": chosen}}
    with ProcessPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        figures["learning_rate"], figures["accuracy"] = _train_all(pool, recipe, chosen, (1e-2,) if quick else RATES)
    figures["accuracy_paper"] = PAPER
    figures["state_norm_at_1000"] = study.state_norms(seeds)
    figures["step_jacobian"] = study.jacobian_norms()
    figures["recovery_error"] = study.recovery_errors()
    figures["float32"] = study.precision(5_000 if quick else 100_000)
    figures["latency_us_per_token"] = study.latency(5 if quick else 20)
    _print(figures["accuracy"])
    _plot(out_dir, figures["accuracy"]["mechanisms"])
    return figures


def _train_all(
    pool: Executor, recipe: MqarRecipe, seeds: list[int], rates: tuple[float, ...]
) -> tuple[dict[str, float], dict[str, Any]]:
    """Best learning rate by mechanism, and the scores of every cell by group."""
    first = {
        (name, rate): pool.submit(_one, name, cell, replace(recipe, learning_rate=rate), seeds[0])
        for name, cell in MECHANISMS.items()
        for rate in rates
    }
    best = {name: max(rates, key=lambda rate: first[name, rate].result().validation) for name in MECHANISMS}
    runs = {
        ("mechanisms", name): [
            first[name, best[name]],
            *(pool.submit(_one, name, cell, replace(recipe, learning_rate=best[name]), seed) for seed in seeds[1:]),
        ]
        for name, cell in MECHANISMS.items()
    }
    for group, cells in (("variants", VARIANTS), ("without_previous_token", UNBOUND)):
        for name, cell in cells.items():
            tuned = replace(recipe, learning_rate=best[name.split(",")[0]])
            runs[group, name] = [pool.submit(_one, name, cell, tuned, seeds[0])]
    scores: dict[str, Any] = {}
    for (group, name), trainings in runs.items():
        scores.setdefault(group, {})[name] = _summarise([training.result() for training in trainings])
    return best, scores


def _one(name: str, cell: Cell, recipe: MqarRecipe, seed: int) -> Run:
    torch.set_num_threads(1)  # a worker per core already
    model = train(cell.mixer, cell.backbone, recipe, seed)
    result = Run(
        accuracy(model, recipe),
        statistics.fmean(accuracy(model, replace(recipe, evaluation_batches=2), VALIDATION_SEED).values()),
        sum(parameter.numel() for parameter in model.parameters()),
    )
    shares = "  ".join(f"{pairs} pairs {share:.3f}" for pairs, share in result.accuracy.items())
    print(f"{name}, rate {recipe.learning_rate:g}, seed {seed}: {shares}", flush=True)
    return result


def _summarise(runs: list[Run]) -> dict[str, Any]:
    scores: dict[str, Any] = {"parameters": runs[0].parameters}
    for pairs in SIZES:
        shares = [run.accuracy[pairs] for run in runs]
        scores[str(pairs)] = {
            "mean": statistics.fmean(shares),
            "ci95": list(bootstrap_interval(shares)),
            "per_seed": shares,
        }
    return scores


def _print(groups: dict[str, Any]) -> None:
    table = Table("mechanism", *(f"n = {pairs}" for pairs in SIZES), title="MQAR: share of queries answered exactly")
    for rows in groups.values():
        for name, scores in rows.items():
            table.add_row(name, *(f"{scores[str(pairs)]['mean']:.3f}" for pairs in SIZES))
        table.add_section()
    Console().print(table)


def _plot(out_dir: Path, mechanisms: dict[str, Any]) -> None:
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    out_dir.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 4))
    for name, scores in mechanisms.items():
        axes.plot(SIZES, [scores[str(pairs)]["mean"] for pairs in SIZES], marker="o", label=name.replace("_", " "))
        if name in PAPER:
            known = {int(pairs): share for pairs, share in PAPER[name].items()}
            axes.plot(list(known), list(known.values()), ":", color=axes.lines[-1].get_color())
    axes.axvline(study.WIDTH, color="grey", linewidth=0.8)
    axes.set(xlabel="pairs n (grey: d_h; dotted: the paper)", ylabel="queries answered", ylim=(0, 1.02))
    axes.legend()
    figure.tight_layout()
    figure.savefig(out_dir / "mqar.png", dpi=120)
    plt.close(figure)
