"""Meta-World, a world that others wrote: is a goal that was shown for a moment still reached after a delay?"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from studies import options
from studies.grid import Figures
from studies.metaworld.names import TASKS, Cue
from studies.worlds import plan as worlds
from studies.worlds.plan import WorldPlan
from studies.worlds.training import Imitation

REQUIREMENTS = Path(__file__).parent / "requirements.txt"
MODULE = "studies.metaworld.world"
MEMORIES = ("none", "first_frame", "last_k", "gru", "trace", "trace+window", "vla")
CUES = {
    "shown 5, held 0 to 20": Cue(5, 0, 20),
    "shown 1, held 20": Cue(1, 20, 20),
    "shown 5, held 100": Cue(5, 100, 100),
}
"""Ticks for which the goal is shown and the arm held; the first is learned."""
RECIPE = Imitation(
    episodes=100, validation=20, prefix=160, steps=2000, batch_ticks=1664, learning_rate=3e-3, disturbed=0.1
)
WRITES = 30
"""In the median lesson, by how far the hand moved, as a robot's memory is written: a held arm writes nothing."""
QUICK = Imitation(episodes=20, validation=5, prefix=100, steps=60)
QUICK_TASKS = ("reach",)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, memories, seeds, and where Meta-World's own Python packages go."""
    options.add_names(parser, "--tasks", TASKS, "tasks")
    worlds.add_options(parser, "metaworld", MEMORIES, 20)


def variants(task: str) -> dict[str, str]:
    """A task with every cue."""
    return {name: cue.of(task) for name, cue in CUES.items()}


def recipe_of(task: str, row: str) -> Imitation:
    """How a task is taught."""
    return RECIPE


def quick_recipe(task: str, row: str) -> Imitation:
    """How it is in a quick run."""
    return QUICK


def run(
    out_dir: Path,
    quick: bool,
    tasks: tuple[str, ...],
    memories: tuple[str, ...],
    seeds: int,
    first_seed: int,
    episodes: int,
    workers: int,
    report: bool,
    packages: Path,
) -> Figures:
    """Teach, train and play what is missing; kept runs are not done again.

    quick: one task, one seed, few steps and episodes.
    """
    rows = worlds.trained(memories)
    grid = WorldPlan(
        out_dir, tasks, rows, range(first_seed, first_seed + seeds), episodes, "successes", recipe_of, variants, WRITES
    )
    if quick:
        grid = WorldPlan(out_dir, QUICK_TASKS, rows, (0,), 5, "successes", quick_recipe, variants, WRITES)
    if not report and (why := worlds.skipped(grid, REQUIREMENTS, packages, MODULE, workers)):
        return why
    return {**worlds.figures_of(grid, {}), "cues": {name: cue._asdict() for name, cue in CUES.items()}}


def tables(figures: Figures) -> Iterator[Table | str]:
    """Share of successes by task and row, a table per cue."""
    learned, *others = CUES
    yield from worlds.tables(figures, f"Meta-World, successes, goal {learned} ticks")
    for cue in others:
        yield from worlds.elsewhere(figures, cue, f"the same policies, goal {cue} ticks")
