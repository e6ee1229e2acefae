"""How many cues in order each memory holds: two to six of them, newer ones that overwrite, decoys (task `sequence`)."""

from __future__ import annotations

import argparse
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

from studies.memory_modules.plan import DEPTH, QUICK_ROWS, ROWS, digest, row_design
from studies.memory_sequence.recombine import Twins
from studies.memory_sequence.training import HEAD_LESSONS, LESSONS, RECIPE, Lesson, recombined, train
from studies.options import names_of
from studies.store import Store
from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED
from trace_memory_ros.arm.demonstrations import ScenarioOf, collect, render
from trace_memory_ros.arm.sim.curriculum import default_scenario
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.seeding import generator
from trace_memory_ros.learning import build
from trace_memory_ros.learning.batches import BatchBuilder, Data
from trace_memory_ros.learning.branch_accuracy import decisions_right
from trace_memory_ros.learning.dataset import TrainingSet
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.progress import Progress
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.measure.statistics import bootstrap_interval
from trace_memory_ros.measure.workers import do_all
from trace_memory_ros.observation.image import thumbnails
from trace_memory_ros.runtime.window import PathWindow

TASK = "sequence"
SCHEMA = 2


@dataclass(frozen=True)
class Column:
    """Episodes of one kind: how many cues, whether newer ones overwrite them, how many decoys."""

    label: str
    cues: int
    overwritten: bool = False
    decoys: int = 0

    def scenario(self, task: str, seed: int, cue: int) -> Scenario:
        """The pair of `seed`: in the second episode every cue is the other way."""
        rng = generator(task, seed, "mix")
        cues, newer = rng.integers(2, size=(2, self.cues)).tolist()
        first = Scenario(
            task,
            seed,
            cues[0],
            decoys=self.decoys,
            cues=tuple(cues),
            overwrite=tuple(newer) if self.overwritten else None,
        )
        return first.counterfactual() if cue else first


COLUMNS = (
    *(Column(f"{count} cues", count) for count in range(2, 7)),
    Column("3 cues, overwritten", 3, overwritten=True),
    Column("3 cues, 2 decoys", 3, decoys=2),
)


