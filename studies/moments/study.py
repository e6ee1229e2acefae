"""Moments that nobody annotated: how well they are found, and what a memory reaches that is trained on them."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

from rich.table import Table

from studies import options
from studies.grid import Figures, Store, say
from studies.moments.finding import CONTROLS, FINDERS, Case, find_in
from studies.moments.scenes import fresh, read, without_twins
from studies.moments.training import MEMORIES, TRAININGS, Job, measure
from studies.tables import table
from trace_memory_ros.arm.sim.names import TASK_NAMES
from trace_memory_ros.learning.recipe import MemoryFirst
from trace_memory_ros.measure.statistics import wilson_interval

SCHEMA = 2
SIZES = (75, 150)
FRESH, FRESH_BY_TASK = 40, {"sequence": 60}
"""Episodes that trainings are judged by; of more where trainings differ by little."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Tasks, sizes, memories, parts."""
    options.add_names(parser, "--tasks", TASK_NAMES, "tasks")
    options.add_names(parser, "--memories", MEMORIES, "memories")
    options.add_names(parser, "--trainings", TRAININGS, "what is known of decisions")
    options.add_names(parser, "--sizes", map(str, SIZES), "numbers of bags")
    options.add_names(parser, "--parts", ("finding", "training"), "parts")
    options.add_counts(parser, seeds=(3, "training seeds"))
    parser.add_argument("--bags", type=Path, default=Path("out/bags"), help="where bags are recorded (out/bags)")
    parser.add_argument("--report", action="store_true", help="measure nothing, tabulate what is there")


def run(
    out_dir: Path,
    quick: bool,
    tasks: tuple[str, ...] = TASK_NAMES,
    memories: tuple[str, ...] = tuple(MEMORIES),
    trainings: tuple[str, ...] = TRAININGS,
    sizes: tuple[str, ...] = tuple(map(str, SIZES)),
    parts: tuple[str, ...] = ("finding", "training"),
    seeds: int = 3,
    bags: Path = Path("out/bags"),
    report: bool = False,
) -> Figures:
    """Find moments and train on them; kept parts are not done again."""
    first, counts = MemoryFirst(), [int(size) for size in sizes]
    unseen = {task: FRESH_BY_TASK.get(task, FRESH) for task in tasks}
    if quick:
        first = MemoryFirst((4.0, 1.0), stage_steps=2, attempts=1)
        tasks, memories, counts, seeds = tasks[:1], memories[:1], [12], 1
        unseen = dict.fromkeys(tasks, 2)
    store = Store(out_dir / "parts")
    cases = [Case(name, task, count) for count in counts for name in FINDERS for task in (*tasks, *CONTROLS)]
    jobs = [
        Job(task, count, decisions, memory, seed)
        for count in counts
        for seed in range(seeds)
        for task in tasks
        for decisions in trainings
        for memory in memories
    ]
    settings = {"schema": SCHEMA, "recipe": str(first), "scenes": FRESH}
    found, trained = {}, {}
    for case in cases if "finding" in parts else ():
        part = str(case).replace(" ", "-")
        kept = store.read(part, settings) if report else store.get(part, settings, partial(find_in, case, bags))
        if kept is not None:
            found[str(case)] = kept
            say(f"{case}: {kept['words']}")
    for job in jobs if "training" in parts else ():
        part, scenes = str(job).replace(" ", "-"), unseen[job.task]
        judged, train = {**settings, "scenes": scenes}, partial(_train, job, bags, scenes, first)
        kept = store.read(part, judged) if report else store.get(part, judged, train)
        if kept is not None:
            trained[str(job)] = kept
            say(f"{job}: {kept['right']} of {kept['decisions']}")
    return {"seeds": seeds, "finding": found, "training": _by_row(jobs, trained), "runs": trained}


def _train(job: Job, bags: Path, scenes: int, first: MemoryFirst) -> Figures:
    data = read(tuple(without_twins(job.task, job.bags)), bags)
    return measure(job, data, read(tuple(fresh(job.task, scenes)), bags), first)


def _by_row(jobs: list[Job], trained: Figures) -> Figures:
    """Right decisions over all seeds, by everything else."""
    rows: dict[str, list[Figures]] = {}
    for job in jobs:
        if str(job) in trained:
            name = str(replace(job, seed=0)).removesuffix(" seed 0")
            rows.setdefault(name, []).append(trained[str(job)])
    return {name: _pooled(runs) for name, runs in rows.items()}


def _pooled(runs: list[Figures]) -> Figures:
    right, decisions = sum(run["right"] for run in runs), sum(run["decisions"] for run in runs)
    return {
        "share": right / decisions,
        # The same fresh episodes for every seed, which makes nothing surer.
        "ci95": list(wilson_interval(right / len(runs), decisions / len(runs))),
        "right": right,
        "decisions": decisions,
        "by_seed": [run["right"] / run["decisions"] for run in runs],
        "training_cpu_s": sum(run["training_cpu_s"] for run in runs) / len(runs),
    }


def tables(figures: Figures) -> Iterator[Table]:
    """What was found, and what was learned from it."""
    columns = ("how, task, bags", "annotated", "found within 5 ticks", "agree", "extra", "verdict", "CPU s")
    rows = [
        (name, f["annotated"], f["within"], f["agree"], f["extra"], f["words"], f"{f['cpu_s']:.0f}")
        for name, f in figures["finding"].items()
    ]
    if rows:
        yield table("moments found", columns, rows)
    found = [
        (
            name,
            f"{f['share']:.2f} ({f['ci95'][0]:.2f}-{f['ci95'][1]:.2f})",
            f"{f['right']}/{f['decisions']}",
            " ".join(f"{share:.2f}" for share in f["by_seed"]),
            f"{f['training_cpu_s']:.0f}",
        )
        for name, f in figures["training"].items()
    ]
    if found:
        yield table(
            "right decisions on fresh bags",
            ("task, bags, decisions, memory", "share", "right", "seeds", "CPU s"),
            found,
        )
