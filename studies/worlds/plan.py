"""The grid of a world's study: every row learns every task from its teacher and then plays it."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from studies.grid import HERE, Figures, Store, digest, do, say
from studies.tables import table, two_level
from studies.worlds.client import Lessons, World
from studies.worlds.model import WorldPolicy
from studies.worlds.rows import ROWS
from studies.worlds.training import Imitation, imitate, play

SCHEMA = 1
FIRST_SEED = 1_000_000
"""Of the episodes that are judged; those of the teacher's lessons begin at 0."""
_TEACHER = "teacher"


@dataclass(frozen=True)
class Job:
    """One training and its closed loops; the row `teacher` is trained by nobody."""

    task: str
    row: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} {self.row} seed {self.seed}"


@dataclass(frozen=True)
class WorldPlan:
    """The grid. score: what is reported of an episode, its `returns` or its `successes`. recipe: by task."""

    out_dir: Path
    tasks: tuple[str, ...]
    rows: tuple[str, ...]
    seeds: int
    episodes: int
    score: str
    recipe_of: Callable[[str], Imitation] = field(default=lambda task: Imitation())

    def jobs(self) -> list[Job]:
        """All trainings: whole seeds first, and whole tasks of them, so that a task's rows can be compared."""
        rows = (_TEACHER, *self.rows)
        return [
            Job(task, row, seed)
            for seed in range(self.seeds)
            for task in self.tasks
            for row in rows
            if row != _TEACHER or seed == 0
        ]

    def settings(self, job: Job) -> Figures:
        """What a job's figures depend on."""
        found: Figures = {"schema": SCHEMA, "episodes": self.episodes, "score": self.score}
        if job.row != _TEACHER:
            found |= {"row": asdict(ROWS[job.row]), "recipe": asdict(self.recipe_of(job.task))}
        return found

    def folder(self, job: Job) -> Path:
        """Where a job's figures are kept."""
        return self.out_dir / "runs" / f"{job.task}-{job.row}-{job.seed}-{digest(self.settings(job))}"

    def found(self, job: Job) -> Figures | None:
        """A job's figures, None where there are none yet."""
        return Store(self.folder(job)).read("figures", self.settings(job))


def carry_out(plan: WorldPlan, world: World) -> None:
    """Do what is missing, in this process, whose threads it sets to one."""
    torch.set_num_threads(1)
    lessons = lru_cache(maxsize=1)(partial(_lessons, plan, world))
    do(partial(_measured, plan, world, lessons), plan.jobs(), plan.folder, HERE)


def _lessons(plan: WorldPlan, world: World, task: str) -> Lessons:
    recipe = plan.recipe_of(task)
    return world.teach(task, range(recipe.episodes), recipe.prefix)


def _measured(plan: WorldPlan, world: World, lessons: Callable[[str], Lessons], job: Job, store: Store) -> str:
    measure = partial(_teacher, plan, world, job) if job.row == _TEACHER else partial(_row, plan, world, lessons, job)
    scores = store.get("figures", plan.settings(job), measure)["scores"]
    return f"{sum(scores) / len(scores):+.3f}"


def _teacher(plan: WorldPlan, world: World, job: Job) -> Figures:
    judged = world.judge(job.task, range(FIRST_SEED, FIRST_SEED + plan.episodes))
    words = world.describe(job.task).teacher
    return {"scores": list(map(float, judged[plan.score])), "steps": judged["steps"], "words": words}


def _row(plan: WorldPlan, world: World, lessons: Callable[[str], Lessons], job: Job) -> Figures:
    begun = time.process_time()
    torch.manual_seed(job.seed)
    policy = WorldPolicy(ROWS[job.row], world.describe(job.task), lessons(job.task))
    progress = imitate(policy, lessons(job.task), plan.recipe_of(job.task), job.seed)
    learned = time.process_time()
    played = play(policy, world, job.task, range(FIRST_SEED, FIRST_SEED + plan.episodes))
    return {
        "scores": list(map(float, getattr(played, plan.score))),
        "steps": played.steps,
        **progress._asdict(),
        "parameters": sum(p.numel() for p in policy.memory.parameters()),
        "state_bytes": policy.memory.state_bytes,
        "training_cpu_s": learned - begun,
        "playing_cpu_s": time.process_time() - learned,
    }


