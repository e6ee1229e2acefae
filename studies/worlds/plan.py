"""The grid of a world's study: every row learns every task from its teacher and then plays it."""

from __future__ import annotations

import argparse
import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from itertools import groupby
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from studies import options
from studies.grid import HERE, Figures, Store, digest, do, say
from studies.tables import table, two_level
from studies.worlds.client import Lessons, World
from studies.worlds.environment import FOLDER, Unavailable, interpreter
from studies.worlds.model import WorldPolicy
from studies.worlds.rows import AUTO, ROWS
from studies.worlds.training import Imitation, imitate, judge, play
from trace_memory_ros.learning.decisions.candidates import simplest
from trace_memory_ros.learning.sizes import LADDER
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.measure.workers import do_all

SCHEMA = 1
FIRST_JUDGED = 1_000_000
"""Of the episodes that are judged; those of the teacher's lessons begin at 0."""
TEACHER = "teacher"
"""The row that everything is measured beside."""
Lecture = Callable[[str, int, int, float], Lessons]
"""A teacher's lessons of a task, so many episodes, ticks and so much disturbed (`Imitation`)."""


@dataclass(frozen=True)
class Job:
    """One training and its closed loops; the row `teacher` is trained by nobody."""

    task: str
    row: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} {self.row} seed {self.seed}"


def _usual(task: str, row: str) -> Imitation:
    return Imitation()


def _alone(task: str) -> Mapping[str, str]:
    return {"learned": task}


@dataclass(frozen=True)
class WorldPlan:
    """The grid. score: what is reported of an episode, its `returns` or its `successes`. recipe_of: by task and row, a
    function of a module where there are several workers.

    seeds: of trainings; the teacher has none. variants: of a task by name, as the world calls them; the first is
    learned, all are played. writes: see `WorldPolicy`.
    """

    out_dir: Path
    tasks: tuple[str, ...]
    rows: tuple[str, ...]
    seeds: Sequence[int]
    episodes: int
    score: str
    recipe_of: Callable[[str, str], Imitation] = _usual
    variants: Callable[[str], Mapping[str, str]] = _alone
    writes: int | None = None

    def jobs(self) -> list[Job]:
        """All trainings: whole seeds first, and whole tasks of them, so that a task's rows can be compared."""
        return [
            Job(task, row, 0 if row == TEACHER else seed)
            for seed in self.seeds
            for task in self.tasks
            for row in (TEACHER, *self.rows)
            if row != TEACHER or seed == self.seeds[0]
        ]

    def settings(self, job: Job) -> Figures:
        """What a job's figures depend on."""
        found: Figures = {"schema": SCHEMA, "episodes": self.episodes, "score": self.score}
        if len(variants := self.variants(job.task)) > 1:
            found["variants"] = dict(variants)
        if job.row != TEACHER:
            found |= {"row": asdict(ROWS[job.row]), "recipe": asdict(self.recipe_of(job.task, job.row))}
            found |= {} if self.writes is None else {"writes": self.writes}
        return found

    def folder(self, job: Job) -> Path:
        """Where a job's figures are kept."""
        return self.out_dir / "runs" / f"{job.task}-{job.row}-{job.seed}-{digest(self.settings(job))}"

    def found(self, job: Job) -> Figures | None:
        """A job's figures, None where there are none yet."""
        return Store(self.folder(job)).read("figures", self.settings(job))


def add_options(parser: argparse.ArgumentParser, name: str, memories: tuple[str, ...], episodes: int) -> None:
    """What every world's study is asked; name: of the folder of its Python packages. memories: rows by default."""
    options.add_names(parser, "--memories", (*ROWS, TEACHER), "rows beside the teacher, or that one alone")
    parser.set_defaults(memories=memories)
    options.add_counts(parser, seeds=(1, "training seeds"), episodes=(episodes, "closed-loop episodes a training"))
    parser.add_argument("--first-seed", type=options.whole, default=0, help="of the training seeds (default: 0)")
    options.add_workers(parser)
    parser.add_argument("--report", action="store_true", help="train and play nothing, tabulate what is there")
    parser.add_argument(
        "--packages", type=Path, default=FOLDER / name, help="environment of the world's packages, made if missing"
    )


def trained(memories: Sequence[str]) -> tuple[str, ...]:
    """The rows that are asked for beside the teacher's."""
    return tuple(name for name in memories if name != TEACHER)


