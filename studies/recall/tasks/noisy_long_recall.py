"""noisy_long_recall: AURA's eight variants, success beside writes, and the AIS readouts of the gated one."""

from __future__ import annotations

from concurrent.futures import Executor
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from studies.recall.learning.trainer import RecallRecipe
from studies.recall.streams.noisy_long_recall import HARD, MAIN, NoisyLongRecall
from studies.recall.tasks.aura_ais import of_largest, readouts
from studies.recall.tasks.aura_variants import (
    DENSE,
    GATED,
    VARIANTS,
    Job,
    Outcome,
    Variant,
    figures_of,
    spread,
    submit,
    workers,
)

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
    """Train and measure; prints a table per configuration and returns the figures.

    Finished trainings are kept in `<out_dir>/cells`, so that an interrupted run goes on where it was.
    """
    figures: dict[str, Any] = {"recipe": asdict(RECIPE), "paper_recipe": {"steps": 4000, "batch": 64}, "paper": PAPER}
    names = {"hard": QUICK_VARIANTS} if quick else {"hard": tuple(VARIANTS), "main": MAIN_VARIANTS}
    with workers() as pool:
        for configuration, chosen in names.items():
            task, store = CONFIGURATIONS[configuration], out_dir / "cells"
            figures[configuration] = compare(pool, task, chosen, 1 if quick else seeds, store)
            show(configuration, figures[configuration])
    return figures


def compare(pool: Executor, task: NoisyLongRecall, names: tuple[str, ...], seeds: int, store: Path) -> dict[str, Any]:
    """Every named variant on one configuration."""
    jobs = {name: job_of(name, VARIANTS[name], task) for name in names}
    running = {name: submit(pool, job, seeds, store) for name, job in jobs.items()}
    outcomes = {name: [future.result() for future in running[name]] for name in names}
    return {
        "task": asdict(task),
        "chance": 1 / task.values,
        "needed_write_rate": task.needed_write_rate,
        "seeds": seeds,
        "variants": {name: figures_of(jobs[name], outcomes[name]) for name in names},
        "parity": parity(outcomes[GATED], outcomes[DENSE]),
        "ais": [of_largest(outcome.extra) for outcome in outcomes[GATED]],
    }


def job_of(name: str, variant: Variant, task: NoisyLongRecall) -> Job:
    """The training of a variant, with its share of the recipe's steps."""
    share = variant.length * (SHORTER if task.bindings < HARD.bindings else 1.0)
    recipe = replace(RECIPE, steps=round(RECIPE.steps * share))
    extra = readouts if name == GATED else None
    return Job(name, variant.memory, variant.options, task, recipe, 0, STREAMS, extra, read_first=variant.read_first)


def parity(gated: list[Outcome], dense: list[Outcome]) -> dict[str, Any]:
    """AURA against writing every step, seed by seed."""
    gain = spread([a.success - b.success for a, b in zip(gated, dense, strict=True)])
    fewer = spread([b.write_rate / max(a.write_rate, 1e-9) for a, b in zip(gated, dense, strict=True)])
    inside = gain["ci95"] is not None and gain["ci95"][0] <= 0 <= gain["ci95"][1]
    return {
        "success_gain": gain,
        "fewer_writes": fewer,
        "interval_holds_zero": inside,
        "met": inside and fewer["mean"] >= TARGET_FEWER_WRITES,
    }


def show(configuration: str, figures: dict[str, Any]) -> None:
    """Print the variants of one configuration beside the paper's."""
    from rich.console import Console
    from rich.table import Table

    title = f"noisy_long_recall, {configuration}: {figures['seeds']} seeds, chance {figures['chance']:.3f}"
    table = Table(title=title)
    for column in ("", "success", "95 %", "paper", "writes/step", "fewer", "parameters", "state bytes"):
        table.add_column(column, justify="right" if column else "left")
    for name, row in figures["variants"].items():
        interval, paper = row["success"]["ci95"], PAPER[configuration].get(name)
        table.add_row(
            name,
            f"{row['success']['mean']:.4f}",
            "-" if interval is None else f"{interval[0]:.3f} .. {interval[1]:.3f}",
            "-" if paper is None else f"{paper:.3f}",
            f"{row['write_rate']['mean']:.3f}",
            "-" if row["fewer_writes"] is None else f"{row['fewer_writes']:.2f}x",
            f"{row['parameters']:,}",
            f"{row['state_bytes']:,}",
        )
    console = Console(width=140)
    console.print(table)
    console.print(f"every binding written would be {figures['needed_write_rate']:.3f} of the steps", highlight=False)