@dataclass(frozen=True)
class Plan:
    """Everything a call is decided by. pairs: evaluation pairs per column, the same for all rows and seeds."""

    columns: tuple[Column, ...]
    pairs: int
    recipe: Recipe
    lessons: tuple[Lesson, ...]
    out_dir: Path
    demos: Path

    def folder(self, row: str, seed: int) -> Path:
        """Where a run's figures are kept."""
        design = row_design(row)
        lessons = [asdict(lesson) for lesson in self.lessons]
        mechanism = [design.memory, dict(design.options), design.depth, str(design.window)]
        content = [SCHEMA, self.recipe.to_dict(), lessons, *mechanism]
        return self.out_dir / "runs" / f"{row}-{seed}-{digest(content)}"

    def settings(self) -> dict[str, Any]:
        """What figures depend on besides the training."""
        return {"columns": [c.label for c in self.columns], "pairs": self.pairs}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Rows, seeds, workers."""
    parser.add_argument("--rows", type=names_of(ROWS), default=tuple(ROWS), help="rows, by comma (default: all)")
    parser.add_argument("--seeds", type=int, default=3, help="training seeds (default: 3)")
    parser.add_argument("--workers", type=int, default=1, help="processes (default: 1)")
    parser.add_argument("--report", action="store_true", help="train and measure nothing, tabulate what is there")
    parser.add_argument("--demos", type=Path, default=Path("out/demonstrations"), help="demonstration cache")


def run(
    out_dir: Path, quick: bool, rows: tuple[str, ...], seeds: int, workers: int, report: bool, demos: Path
) -> dict[str, Any]:
    """Train each row on mixed sequences and count right decisions; kept runs are not done again."""
    plan = Plan(COLUMNS, 9, RECIPE, LESSONS, out_dir, demos)
    if quick:
        plan = replace(plan, columns=(COLUMNS[0], COLUMNS[2]), pairs=3)
        seeds = 1
        rows = tuple(row for row in rows if row in QUICK_ROWS) or rows[:1]
    console = Console()
    runs = [] if report else [(row, seed) for seed in range(seeds) for row in rows]
    if runs:
        _render_all(plan)
    lost = do_all(partial(carry_out, plan), runs, workers, console.print)
    return {
        "seeds": seeds,
        "episodes_per_seed": 2 * plan.pairs,
        "signature_depth": DEPTH,
        "columns": [column.label for column in plan.columns],
        "rows": {row: _figures(plan, row, seeds) for row in rows},
        "failed": {f"{row} seed {seed}": reason for (row, seed), reason in lost},
        "recipe": plan.recipe.to_dict(),
        "lessons": [asdict(lesson) for lesson in plan.lessons],
    }


def carry_out(plan: Plan, job: tuple[str, int]) -> str:
    """Train and measure one row and seed, unless its figures are kept; returns a line about it."""
    row, seed = job
    store = Store(plan.folder(row, seed))
    figures = store.get("figures", plan.settings(), lambda: measure(plan, row, seed))
    shares = ", ".join(f"{label} {np.mean(np.concatenate(d)):.2f}" for label, d in figures["right"].items())
    return f"{row} seed {seed}: {shares}"


def measure(plan: Plan, row: str, seed: int) -> dict[str, Any]:
    """Right decisions, 0 or 1, of each episode of each column, after a training on mixed sequences."""
    design = row_design(row)
    training, held_out, columns = _builders(plan, design.depth, design.window)
    agent = new_agent(design, Data(training, held_out), seed)
    log: list[Progress] = []
    right: dict[str, list[list[int]]] = {}
    lessons = plan.lessons if list(agent.memory.parameters()) else HEAD_LESSONS
    model = train(agent, training, held_out, plan.recipe, lessons, seed, log.append).eval()
    for column, builder in zip(plan.columns, columns, strict=True):
        right[column.label] = [
            episode.int().tolist()
            for pair in range(builder.data.pairs)
            for episode in decisions_right(model, builder, pair)
        ]
    return {
        "right": right,
        "steps": log[-1].step,
        "train_accuracy": log[-1].train_branch_accuracy,
        "held_out_accuracy": log[-1].held_out_branch_accuracy,
        "memory_parameters": sum(p.numel() for p in agent.memory.parameters()),
        "state_bytes": agent.memory.state_bytes,
    }


def _render_all(plan: Plan) -> None:
    """Render what is missing before any worker looks for it."""
    observation = row_design("none").observation
    for seeds, scenario_of in _sets(plan):
        for _ in render(TASK, seeds, observation, plan.demos, scenario_of=scenario_of):
            pass


def _sets(plan: Plan) -> list[tuple[list[int], ScenarioOf]]:
    """Seeds and kind of episodes of the training split, the held-out split and every column."""
    recipe = plan.recipe
    evaluation = list(range(FIRST_EVALUATION_SEED, FIRST_EVALUATION_SEED + plan.pairs))
    return [
        (recipe.training_seeds, default_scenario),
        (recipe.held_out_seeds, default_scenario),
        *((evaluation, column.scenario) for column in plan.columns),
    ]


@lru_cache(maxsize=3)
def _builders(
    plan: Plan, depth: int, window: PathWindow | None
) -> tuple[BatchBuilder, BatchBuilder, tuple[BatchBuilder, ...]]:
    """Builders of the two splits and of every column, all with the train split's statistics."""
    design = replace(row_design("none"), depth=depth, window=window)
    demonstrated, varied, *others = _episodes(plan)
    demonstrations, _ = build.prepare(design, demonstrated, others[0])
    state = demonstrations.statistics.state
    px = design.observation.thumbnail_px
    sets = [TrainingSet.build(pairs, state, depth, px, window).episodes for pairs in (varied, *others)]
    # The images are thumbnails already: kept once, whatever the address.
    shared = [TrainingSet([replace(episode, thumbnails=episode.demo.images) for episode in s]) for s in sets]
    training, held_out, *columns = (replace(demonstrations, data=data) for data in shared)
    return training, held_out, tuple(columns)


@lru_cache(maxsize=1)
def _episodes(plan: Plan) -> list[list[Twins]]:
    """Pairs of the training split, their recombinations, pairs of the held-out split and of every column.

    Images are of the size that the memory sees: no policy looks at larger ones here.
    """
    seen = row_design("none").observation
    training, *others = (
        [_small(pair, seen.thumbnail_px) for pair in collect(TASK, seeds, seen, plan.demos, scenario_of=scenario_of)]
        for seeds, scenario_of in _sets(plan)
    )
    return [training, recombined(training), *others]


def _small(twins: Twins, side_px: int) -> Twins:
    one, other = (replace(demo, images=thumbnails(demo.images, side_px)) for demo in twins)
    return one, other


def _figures(plan: Plan, row: str, seeds: int) -> dict[str, Any]:
    """Per column the share of right decisions and of episodes without a wrong one, over all seeds that are there."""
    found = [Store(plan.folder(row, seed)).read("figures", plan.settings()) for seed in range(seeds)]
    runs = [figures for figures in found if figures]
    if not runs:
        return {"runs": 0}
    out: dict[str, Any] = {"runs": len(runs), **{k: runs[0][k] for k in ("memory_parameters", "state_bytes")}}
    for column in plan.columns:
        episodes = [episode for figures in runs for episode in figures["right"][column.label]]
        shares = np.array([np.mean(episode) for episode in episodes])
        out[column.label] = {
            "decisions": float(shares.mean()),
            "decisions_ci95": list(bootstrap_interval(shares)),
            "all_in_order": float(np.mean([all(episode) for episode in episodes])),
            "per_seed": [float(np.mean([np.mean(e) for e in figures["right"][column.label]])) for figures in runs],
        }
    return out
