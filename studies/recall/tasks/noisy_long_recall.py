"""noisy_long_recall: AURA's eight variants, success beside writes, and the AIS readouts of the gated one."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from rich.table import Table

from studies.recall.learning.trainer import RecallRecipe
from studies.recall.streams.noisy_long_recall import HARD, MAIN, NoisyLongRecall
from studies.recall.tasks.aura_ais import of_largest, readouts
from studies.recall.tasks.aura_variants import (
    DENSE,
    GATED,
    VARIANTS,
    Job,
    Trial,
    Variant,
    figures_of,
    trials_of,
)
from studies.tables import student, table

CONFIGURATIONS = {"hard": HARD, "main": MAIN}
# Success and writes per second: main, table 2; hard, section 6.7 and figure 5, at d_k = d_v = 32 (main: 64 for writes).
PAPER = {
    "hard": {GATED: 0.997, "full_recurrence": 0.38, "fewer_writes": 5.95},
    "main": {
        GATED: 0.955,
        DENSE: 1.0,
        "fixed_size_state": 1.0,
        "random_write": 0.368,
        "periodic_write": 0.375,
        "learned_token_gate": 0.444,
        "full_recurrence": 0.873,
        "no_memory": 0.256,
        "fewer_writes": 4.98,
    },
}
# The main configuration carries the claim alone; the hard one has all eight.
MAIN_VARIANTS = (GATED, DENSE, "random_write", "periodic_write")
QUICK_VARIANTS = (GATED, DENSE, "random_write", "no_memory")
RECIPE = RecallRecipe(steps=400, batch=32, cool_down=0.3)
SHORTER = 0.75
"""Of the recipe's steps, for the main configuration: shorter streams with half the bindings are learned sooner."""
STREAMS = 256
TARGET_FEWER_WRITES = 5.0


def run(out_dir: Path, quick: bool, seeds: int) -> dict[str, Any]:
    """Train and measure.

    Finished trainings are kept in `<out_dir>/cells`, so that an interrupted run goes on where it was.
    """
    figures: dict[str, Any] = {"recipe": asdict(RECIPE), "paper_recipe": {"steps": 4000, "batch": 64}, "paper": PAPER}
    names = {"hard": QUICK_VARIANTS} if quick else {"hard": tuple(VARIANTS), "main": MAIN_VARIANTS}
    for configuration, chosen in names.items():
        folder = out_dir / "cells" / configuration
        figures[configuration] = compare(CONFIGURATIONS[configuration], chosen, 1 if quick else seeds, folder)
    return figures


def compare(task: NoisyLongRecall, names: tuple[str, ...], seeds: int, folder: Path) -> dict[str, Any]:
    """Every named variant on one configuration."""
    jobs = {name: job_of(name, VARIANTS[name], task) for name in names}
    trials = trials_of(jobs, seeds, folder)
    return {
        "task": asdict(task),
        "chance": 1 / task.values,
        "needed_write_rate": task.needed_write_rate,
        "seeds": seeds,
        "variants": {name: figures_of(jobs[name], trials[name]) for name in names},
        "parity": parity(trials[GATED], trials[DENSE]),
        "ais": [of_largest(trial.extra) for trial in trials[GATED]],
    }


def job_of(name: str, variant: Variant, task: NoisyLongRecall) -> Job:
    """The training of a variant, with its share of the recipe's steps."""
    share = variant.length * (SHORTER if task.bindings < HARD.bindings else 1.0)
    recipe = replace(RECIPE, steps=round(RECIPE.steps * share))
    extra = readouts if name == GATED else None
    return Job(name, variant.memory, variant.options, task, recipe, 0, STREAMS, extra, read_first=variant.read_first)


def parity(gated: list[Trial], dense: list[Trial]) -> dict[str, Any]:
    """AURA against writing every step, seed by seed."""
    gain = student([a.success - b.success for a, b in zip(gated, dense, strict=True)])
    fewer = student([b.write_rate / max(a.write_rate, 1e-9) for a, b in zip(gated, dense, strict=True)])
    inside = gain["ci95"] is not None and gain["ci95"][0] <= 0 <= gain["ci95"][1]
    return {
        "success_gain": gain,
        "fewer_writes": fewer,
        "interval_holds_zero": inside,
        "met": inside and fewer["mean"] >= TARGET_FEWER_WRITES,
    }


def tables(figures: dict[str, Any]) -> Iterator[Table | str]:
    """The variants of each configuration beside the paper's."""
    columns = ("", "success", "95 %", "paper", "writes/step", "fewer", "parameters", "state bytes")
    for configuration in (name for name in CONFIGURATIONS if name in figures):
        found = figures[configuration]
        title = f"noisy_long_recall, {configuration}: {found['seeds']} seeds, chance {found['chance']:.3f}"
        papers = PAPER[configuration]
        yield table(title, columns, ((n, *_cells(row, papers.get(n))) for n, row in found["variants"].items()))
        yield f"every binding written would be {found['needed_write_rate']:.3f} of the steps"


def _cells(row: dict[str, Any], paper: float | None) -> Iterator[str]:
    interval = row["success"]["ci95"]
    yield f"{row['success']['mean']:.4f}"
    yield "-" if interval is None else f"{interval[0]:.3f} .. {interval[1]:.3f}"
    yield "-" if paper is None else f"{paper:.3f}"
    yield f"{row['write_rate']['mean']:.3f}"
    yield "-" if row["fewer_writes"] is None else f"{row['fewer_writes']:.2f}x"
    yield f"{row['parameters']:,}"
    yield f"{row['state_bytes']:,}"
