"""Few demonstrations: which memory, window and noise hold on fresh bags of robots that nobody here owns."""

from __future__ import annotations

import argparse
import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import torch
from rich.table import Table

from studies import options
from studies.few_demonstrations.sources import FRESH, GUIDED, TASKS, TRAIN, data_of, delayed, sources
from studies.grid import Figures, Store, say
from studies.scenes import LAPS
from studies.tables import table
from studies.writes import writes_per_s
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, Split, deal_scenes
from trace_memory_ros.learning.bags.design import MEMORY_SHIFT, BagOptions
from trace_memory_ros.learning.bags.training import Prepared, prepare_split
from trace_memory_ros.learning.decisions.branch_accuracy import judge
from trace_memory_ros.learning.decisions.by_heart import probe_address, warnings
from trace_memory_ros.learning.decisions.candidates import Candidate, Trial
from trace_memory_ros.learning.decisions.cross_validation import cross_validate
from trace_memory_ros.learning.recipe import Augmentation, MemoryFirst, Recipe
from trace_memory_ros.learning.selection import learn_alone
from trace_memory_ros.learning.sizes import AUTO, LADDER
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.runtime.window import PathWindow

SCHEMA = 5
"""Of the bags and of what is found on them."""
SIZES = {
    "mobile_manipulator": (24, 48),
    "six_axis_gripper": (24, 48),
    "two_arms_wrench": (24, 48),
    "origin": (75,),
    "colour": (75,),
    **dict.fromkeys(GUIDED, (24,)),
}
"""Bags to train on, by source."""
WINDOW = PathWindow(stretches=8)
SECONDS = 8.0
DELAYED = 8
"""Bags of each longer delay: an episode of 16 laps lasts five minutes."""
USUAL = Recipe(augmentation=Augmentation(memory_shift=MEMORY_SHIFT))
"""What `trace-memory train BAGS` learns by."""
QUICK_RECIPE = Recipe(memory_first=MemoryFirst(clock_factors=(4.0, 1.0), stage_steps=2, check_steps=1, attempts=1))


@dataclass(frozen=True)
class Row:
    """A memory, and how much of the training's usual noise is laid over its signatures and states.

    options: of the memory, None for the usual ones.
    """

    memory: str
    window: PathWindow | None = None
    signature_noise: float = 1.0
    state_noise: float = 1.0
    options: Mapping[str, Any] | None = None


ROWS = {
    "none": Row("none"),
    "first_frame": Row("first_frame"),
    "last_k": Row("last_k"),
    "gru": Row("gru"),
    "gru+cache": Row("gru+cache"),
    "gru+gate": Row("gru+gate"),
    "gru+gate_updates": Row("gru+gate", options={"writes_per_s": None}),
    "aura": Row("aura"),
    "vla": Row("vla"),
    "elmur": Row("elmur"),
    "prism": Row("prism"),
    "trace": Row("trace"),
    "trace_window": Row("trace", WINDOW),
    "trace_noise_10": Row("trace", None, 10.0),
    "trace_window_noise_10": Row("trace", WINDOW, 10.0),
    "trace_window_noise_10_state_10": Row("trace", WINDOW, 10.0, 10.0),
    "trace_window_noise_30": Row("trace", WINDOW, 30.0),
    "gru_state_10": Row("gru", None, 1.0, 10.0),
    AUTO: Row(AUTO),
}

FOLDED = ("gru", "trace")
"""Rows of which it is asked what cross-validation would have said."""


@dataclass(frozen=True)
class Job:
    """One training on `bags` bags of a source."""

    source: str
    bags: int
    row: str
    seed: int

    def __str__(self) -> str:
        return f"{self.source}-{self.bags}-{self.row}-{self.seed}"


