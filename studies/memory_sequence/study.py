"""How many cues in order each memory holds: two to six of them, newer ones that overwrite, decoys (task `sequence`)."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from dataclasses import asdict, dataclass, replace
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
from rich.table import Table

from studies import options
from studies.auto import do_rows, take
from studies.grid import Figures, Plan, Run, Store, parts
from studies.memory_modules.plan import DEPTH, QUICK_ROWS, ROWS, row_design
from studies.memory_sequence.recombine import Twins
from studies.memory_sequence.training import HEAD_LESSONS, LESSONS, RECIPE, Lesson, recombined, train
from studies.tables import table, two_level
from studies.writes import writes_per_s
from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED
from trace_memory_ros.arm.demonstrations import ScenarioOf, collect, render
from trace_memory_ros.arm.sim.curriculum import default_scenario
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.seeding import generator
from trace_memory_ros.learning import build
from trace_memory_ros.learning.data.batches import BatchBuilder, Data
from trace_memory_ros.learning.data.dataset import StatePath, TrainingSet
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, decisions_right
from trace_memory_ros.learning.decisions.candidates import Trial
from trace_memory_ros.learning.fit import new_agent, plain_accuracy
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.report.progress import Progress
from trace_memory_ros.learning.sizes import AUTO, LADDER
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.observation.frames import resized
from trace_memory_ros.runtime.window import PathWindow

TASK = "sequence"
CHOICES = (*ROWS, AUTO)
"""`auto` is what `trace-memory train` would take by the validation pairs, also after the lessons' longest delay."""
SCHEMA = 6
FIRST_SEED = FIRST_EVALUATION_SEED + 500
"""Of the columns' scenes, by which no recipe was chosen."""


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


@dataclass(frozen=True, kw_only=True)
class SequencePlan(Plan):
    """The grid and the columns. pairs: of each column, the same for all rows and seeds."""

    columns: tuple[Column, ...]
    recipe: Recipe
    lessons: tuple[Lesson, ...]

    def trained_by(self, run: Run) -> object:
        """Mechanism, recipe and lessons; of rows that choose those of their candidates."""
        if run.row == AUTO:
            return [self.trained_by(replace(run, row=name)) for name in LADDER]
        design = row_design(run.row)
        lessons = [asdict(lesson) for lesson in self.lessons]
        mechanism = [design.memory, dict(design.options), design.depth, str(design.window)]
        return [SCHEMA, self.recipe.to_dict(), lessons, *mechanism]

    def settings(self) -> Figures:
        """What figures depend on besides the training."""
        return {"columns": [c.label for c in self.columns], "pairs": self.pairs}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Rows, and those of a grid."""
    options.add_names(parser, "--rows", CHOICES, "rows")
    options.add_grid(parser, workers=1)


def run(
    out_dir: Path,
    quick: bool,
    rows: tuple[str, ...] = CHOICES,
    seeds: int = 3,
    workers: int = 1,
    report: bool = False,
    demos: Path = options.DEMOS,
) -> Figures:
    """Train each row on mixed sequences and count right decisions; kept runs are not done again."""
    plan = SequencePlan(
        tasks=(TASK,),
        rows=rows,
        seeds=tuple(range(seeds)),
        pairs=12,
        columns=COLUMNS,
        recipe=RECIPE,
        lessons=LESSONS,
        out_dir=out_dir,
        demos=demos,
    )
    plan = quick_plan(plan) if quick else plan
    if not report:
        _render_all(plan)
        do_rows(partial(carry_out, plan), plan, workers)
    failed = {f"{row} seed {seed}": why for row in plan.rows for seed, why in plan.failures(TASK, row).items()}
    return {
        "seeds": len(plan.seeds),
        "episodes_per_seed": 2 * plan.pairs,
        "signature_depth": DEPTH,
        "columns": [column.label for column in plan.columns],
        "rows": {row: figures_of(plan, row) for row in plan.rows},
        "failed": failed,
        "recipe": plan.recipe.to_dict(),
        "lessons": [asdict(lesson) for lesson in plan.lessons],
    }


def quick_plan(plan: SequencePlan) -> SequencePlan:
    """A plan for a first look: one seed, three rows, two columns."""
    return replace(
        plan,
        rows=tuple(row for row in plan.rows if row in QUICK_ROWS) or plan.rows[:1],
        seeds=plan.seeds[:1],
        columns=(COLUMNS[0], COLUMNS[2]),
        pairs=3,
    )


def carry_out(plan: SequencePlan, run: Run, store: Store) -> str:
    """Train and measure one row and seed, unless its figures are kept; returns words about it."""
    of_one = partial(measure, plan)
    measured = partial(take, plan, run, of_one) if run.row == AUTO else partial(of_one, run)
    figures = store.get("figures", plan.settings(), measured)
    return ", ".join(f"{label} {np.mean(np.concatenate(d)):.2f}" for label, d in figures["right"].items())


def measure(plan: SequencePlan, run: Run) -> Figures:
    """Right decisions, 0 or 1, of each episode of each column, after a training on mixed sequences."""
    design = row_design(run.row)
    training, validation, columns = _builders(plan, design.depth, design.window)
    agent = new_agent(design, Data(training, validation, None), run.seed)
    log: list[Progress] = []
    right: dict[str, list[list[int]]] = {}
    written: dict[str, float] = {}
    lessons = plan.lessons if list(agent.memory.parameters()) else HEAD_LESSONS
    model = train(agent, training, validation, plan.recipe, lessons, run.seed, log.append).eval()
    for column, builder in zip(plan.columns, columns, strict=True):
        right[column.label] = [
            episode.int().tolist()
            for pair in range(builder.data.pairs)
            for episode in decisions_right(model, builder, pair)
        ]
        assert isinstance(builder.data, TrainingSet)
        written[column.label] = writes_per_s(agent, builder, map(builder.data.scene, range(builder.data.pairs)))
    longest = max(lesson.delay for lesson in plan.lessons)
    judged, later = (branch_accuracy(model, builder) for builder in (validation, validation.delayed(longest)))
    return {
        "right": right,
        "writes_per_s": written,
        "trial": Trial(log[-1].train_branch_accuracy, judged, later).to_plain(),
        "steps": log[-1].step,
        "train_accuracy": plain_accuracy(log[-1].train_branch_accuracy),
        "validation_accuracy": plain_accuracy(log[-1].validation_branch_accuracy),
        "memory_parameters": sum(p.numel() for p in agent.memory.parameters()),
        "state_bytes": agent.memory.state_bytes,
    }


def _render_all(plan: SequencePlan) -> None:
    """Render what is missing before any worker looks for it."""
    observation = row_design("none").observation
    for seeds, scenario_of in _sets(plan):
        for _ in render(TASK, seeds, observation, plan.demos, scenario_of=scenario_of):
            pass


def _sets(plan: SequencePlan) -> list[tuple[list[int], ScenarioOf]]:
    """Seeds and kind of episodes of the training split, the validation split and every column."""
    recipe = plan.recipe
    evaluation = list(range(FIRST_SEED, FIRST_SEED + plan.pairs))
    return [
        (recipe.training_seeds, default_scenario),
        (recipe.validation_seeds, default_scenario),
        *((evaluation, column.scenario) for column in plan.columns),
    ]


@lru_cache(maxsize=3)
def _builders(
    plan: SequencePlan, depth: int, window: PathWindow | None
) -> tuple[BatchBuilder, BatchBuilder, tuple[BatchBuilder, ...]]:
    """Builders of the two splits and of every column, all with the train split's statistics."""
    design = replace(row_design("none"), depth=depth, window=window)
    demonstrated, varied, *others = _episodes(plan)
    demonstrations = build.prepare(design, demonstrated).training
    path = StatePath(demonstrations.statistics.state, depth, window, design.observation.tick_period_ms)
    px = design.observation.thumbnail_px
    sets = [TrainingSet.build(pairs, path, px).episodes for pairs in (varied, *others)]
    # The images are thumbnails already: kept once, whatever the address.
    shared = [TrainingSet([replace(episode, thumbnails=episode.demo.images) for episode in s]) for s in sets]
    training, validation, *columns = (replace(demonstrations, data=data) for data in shared)
    return training, validation, tuple(columns)