def skipped(plan: WorldPlan, requirements: Path, packages: Path, module: str, workers: int) -> Figures | None:
    """Do what is missing, each worker in a world of its own that `module` serves; why not, where none can be had."""
    try:
        python = interpreter(requirements, packages)
        with World(python, module) as world:
            world.describe(_learned(plan, plan.tasks[0]))
        work = partial(carry_out, plan, python, module)
        if workers == 1:
            work(plan.jobs())
            return None
        # Trainings of one task share their lessons.
        together = [list(jobs) for _, jobs in groupby(plan.jobs(), key=lambda job: (job.seed, job.task))]
        for jobs, reason in do_all(work, together, workers, lambda _: None):
            say(f"{jobs[0].task} seed {jobs[0].seed}: FAILED, {reason}")
    except Unavailable as error:
        return {"skipped": str(error)}
    return None


def carry_out(plan: WorldPlan, python: Path, module: str, jobs: Sequence[Job]) -> None:
    """Do of `jobs` what is missing, in this process, whose threads it sets to one."""
    torch.set_num_threads(1)
    with World(python, module) as world:
        lessons = lru_cache(maxsize=1)(partial(_lessons, plan, world))
        do(partial(_measured, plan, world, lessons), jobs, plan.folder, HERE)


def _lessons(plan: WorldPlan, world: World, task: str, episodes: int, prefix: int, disturbed: float) -> Lessons:
    return world.teach(_learned(plan, task), range(episodes), prefix, disturbed)


def _learned(plan: WorldPlan, task: str) -> str:
    return next(iter(plan.variants(task).values()))


def _measured(plan: WorldPlan, world: World, lessons: Lecture, job: Job, store: Store) -> str:
    measure = partial(_teacher, plan, world, job) if job.row == TEACHER else partial(_row, plan, world, lessons, job)
    scores = store.get("figures", plan.settings(job), measure)["scores"]
    return f"{sum(scores) / len(scores):+.3f}"


def _teacher(plan: WorldPlan, world: World, job: Job) -> Figures:
    seeds = range(FIRST_JUDGED, FIRST_JUDGED + plan.episodes)
    scores = _scores({name: world.judge(task, seeds)[plan.score] for name, task in plan.variants(job.task).items()})
    return {**scores, "words": world.describe(_learned(plan, job.task)).teacher}


def _scores(judged: Mapping[str, Sequence[float]]) -> Figures:
    first, *others = ({name: list(map(float, scores))} for name, scores in judged.items())
    return {"scores": next(iter(first.values())), "elsewhere": {k: v for other in others for k, v in other.items()}}


def _row(plan: WorldPlan, world: World, lessons: Lecture, job: Job) -> Figures:
    begun = time.process_time()
    torch.manual_seed(job.seed)
    words = world.describe(_learned(plan, job.task))
    recipe = plan.recipe_of(job.task, job.row)
    given = lessons(job.task, recipe.episodes + recipe.validation, recipe.prefix, recipe.disturbed)
    taught, others = given.of(slice(recipe.episodes)), given.of(slice(recipe.episodes, None))
    policy = WorldPolicy(ROWS[job.row], words, taught, plan.writes)
    imitate(policy, taught, recipe, job.seed)
    learned = time.process_time()
    imitated = judge(policy, others)
    seeds = range(FIRST_JUDGED, FIRST_JUDGED + plan.episodes)
    return {
        **_scores({n: getattr(play(policy, world, t, seeds), plan.score) for n, t in plan.variants(job.task).items()}),
        **imitated._asdict(),
        "parameters": sum(p.numel() for p in policy.memory.parameters()),
        "state_bytes": policy.memory.state_bytes,
        "training_cpu_s": learned - begun,
        "playing_cpu_s": time.process_time() - learned,
    }


def figures_of(plan: WorldPlan, groups: Mapping[str, Sequence[str]]) -> Figures:
    """Scores by task and row; means by group of tasks and the sum of all, of rows that have every task begun there.

    Beside them the rows' options and the recipes.
    """
    tasks = {task: found for task in plan.tasks if (found := _task(plan, task))["rows"]}
    begun = [task for task, found in tasks.items() if set(found["rows"]) != {TEACHER}]
    inside = {group: [task for task in members if task in begun] for group, members in groups.items()}
    recipes = [plan.recipe_of(task, row) for task in plan.tasks for row in plan.rows]
    return {
        "seeds": list(plan.seeds),
        "episodes_per_seed": plan.episodes,
        "score": plan.score,
        "first_seed_of_judged_episodes": FIRST_JUDGED,
        "tasks": tasks,
        "means": {group: _together(tasks, chosen, 1 / len(chosen)) for group, chosen in inside.items() if chosen},
        "sum": _together(tasks, begun, 1.0),
        "recipes": {digest(asdict(recipe)): asdict(recipe) for recipe in recipes},
        "rows": {row: asdict(ROWS[row]) for row in plan.rows},
    }