@dataclass(frozen=True)
class FewPlan:
    """What a call is decided by."""

    fresh: int
    seconds: float
    recipe: Recipe
    out_dir: Path
    delays: bool = False

    def settings(self, job: Job) -> Figures:
        """What a job's figures depend on."""
        recipe = {"memory_first": asdict(self.recipe.memory_first), "augmentation": asdict(self.recipe.augmentation)}
        sizes = {"fresh": self.fresh, "seconds": self.seconds, "recipe": recipe}
        sizes |= {"delayed": DELAYED} if self.delays and job.source in TASKS else {}
        sizes |= {"among": list(LADDER)} if job.row == AUTO else {}
        return {"schema": SCHEMA, "row": str(ROWS[job.row]), **sizes}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Sources, rows, sizes, seeds."""
    options.add_names(parser, "--sources", SIZES, "sources of bags")
    options.add_names(parser, "--rows", ROWS, "rows")
    options.add_counts(parser, seeds=(1, "training seeds"), fresh=(40, "bags that no training sees"))
    parser.add_argument("--fewest", action="store_true", help="train on the fewest bags of each source alone")
    parser.add_argument(
        "--folds", action="store_true", help=f"cross-validate {', '.join(FOLDED)} on the fewest bags too"
    )
    parser.add_argument("--delays", action="store_true", help="ask memories of the arm's tasks after 4 and 16 laps too")
    parser.add_argument("--report", action="store_true", help="train nothing, tabulate what is there")


def run(
    out_dir: Path,
    quick: bool,
    sources: tuple[str, ...],
    rows: tuple[str, ...],
    seeds: int,
    fresh: int,
    fewest: bool,
    folds: bool,
    delays: bool,
    report: bool,
) -> Figures:
    """Record bags, train each row's memory and judge it on fresh bags; kept trainings are not done again."""
    plan = FewPlan(fresh, SECONDS, USUAL, out_dir, delays)
    sizes = {name: SIZES[name][:1] if fewest else SIZES[name] for name in sources}
    if quick:
        plan = replace(plan, fresh=2, seconds=4.0, recipe=QUICK_RECIPE, delays=False)
        sizes = dict.fromkeys(sources, (4,))
    jobs = [
        Job(source, bags, row, seed)
        for seed in range(seeds)
        for row in rows
        for source, counts in sizes.items()
        for bags in counts
    ]
    store, found = Store(out_dir / "rows"), {}
    for job in jobs:
        settings = plan.settings(job)
        kept = store.read(str(job), settings)
        if kept is None and not report:
            kept = store.write(str(job), settings, measure(plan, job))
            right = Accuracy.of(kept["right"], kept["count"])
            say(f"{job}: fresh {right}, train {kept['train']}, {kept['cpu_s']:.0f} s")
        if kept is not None:
            found[job] = kept
        if folds and job.bags == min(sizes[job.source]) and job.row in FOLDED and job.seed == 0:
            fold = partial(cross_validated, plan, job)
            folded = store.read(f"{job}-folds", settings) if report else store.get(f"{job}-folds", settings, fold)
            found |= {job: {**kept, "cross_validation": folded}} if kept and folded else {}
    return {"fresh": plan.fresh, "seconds": plan.seconds, "cells": _cells(sizes, rows, found), "chance": 0.5}


def measure(plan: FewPlan, job: Job) -> Figures:
    """Train the job's memory on all its bags and let it decide on fresh ones, which nothing was chosen by.

    That of `auto` is what the job's bags choose, by cross-validation.
    """
    if job.row == AUTO:
        chosen = cross_validated(plan, job)
        return {**measure(plan, replace(job, row=chosen["memory"])), "cross_validation": chosen}
    row, recording = ROWS[job.row], sources(plan.seconds)[job.source].recording
    train = _bags(plan, job, TRAIN, job.bags)
    prepared = _beside(plan, row, recording, train, _bags(plan, job, FRESH, plan.fresh))
    begun = time.process_time()
    alone = learn_alone(prepared.planned, prepared.held_out, job.seed)
    spent = time.process_time() - begun
    with torch.no_grad():
        later = {
            str(laps): judge(alone.model, _beside(plan, row, recording, train, bags).data.held_out).accuracy
            for laps, bags in (_delayed(plan, job) if plan.delays and job.source in TASKS else ())
        }
    decided, trained = alone.trial.held_out, alone.trial.train
    assert decided is not None
    asked = prepared.held_out
    probe = probe_address(alone.model, alone.agent.memory, prepared.data.training, prepared.recipe)
    return {
        "right": decided.right,
        "count": decided.count,
        "delays": {laps: {"right": a.right, "count": a.count} for laps, a in later.items() if a is not None},
        "chunk_error": alone.trial.chunk_error,
        "train": str(trained),
        "steps": alone.steps,
        "attempts": alone.attempts,
        "cpu_s": spent,
        "writes_per_s": writes_per_s(alone.agent, asked, ([i] for i in range(len(asked.data.episodes)))),
        "address_probe": None if probe is None else probe.to_dict(),
        "warned": bool(warnings(trained, None, probe)),
    }


def cross_validated(plan: FewPlan, job: Job) -> Figures:
    """What a training on the job's bags would say of itself: its folds' decisions, and whether it would warn."""
    row, recording = ROWS[job.row], sources(plan.seconds)[job.source].recording
    train = _bags(plan, job, TRAIN, job.bags)
    folds = deal_scenes(train.episodes, 0)

    def trial(fold: int, candidate: Candidate) -> Trial:
        inside = [episode.scene in folds[fold] for episode in train.episodes]
        sides = ([i for i, held in enumerate(inside) if held == side] for side in (False, True))
        chosen = Split(next(sides), [], next(sides))
        prepared = _prepared(plan, replace(row, memory=candidate.memory), recording, train, chosen)
        return learn_alone(prepared.planned, prepared.held_out, job.seed, longer=job.row == AUTO).trial

    names = LADDER if job.row == AUTO else (row.memory,)
    found = cross_validate(len(folds), [Candidate(name, row.signature_noise) for name in names], trial)
    assert found is not None
    say(f"{job}: cross-validated {found.chosen} {found.accuracy}")
    return {**found.to_dict(), "warned": bool(warnings(found.train, found.accuracy))}