def figures_of(plan: WorldPlan, groups: Mapping[str, Sequence[str]]) -> Figures:
    """Scores by task and row, means by group of tasks, sums over all tasks that every row has finished."""
    tasks = {task: _task(plan, task) for task in plan.tasks}
    whole = [task for task, found in tasks.items() if set(found["rows"]) >= {_TEACHER, *plan.rows}]
    if partly := [task for task, found in tasks.items() if found["rows"] and task not in whole]:
        say(f"left out of sums, since a row is missing: {', '.join(partly)}")
    figures: Figures = {
        "episodes_per_seed": plan.episodes,
        "score": plan.score,
        "first_seed_of_judged_episodes": FIRST_SEED,
        "tasks": {task: found for task, found in tasks.items() if found["rows"]},
        "sum": {"tasks": whole, "rows": _together(tasks, whole, 1.0)},
        "means": {},
        "recipes": {digest(asdict(recipe)): asdict(recipe) for recipe in map(plan.recipe_of, plan.tasks)},
    }
    for group, members in groups.items():
        if inside := [task for task in members if task in whole]:
            figures["means"][group] = {"tasks": inside, "rows": _together(tasks, inside, 1.0 / len(inside))}
    return figures


def _task(plan: WorldPlan, task: str) -> Figures:
    rows = {row: found for row in (_TEACHER, *plan.rows) if (found := _cell(plan, task, row))}
    words = plan.found(Job(task, _TEACHER, 0)) or {}
    return {"teacher": words.get("words"), "recipe": digest(asdict(plan.recipe_of(task))), "rows": rows}


def _cell(plan: WorldPlan, task: str, row: str) -> Figures | None:
    """The scores of a row's seeds, with a bootstrap interval over seeds and episodes."""
    seeds = [found for seed in range(plan.seeds) if (found := plan.found(Job(task, row, seed)))]
    if not seeds:
        return None
    scores = [found["scores"] for found in seeds]
    by_seed = [sum(each) / len(each) for each in scores]
    cell: Figures = {"score": sum(by_seed) / len(by_seed), "ci95": list(two_level(scores)), "by_seed": by_seed}
    for name in ("loss", "agreement", "write_share", "parameters", "state_bytes", "training_cpu_s"):
        if name in seeds[0]:
            cell[name] = sum(found[name] for found in seeds) / len(seeds)
    return cell


def _together(tasks: Figures, chosen: Sequence[str], scale: float) -> Figures:
    """Scaled sums over tasks; the half-width is the root of the summed squares of the tasks' own."""
    found = {}
    for row in tasks[chosen[0]]["rows"] if chosen else ():
        cells = [tasks[task]["rows"][row] for task in chosen]
        total = scale * sum(cell["score"] for cell in cells)
        half = scale * math.sqrt(sum(((cell["ci95"][1] - cell["ci95"][0]) / 2) ** 2 for cell in cells))
        found[row] = {"score": total, "ci95": [total - half, total + half]}
    return found


def tables(figures: Figures, title: str) -> Iterator[Table | str]:
    """A line per task, then the groups' means and the sum; why nothing was measured, where that is so."""
    if reason := figures.get("skipped"):
        yield f"skipped: {reason}"
        return
    rows = list(dict.fromkeys(row for found in figures["tasks"].values() for row in found["rows"]))
    lines = [[task, *_line(found["rows"], rows)] for task, found in figures["tasks"].items()]
    lines += [[f"mean, {name} ({len(f['tasks'])})", *_line(f["rows"], rows)] for name, f in figures["means"].items()]
    lines += [[f"sum ({len(figures['sum']['tasks'])})", *_line(figures["sum"]["rows"], rows)]]
    yield table(f"{title}, {figures['episodes_per_seed']} episodes a seed", ["", *rows], lines)


def _line(found: Mapping[str, Any], rows: Sequence[str]) -> list[str]:
    return [f"{found[row]['score']:+.2f}" if row in found else "" for row in rows]