@lru_cache(maxsize=1)
def _episodes(plan: SequencePlan) -> list[list[Twins]]:
    """Pairs of the training split, their recombinations, pairs of the validation split and of every column.

    Images are of the size that the memory sees: no policy looks at larger ones here.
    """
    seen = row_design("none").observation
    training, *others = (
        [_small(pair, seen.thumbnail_px) for pair in collect(TASK, seeds, seen, plan.demos, scenario_of=scenario_of)]
        for seeds, scenario_of in _sets(plan)
    )
    return [training, recombined(training), *others]


def _small(twins: tuple[Demonstration, ...], side_px: int) -> Twins:
    one, other = (replace(demo, images=resized(demo.images, side_px)) for demo in twins)
    return one, other


def figures_of(plan: SequencePlan, row: str) -> Figures:
    """Per column the share of right decisions, of episodes without a wrong one and the writes a second, over all seeds
    that are there.
    """
    runs = parts(plan.stores(TASK, row), "figures", plan.settings())
    if not runs:
        return {"runs": 0}
    out: Figures = {"runs": len(runs), **{k: runs[0][k] for k in ("memory_parameters", "state_bytes")}}
    for column in plan.columns:
        right = [figures["right"][column.label] for figures in runs]
        shares = [[float(np.mean(episode)) for episode in episodes] for episodes in right]
        # Drawn again, decisions that are all right are all right for sure: Wilson's of those that one training has.
        count = sum(map(len, right[0]))
        wilson, drawn = wilson_interval(float(np.mean(shares)) * count, count), two_level(shares, alike=True)
        out[column.label] = {
            "decisions": float(np.mean(shares)),
            "decisions_ci95": [min(wilson.low, drawn.low), max(wilson.high, drawn.high)],
            "all_in_order": float(np.mean([all(episode) for episodes in right for episode in episodes])),
            "writes_per_s": float(np.mean([figures["writes_per_s"][column.label] for figures in runs])),
            "per_seed": [float(np.mean(each)) for each in shares],
        }
    return out | ({"taken": dict(Counter(one["taken"] for one in runs))} if row == AUTO else {})


def tables(figures: Figures) -> Iterator[Table | str]:
    """Right decisions and writes by row and column."""
    columns = figures["columns"]
    told = {"decisions": "share of right decisions, chance 0.50", "writes_per_s": "writes a second"}
    for name, title in told.items():
        rows = (
            (row, *(f"{found[c][name]:.2f}" if name in found.get(c, {}) else "" for c in columns), found["runs"])
            for row, found in figures["rows"].items()
        )
        yield table(title, ("memory", *columns, "runs"), rows)
    for row, found in figures["rows"].items():
        yield from (f"{row} took {name} ({seeds})" for name, seeds in found.get("taken", {}).items())
    for run, reason in figures["failed"].items():
        yield f"{run}: {reason}"