def _bags(plan: FewPlan, job: Job, kind: str, count: int) -> BagData:
    return data_of(job.source, plan.out_dir / f"bags_{SCHEMA}", plan.out_dir / "cache", kind, count, plan.seconds)


def _delayed(plan: FewPlan, job: Job) -> Iterator[tuple[int, BagData]]:
    """Fresh bags of each longer delay."""
    for laps in LAPS:
        yield laps, _bags(plan, replace(job, source=delayed(job.source, laps)), FRESH, DELAYED)


def _beside(plan: FewPlan, row: Row, recording: RecordingConfig, train: BagData, fresh: BagData) -> Prepared:
    """All bags to train on, and fresh ones as what is held out."""
    both, count = replace(train, episodes=train.episodes + fresh.episodes), len(train.episodes)
    chosen = Split(list(range(count)), [], list(range(count, len(both.episodes))))
    return _prepared(plan, row, recording, both, chosen)


def _prepared(plan: FewPlan, row: Row, recording: RecordingConfig, data: BagData, chosen: Split) -> Prepared:
    """The row's design, data, and recipe with its noise."""
    options = BagOptions(row.memory, window=row.window, memory_options=row.options)
    found = prepare_split(data, recording, options, plan.recipe, chosen)
    noise = found.recipe.augmentation.stronger(row.signature_noise, row.state_noise)
    return replace(found, recipe=replace(found.recipe, augmentation=noise))


def _cells(sizes: Figures, rows: tuple[str, ...], found: dict[Job, Figures]) -> Figures:
    """By source, bags and row: the decisions of all seeds together, and of each."""
    out: Figures = {}
    for source, bags in ((source, bags) for source, counts in sizes.items() for bags in counts):
        cell = out.setdefault(f"{source}, {bags} bags", {})
        for row in rows:
            runs = [kept for job, kept in found.items() if (job.source, job.bags, job.row) == (source, bags, row)]
            if runs:
                rate = sum(run["writes_per_s"] for run in runs) / len(runs)
                cell[row] = {**_together(runs), "writes_per_s": rate, "seeds": runs}
    return out


def _together(runs: Sequence[Figures]) -> Figures:
    """Decisions of several trainings, all of which were asked about the same bags."""
    return Accuracy.asked_again(Accuracy.of(run["right"], run["count"]) for run in runs).to_dict()


def tables(figures: Figures) -> Iterator[Table]:
    """Right decisions on fresh bags, how often was written, and what cross-validation says beside them."""
    names = [name for name in ROWS if any(name in cell for cell in figures["cells"].values())]
    rows = [[where, *(_text(cell.get(name)) for name in names)] for where, cell in figures["cells"].items()]
    yield table("right decisions on fresh bags, memory-first phase alone", ["trained on", *names], rows)
    rates = [
        [where, *(f"{cell[name]['writes_per_s']:.2f}" if name in cell else "-" for name in names)]
        for where, cell in figures["cells"].items()
    ]
    yield table("writes a second", ["trained on", *names], rates)
    later = [
        [where, name, *(_share(_together([run["delays"][str(laps)] for run in found["seeds"]])) for laps in LAPS)]
        for where, cell in figures["cells"].items()
        for name, found in cell.items()
        if all(run.get("delays") for run in found["seeds"])
    ]
    if later:
        yield table("right decisions after longer delays", ["trained on", "row", *(f"{n}x" for n in LAPS)], later)
    folded = [
        [
            where,
            name,
            run["cross_validation"]["memory"],
            _share(run["cross_validation"]["accuracy"]),
            _share(_together([run])),
            run["cross_validation"]["warned"],
        ]
        for where, cell in figures["cells"].items()
        for name, found in cell.items()
        for run in found["seeds"]
        if "cross_validation" in run
    ]
    if folded:
        yield table(
            "what a training says of itself",
            ["trained on", "row", "took", "cross-validated", "fresh", "warned"],
            folded,
        )


def _text(cell: Figures | None) -> str:
    if cell is None:
        return "-"
    by_seed = ", ".join(str(run["right"]) for run in cell["seeds"])
    return f"{_share(cell)} [{by_seed}]" if len(cell["seeds"]) > 1 else _share(cell)


def _share(found: Figures) -> str:
    return f"{found['right']}/{found['count']} ({found['ci95'][0]:.2f} to {found['ci95'][1]:.2f})"
