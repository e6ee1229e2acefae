"""What each task of the arm asks of a memory: right decisions after the memory-first phase, beside the controls."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path

import torch
from rich.table import Table

from studies import options
from studies.auto import do_rows, take
from studies.grid import Figures, Plan, Run, Store, parts
from studies.memory_modules.plan import DEPTH, ROWS, WINDOWS
from studies.scenes import LAPS, with_laps
from studies.tables import proportion, table
from studies.writes import writes_per_s
from trace_memory_ros.arm.closed_loop import expert_outcome, held_out_scenarios
from trace_memory_ros.arm.demonstrations import collect, collect_splits
from trace_memory_ros.arm.design import arm_design, arm_recipe
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.names import ONE_CUE_TASKS, WATCHED_TASKS
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of
from trace_memory_ros.learning import build
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.dataset import TrainingSet
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.branch_accuracy import decisions_right
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.selection import Planned, learn_alone
from trace_memory_ros.learning.sizes import AUTO, LADDER

TASKS = (*ONE_CUE_TASKS, *WATCHED_TASKS)
CONTROLS = ("none", "first_frame", "last_k", "gru")
ORACLE = "oracle"
"""The row of the expert, who is given the answers and drives."""
CHOICES = (*ROWS, AUTO, ORACLE)
"""`auto` is what `trace-memory train` takes by validation scenes: of each seed, one of the rows of its candidates."""
DELAYED = 4
"""Scenes of each longer delay."""
SCHEMA = 5


@dataclass(frozen=True, kw_only=True)
class TasksPlan(Plan):
    """The grid. scenes: that are learned from. pairs: held-out scenes, each with all its twins. first: how a memory is
    trained; None for as the task's own recipe says. delays: whether held-out scenes are asked after `LAPS` laps too.
    """

    scenes: int
    first: MemoryFirst | None = None
    delays: bool = False

    def recipe_of(self, task: str) -> Recipe:
        """How a task is trained; its first phase is all that is."""
        usual = arm_recipe(task, "act")
        first = self.first or replace(usual.memory_first, attempts=1)
        return replace(usual, pairs=self.scenes, held_out_pairs=self.pairs, memory_first=first)

    def trained_by(self, run: Run) -> object:
        """Mechanism and recipe; the oracle has none, and rows that choose those of their candidates."""
        if run.row == ORACLE:
            return [SCHEMA]
        if run.row == AUTO:
            return [self.trained_by(replace(run, row=name)) for name in LADDER]
        design = row_design(run.row)
        return [
            SCHEMA,
            self.recipe_of(run.task).to_dict(),
            design.memory,
            dict(design.options),
            design.depth,
            str(design.window),
        ]

    def settings(self) -> Figures:
        """What figures depend on besides the training."""
        return {"pairs": self.pairs} | ({"laps": LAPS, "delayed": DELAYED} if self.delays else {})


def row_design(row: str) -> Design:
    """The design behind a row's name."""
    return arm_design(ROWS[row], DEPTH, window=WINDOWS.get(row))


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, rows, scenes, and those of a grid."""
    options.add_names(parser, "--task", TASKS, "tasks")
    parser.add_argument(
        "--rows",
        type=options.names_of(CHOICES),
        default=(*CONTROLS, ORACLE),
        help=f"rows, by comma, of {', '.join(CHOICES)} (default: the controls and the oracle)",
    )
    options.add_counts(parser, scenes=(60, "training scenes"), held_out=(12, "held-out scenes"))
    parser.add_argument("--delays", action="store_true", help=f"ask memories after {LAPS} laps round the stations too")
    options.add_grid(parser, workers=1)


def run(
    out_dir: Path,
    quick: bool,
    task: tuple[str, ...] = TASKS,
    rows: tuple[str, ...] = (*CONTROLS, ORACLE),
    scenes: int = 60,
    held_out: int = 12,
    delays: bool = False,
    seeds: int = 3,
    workers: int = 1,
    report: bool = False,
    demos: Path = options.DEMOS,
) -> Figures:
    """Train each row on each task and count right decisions; kept runs are not done again.

    quick: one seed, a coarse clock less, few steps and one attempt.
    """
    short = MemoryFirst(clock_factors=(16.0, 4.0, 1.0), stage_steps=150, settle_steps=25, attempts=1)
    plan = TasksPlan(
        tasks=task,
        rows=rows,
        seeds=(0,) if quick else tuple(range(seeds)),
        pairs=held_out,
        scenes=scenes,
        first=short if quick else None,
        delays=delays and not quick,
        out_dir=out_dir,
        demos=demos,
    )
    if not report:
        do_rows(partial(carry_out, plan), plan, workers)
    return {
        "seeds": len(plan.seeds),
        "training_scenes": scenes,
        "held_out_scenes": held_out,
        "signature_depth": DEPTH,
        "tasks": {name: {row: figures_of(plan, name, row) for row in rows} for name in task},
        "failed": {f"{t} {r}": why for t in task for r in rows if (why := plan.failures(t, r))},
        "recipes": {name: plan.recipe_of(name).to_dict() for name in task},
    }


def carry_out(plan: TasksPlan, run: Run, store: Store) -> str:
    """Train and measure one run, unless its figures are kept; returns words about it."""
    measured = {ORACLE: drive, AUTO: choose}.get(run.row, measure)
    figures = store.get("figures", plan.settings(), lambda: measured(plan, run))
    right = [verdict for episode in figures["right"] for verdict in episode if verdict is not None]
    return f"{sum(right)} of {len(right)} decisions right"


def drive(plan: TasksPlan, run: Run) -> Figures:
    """What the undisturbed expert decides in closed loop, on scenes of its own seeds."""
    env = ArmEnv(run.task)
    scenarios = held_out_scenarios(run.task, plan.pairs * task_of(run.task).choices)
    right = []
    for scenario in scenarios:
        outcome = expert_outcome(env, scenario)
        visits = (*outcome.visits, *(-1 for _ in scenario.answers))
        right.append([int(a == v) for a, v in zip(scenario.answers, visits, strict=False)])
    return {"right": right, "steps": 0}


def choose(plan: TasksPlan, run: Run) -> Figures:
    """The figures of the candidate that `auto` takes."""
    return take(plan, run, partial(measure, plan))


def measure(plan: TasksPlan, run: Run) -> Figures:
    """Right decisions of each held-out episode, None where all twins answer alike, after the memory-first phase."""
    design, recipe = row_design(run.row), plan.recipe_of(run.task)
    training, validation, held_out = recipe.by_split(
        list(collect_splits(run.task, recipe, design.observation, plan.demos))
    )
    asked = [held_out, *(delayed_scenes(plan, run.task, design, laps) for laps in (LAPS if plan.delays else ()))]
    data = build.prepare(design, training, validation, [scene for scenes in asked for scene in scenes])
    assert data.held_out is not None and isinstance(data.held_out.data, TrainingSet)
    alone = learn_alone(Planned(design, recipe, data), data.validation, run.seed, longer=True)
    scenes = iter(range(data.held_out.data.pairs))
    right, *later = (
        [
            [None if torch.isnan(verdict) else int(verdict) for verdict in episode]
            for scene in islice(scenes, len(some))
            for episode in decisions_right(alone.model, data.held_out, scene)
        ]
        for some in asked
    )
    memory = alone.agent.memory
    return {
        "right": right,
        "delayed": dict(zip(map(str, LAPS), later, strict=False)),
        "trial": alone.trial.to_plain(),
        "writes_per_s": writes_per_s(alone.agent, data.held_out, map(data.held_out.data.scene, range(len(held_out)))),
        "steps": alone.steps,
        "parameters": sum(p.numel() for p in memory.parameters()),
        "state_bytes": memory.state_bytes,
    }


def delayed_scenes(plan: TasksPlan, task: str, design: Design, laps: int) -> list[tuple[Demonstration, ...]]:
    """The first held-out scenes, with the arms going round the stations so many times."""
    seeds = plan.recipe_of(task).held_out_seeds[:DELAYED]
    return list(collect(task, seeds, design.observation, plan.demos, scenario_of=partial(with_laps, laps)))


def figures_of(plan: TasksPlan, task: str, row: str) -> Figures:
    """Shares over all seeds' decisions, and over episodes all of whose decisions are right."""
    found = parts(plan.stores(task, row), "figures", plan.settings())
    figures: Figures = {"runs": len(found), **_shares([one["right"] for one in found])}
    for laps in found[0].get("delayed", {}) if found else ():
        figures[f"{laps}x"] = _shares([one["delayed"][laps] for one in found])
    if found and row != ORACLE:
        figures["writes_per_s"] = sum(one["writes_per_s"] for one in found) / len(found)
    return figures | ({"taken": dict(Counter(one["taken"] for one in found))} if row == AUTO else {})


