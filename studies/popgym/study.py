"""POPGym, a world that others wrote: what each memory learns of it by imitation, in closed loop."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from rich.table import Table

from studies import options
from studies.grid import Figures
from studies.popgym.names import ALL, GROUPS, TASKS
from studies.worlds import plan as worlds
from studies.worlds.plan import WorldPlan
from studies.worlds.training import Imitation

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
MODULE = "studies.popgym.world"
MEMORIES = ("none", "first_frame", "last_k", "gru", "trace", "trace+window", "aura", "vla", "elmur", "prism")
RECIPE = Imitation(steps=2000, paced=True)
"""Cut by ticks instead, an answer that is asked for late is learned late or never."""
ATTENDING, ATTENDING_RATE = ("gru+cache", "transformer"), 2e-3
"""Rows that read by attention, and their learning rate: at the usual one an age is found late or never."""
DRIVEN = Imitation(steps=2000, disturbed=0.1)
"""Where an error leads to where no teacher was, and every tick has something to be learned."""
OTHERS = dict.fromkeys(TASKS["control"], DRIVEN) | {"AutoencodeHard": replace(RECIPE, prefix=312, steps=5000)}
"""`AutoencodeHard`: all answers lie beyond the ticks that `RECIPE` teaches."""
QUICK = Imitation(episodes=100, validation=20, prefix=52, steps=60)
QUICK_TASKS = ("RepeatFirstEasy", "RepeatPreviousEasy")
PUBLISHED = {
    "source": "ELMUR, table of POPGym-48: imitation of 3,000 episodes of a PPO-GRU agent per environment",
    "sum_over_48": {
        "ELMUR": 10.4,
        "RATE": 9.5,
        "BC-LSTM": 9.0,
        "DT": 5.8,
        "BC-MLP": -6.8,
        "random": -12.2,
    },
}
"""Another regime: other teachers, models and budgets. Beside ours for orientation, not to be compared."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Environments, memories, seeds, and where POPGym's own Python packages go."""
    options.add_names(parser, "--environments", (*TASKS, *ALL), "environments, or families of them")
    parser.set_defaults(environments=tuple(TASKS))
    worlds.add_options(parser, "popgym", MEMORIES, 100)


def recipe_of(task: str, row: str) -> Imitation:
    """How a task is taught to a row."""
    recipe = OTHERS.get(task, RECIPE)
    return replace(recipe, learning_rate=ATTENDING_RATE) if row in ATTENDING else recipe


def quick_recipe(task: str, row: str) -> Imitation:
    """How it is in a quick run."""
    return QUICK


def run(
    out_dir: Path,
    quick: bool,
    environments: tuple[str, ...],
    memories: tuple[str, ...],
    seeds: int,
    first_seed: int,
    episodes: int,
    workers: int,
    report: bool,
    packages: Path,
) -> Figures:
    """Teach, train and play what is missing; kept runs are not done again.

    quick: two easy environments, one seed, few steps and episodes.
    """
    tasks = tuple(dict.fromkeys(task for name in environments for task in TASKS.get(name, (name,))))
    rows = worlds.trained(memories)
    grid = WorldPlan(out_dir, tasks, rows, range(first_seed, first_seed + seeds), episodes, "returns", recipe_of)
    if quick:
        grid = WorldPlan(out_dir, QUICK_TASKS, rows, (0,), 20, "returns", quick_recipe)
    if not report and (why := worlds.skipped(grid, REQUIREMENTS, packages, MODULE, workers)):
        return why
    return {**worlds.figures_of(grid, GROUPS), "published": PUBLISHED}


def tables(figures: Figures) -> Iterator[Table | str]:
    """Mean return by environment and row, beside the teacher's; the published sums."""
    yield from worlds.tables(figures, "POPGym: mean return (-1 to 1)")
    if "published" in figures:
        sums = ", ".join(f"{name} {value}" for name, value in figures["published"]["sum_over_48"].items())
        yield f"another regime, sums over 48 environments ({figures['published']['source']}): {sums}"