def _task(plan: WorldPlan, task: str) -> Figures:
    rows = {row: _cell(found, plan.score) for row in (TEACHER, *plan.rows) if (found := _seeds(plan, task, row))}
    if chosen := _chosen(plan, task):
        taken = [found for _, found in chosen]
        rows[AUTO] = {**_cell(taken, plan.score), "taken": [name for name, _ in chosen]}
    words = plan.found(Job(task, TEACHER, 0)) or {}
    recipes = {row: digest(asdict(plan.recipe_of(task, row))) for row in plan.rows}
    return {"teacher": words.get("words"), "recipes": recipes, "rows": rows}


def _seeds(plan: WorldPlan, task: str, row: str) -> list[Figures]:
    seeds = (0,) if row == TEACHER else plan.seeds
    return [found for seed in seeds if (found := plan.found(Job(task, row, seed)))]


def _chosen(plan: WorldPlan, task: str) -> list[tuple[str, Figures]]:
    """Of each seed with all candidates of `auto`, which imitates lessons that none had, and its figures."""
    found = []
    for seed in plan.seeds:
        candidates = [plan.found(Job(task, row, seed)) for row in LADDER if row in plan.rows]
        there = [one for one in candidates if one is not None]
        if len(there) == len(LADDER):
            index = simplest([one["loss"] for one in there])
            found.append((LADDER[index], there[index]))
    return found


def _cell(seeds: Sequence[Figures], score: str) -> Figures:
    """The scores of a row's seeds, with a bootstrap interval over seeds and episodes."""
    shares = score == "successes"
    cell = _summary([found["scores"] for found in seeds], shares)
    if others := seeds[0].get("elsewhere"):
        cell["elsewhere"] = {name: _summary([found["elsewhere"][name] for found in seeds], shares) for name in others}
    for name in ("loss", "agreement", "write_share", "parameters", "state_bytes", "training_cpu_s"):
        if name in seeds[0]:
            mean = sum(found[name] for found in seeds) / len(seeds)
            # A training whose loss became no number still plays, and its score says how.
            cell[name] = mean if math.isfinite(mean) else None
    return cell


def _summary(scores: Sequence[Sequence[float]], shares: bool) -> Figures:
    """Mean and interval over seeds and episodes, the same for all; of shares the wider of that and Wilson's."""
    by_seed = [sum(each) / len(each) for each in scores]
    low, high = two_level(scores, alike=True)
    if shares:
        wilson = wilson_interval(sum(by_seed) / len(by_seed) * len(scores[0]), len(scores[0]))
        low, high = min(low, wilson.low), max(high, wilson.high)
    return {"score": sum(by_seed) / len(by_seed), "ci95": [low, high], "by_seed": by_seed}


def _together(tasks: Figures, chosen: Sequence[str], scale: float) -> Figures:
    """Scaled sums over tasks; the half-width is the root of the summed squares of the tasks' own."""
    found = {}
    rows = dict.fromkeys(row for task in chosen for row in tasks[task]["rows"])
    for row in (row for row in rows if all(row in tasks[task]["rows"] for task in chosen)):
        cells = [tasks[task]["rows"][row] for task in chosen]
        total = scale * sum(cell["score"] for cell in cells)
        half = scale * math.sqrt(sum(((cell["ci95"][1] - cell["ci95"][0]) / 2) ** 2 for cell in cells))
        found[row] = {"score": total, "ci95": [total - half, total + half]}
    return {"tasks": list(chosen), "rows": found}


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


def elsewhere(figures: Figures, variant: str, title: str) -> Iterator[Table]:
    """A line per task of what was played but not learned."""
    tasks = {task: found["rows"] for task, found in figures.get("tasks", {}).items()}
    rows = list(dict.fromkeys(row for found in tasks.values() for row in found))
    cells = {t: {row: cell["elsewhere"][variant] for row, cell in found.items()} for t, found in tasks.items()}
    lines = [[task, *_line(found, rows)] for task, found in cells.items()]
    whole = [found for found in cells.values() if set(found) == set(rows)]
    means = {row: {"score": sum(f[row]["score"] for f in whole) / len(whole)} for row in rows} if whole else {}
    yield table(title, ["", *rows], [*lines, [f"mean ({len(whole)})", *_line(means, rows)]])


def _line(found: Mapping[str, Any], rows: Sequence[str]) -> list[str]:
    return [f"{found[row]['score']:+.2f}" if row in found else "" for row in rows]