def _shares(trainings: Sequence[Iterable[Sequence[int | None]]]) -> Figures:
    """Of the decisions of episodes, the same in all trainings, and of episodes all of whose decisions are right."""
    verdicts = [episode for training in trainings for episode in training]
    episodes = [[verdict for verdict in episode if verdict is not None] for episode in verdicts]
    decisions = [verdict for episode in episodes for verdict in episode]
    counted = {"decisions": decisions, "whole": [int(all(episode)) for episode in episodes]}
    return {name: proportion(found, len(trainings)) for name, found in counted.items() if found}


def tables(figures: Figures) -> Iterator[Table | str]:
    """Decisions, then whole episodes, a row a memory and a column a task."""
    tasks = figures["tasks"]
    rows = list(next(iter(tasks.values())))
    for name, title in (("decisions", "right decisions"), ("whole", "episodes with all decisions right")):
        cells = [[row, *(_cell(tasks[task][row].get(name)) for task in tasks)] for row in rows]
        chances = ["chance", *(f"{chance(task, name):.2f}" for task in tasks)]
        yield table(f"{title}, {figures['seeds']} seeds", ["memory", *tasks], [chances, *cells])
    for delay in (f"{laps}x" for laps in LAPS):
        if any(delay in tasks[task][row] for task in tasks for row in rows):
            cells = [
                [row, *(_cell(tasks[task][row].get(delay, {}).get("decisions")) for task in tasks)] for row in rows
            ]
            yield table(f"right decisions after {delay} the trained delay", ["memory", *tasks], cells)
    written = [row for row in rows if any("writes_per_s" in tasks[task][row] for task in tasks)]
    if written:
        rates = [[row, *(_rate(tasks[task][row]) for task in tasks)] for row in written]
        yield table("writes a second", ["memory", *tasks], rates)
    yield from (f"{t}: {r} took {_counted(tasks[t][r]['taken'])}" for t in tasks for r in rows if r == AUTO)
    yield from (f"{name}: {why}" for name, why in figures["failed"].items())


def chance(task: str, name: str) -> float:
    """What is right without the cue: at each decision the answer of most twins, or one twin's whole episode."""
    twins = [twin.answers for twin in Scenario(task, 0, 0).twins()]
    if name == "whole":
        return 1 / len(twins)
    asked = [answers for answers in zip(*twins, strict=True) if len(set(answers)) > 1]
    return sum(max(map(answers.count, answers)) / len(twins) for answers in asked) / len(asked)


def _counted(taken: Figures) -> str:
    return ", ".join(f"{name} ({seeds})" for name, seeds in taken.items()) or "nothing yet"


def _rate(found: Figures) -> str:
    return f"{found['writes_per_s']:.2f}" if "writes_per_s" in found else ""


def _cell(found: Figures | None) -> str:
    if not found:
        return ""
    low, high = found["ci95"]
    return f"{found['share']:.2f} ({found['right']}/{found['count']}), {low:.2f} to {high:.2f}"
