"""MQAR: many pairs recalled by VLA, DeltaNet, linear and softmax attention, and the claims of VLA's paper measured."""

from __future__ import annotations

import statistics
from collections.abc import Iterator
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from studies.grid import Figures, cores, measure_all
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
from studies.tables import bootstrapped, table

SEEDS = (42, 123, 999)
"""The paper's; further ones count up from the last."""
PAPER: dict[str, dict[str, dict[str, float]]] = {
    "table 11": {
        "vla": {"8": 0.997, "16": 0.990, "24": 0.994, "32": 0.623, "48": 0.044},
        "deltanet": {"8": 0.965, "16": 0.009, "24": 0.007, "32": 0.008, "48": 0.008},
        "linear_attention": {"8": 0.150, "16": 0.091, "24": 0.069, "32": 0.056, "48": 0.043},
        "softmax": {"8": 0.152, "16": 0.091, "24": 0.070, "32": 0.057, "48": 0.043},
    },
    "table 9": {
        "vla": {"24": 1.0},
        "deltanet": {"24": 0.011},
        "linear_attention": {"24": 0.074},
        "softmax": {"24": 0.081},
    },
    "section 6.4": {"vla": {"8": 1.0, "16": 1.0, "24": 1.0}, "deltanet": {"8": 0.73, "24": 0.010}},
}
"""What the paper prints, by place: two layers of four heads of 32, one model per size.

Table 11 is one seed and 1,000 steps, table 9 three seeds and 2,000 steps, section 6.4 reads figure 5 (three seeds).
"""


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


class Training(NamedTuple):
    """One training of a cell."""

    cell: Cell
    recipe: MqarRecipe
    seed: int


def run(out_dir: Path, quick: bool, seeds: int) -> Figures:
    """Train every cell, score it at each number of pairs, measure the propositions; finished trainings are kept.

    Only the mechanisms are trained with every seed; variants and ablations with the first, at their mechanism's rate.
    """
    recipe = MqarRecipe(evaluation_batches=4 if quick else 15)
    chosen = [SEEDS[i] if i < len(SEEDS) else SEEDS[-1] + i for i in range(seeds)]
    rates = (1e-2,) if quick else RATES
    figures: Figures = {"recipe": {**asdict(recipe), "backbone": asdict(Backbone()), "seeds": chosen}}
    figures["learning_rate"] = best_rates(recipe, chosen[0], rates, out_dir / "cells")
    figures["accuracy"] = accuracies(recipe, chosen, figures["learning_rate"], out_dir / "cells")
    figures["accuracy_paper"] = PAPER
    figures["state_norm_at_1000"] = study.state_norms(seeds)
    figures["step_jacobian"] = study.jacobian_norms()
    figures["recovery_error"] = study.recovery_errors()
    figures["float32"] = study.precision(5_000 if quick else 100_000)
    figures["latency_us_per_token"] = study.latency(5 if quick else 20)
    return figures


def best_rates(recipe: MqarRecipe, seed: int, rates: tuple[float, ...], folder: Path) -> dict[str, float]:
    """The learning rate of each mechanism that scores best on sequences of their own."""
    jobs = {
        _name(name, rate, seed): Training(cell, replace(recipe, learning_rate=rate), seed)
        for name, cell in MECHANISMS.items()
        for rate in rates
    }
    found = measure_all(examine, jobs, folder, cores(), _words)
    return {name: max(rates, key=lambda rate: found[_name(name, rate, seed)]["validation"]) for name in MECHANISMS}


def accuracies(recipe: MqarRecipe, seeds: list[int], rates: dict[str, float], folder: Path) -> Figures:
    """The scores of every cell by group."""
    groups = {"mechanisms": MECHANISMS, "variants": VARIANTS, "without_previous_token": UNBOUND}
    jobs: dict[str, Training] = {}
    names = {}
    for group, cells in groups.items():
        for name, cell in cells.items():
            rate = rates[name.split(",")[0]]
            trained = [
                (_name(name, rate, seed), Training(cell, replace(recipe, learning_rate=rate), seed))
                for seed in (seeds if group == "mechanisms" else seeds[:1])
            ]
            jobs.update(trained)
            names[group, name] = [key for key, _ in trained]
    found = measure_all(examine, jobs, folder, cores(), _words)
    scores: Figures = {}
    for (group, name), keys in names.items():
        scores.setdefault(group, {})[name] = _summarise([found[key] for key in keys])
    return scores


def examine(job: Training) -> Figures:
    """Train a cell; exact-match shares by number of pairs, their mean on validation sequences, parameters."""
    model = train(job.cell.mixer, job.cell.backbone, job.recipe, job.seed)
    validation = accuracy(model, replace(job.recipe, evaluation_batches=2), VALIDATION_SEED)
    return {
        "accuracy": {str(pairs): share for pairs, share in accuracy(model, job.recipe).items()},
        "validation": statistics.fmean(validation.values()),
        "parameters": sum(parameter.numel() for parameter in model.parameters()),
    }


def _name(name: str, rate: float, seed: int) -> str:
    return f"{name}, rate {rate:g}, seed {seed}"


def _words(found: Figures) -> str:
    return "  ".join(f"{pairs} pairs {share:.3f}" for pairs, share in found["accuracy"].items())


def _summarise(runs: list[Figures]) -> Figures:
    scores: Figures = {"parameters": runs[0]["parameters"]}
    for pairs in map(str, SIZES):
        scores[pairs] = bootstrapped([run["accuracy"][pairs] for run in runs], "per_seed")
    return scores


def tables(figures: Figures) -> Iterator[Table]:
    """Share of queries answered exactly, by cell."""
    title = "MQAR: share of queries answered exactly"
    columns = ("mechanism", *(f"n = {pairs}" for pairs in SIZES))
    rows = [(n, scores) for cells in figures["accuracy"].values() for n, scores in cells.items()]
    yield table(title, columns, ((n, *(f"{scores[str(p)]['mean']:.3f}" for p in SIZES)) for n, scores in rows))


def plots(figures: Figures, out_dir: Path) -> list[Path]:
    """Write `mqar.png`, the mechanisms beside the paper's table 11; returns its path."""
    import matplotlib as mpl

    mpl.use("Agg")
    from matplotlib import pyplot as plt

    out_dir.mkdir(parents=True, exist_ok=True)
    figure, axes = plt.subplots(figsize=(6, 4))
    for name, scores in figures["accuracy"]["mechanisms"].items():
        axes.plot(SIZES, [scores[str(pairs)]["mean"] for pairs in SIZES], marker="o", label=name.replace("_", " "))
        if name in PAPER["table 11"]:
            known = {int(pairs): share for pairs, share in PAPER["table 11"][name].items()}
            axes.plot(list(known), list(known.values()), ":", color=axes.lines[-1].get_color())
    axes.axvline(study.WIDTH, color="grey", linewidth=0.8)
    axes.set(xlabel="pairs n (grey: d_h; dotted: the paper's table 11)", ylabel="queries answered", ylim=(0, 1.02))
    axes.legend()
    figure.tight_layout()
    figure.savefig(out_dir / "mqar.png", dpi=120)
    plt.close(figure)
    return [out_dir / "mqar.png"]
