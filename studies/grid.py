"""The grid of a study: its runs, where the results of each are kept, and doing in processes what is missing."""

from __future__ import annotations

import hashlib
import json
import os
import re
import traceback
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Generic, NamedTuple, TypeVar

from rich.console import Console

from trace_memory_ros.files import atomic
from trace_memory_ros.measure.workers import do_all, reason_of

Figures = dict[str, Any]
Job = TypeVar("Job")

_FAILURE = "failure"
HERE = 0
"""Workers: none, everything is done in this process."""

console = Console()


def say(line: object) -> None:
    """Print a line of progress."""
    console.print(line, highlight=False, soft_wrap=True)


def cores() -> int:
    """Cores that this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def digest(content: object) -> str:
    """A short name for plain content."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()[:10]


class Store:
    """JSON files of one run's folder. A part counts only for the settings that it was measured with."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def read(self, part: str, settings: Figures | None = None) -> Figures | None:
        """A part's figures, or None where it is missing, damaged or of other settings (None: any)."""
        try:
            found = json.loads((self.folder / f"{part}.json").read_text(encoding="utf-8"))
            known = settings is None or found["settings"] == json.loads(json.dumps(settings))
            return dict(found["figures"]) if known else None
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def write(self, part: str, settings: Figures, figures: Figures) -> Figures:
        """Keep a part, in one move; returns `figures`."""
        self.folder.mkdir(parents=True, exist_ok=True)
        atomic.write(self.folder / f"{part}.json", json.dumps({"settings": settings, "figures": figures}, indent=1))
        return figures

    def get(self, part: str, settings: Figures, measure: Callable[[], Figures]) -> Figures:
        """The part as kept, or measured now and kept."""
        kept = self.read(part, settings)
        return kept if kept is not None else self.write(part, settings, measure())

    @property
    def failure(self) -> str | None:
        """Why the run that this folder belongs to has not come to its end; None where it has, or never began."""
        found = self.read(_FAILURE)
        return None if found is None else str(found["error"])

    def fail(self, error: BaseException | str) -> None:
        """Keep why the run failed."""
        if isinstance(error, str):
            self.write(_FAILURE, {}, {"error": error})
            return
        lines = traceback.format_exception(error)
        self.write(_FAILURE, {}, {"error": reason_of(error), "traceback": "".join(lines)})

    def succeed(self) -> None:
        """Forget a failure."""
        (self.folder / f"{_FAILURE}.json").unlink(missing_ok=True)


@dataclass(frozen=True)
class Run:
    """One training of a study: a task, a row of its table, a seed."""

    task: str
    row: str
    seed: int

    def __str__(self) -> str:
        return f"{self.task} {self.row} seed {self.seed}"


@dataclass(frozen=True, kw_only=True)
class Plan:
    """What a call of a study is decided by: every row is trained on every task with every seed.

    pairs: counterfactual evaluation pairs. demos: cache of demonstrations.
    """

    tasks: tuple[str, ...]
    rows: tuple[str, ...]
    seeds: tuple[int, ...]
    pairs: int
    out_dir: Path
    demos: Path

    def runs(self) -> list[Run]:
        """All trainings, whole tables of one seed first, so that what is there after an interruption is balanced."""
        return [Run(task, row, seed) for seed in self.seeds for row in self.rows for task in self.tasks]

    def run_folder(self, run: Run) -> Path:
        """Where a training and its results are kept: whatever else the training depends on is another folder."""
        name = f"{run.task}-{run.row}-{run.seed}".replace(" ", "-")
        return self.out_dir / "runs" / f"{name}-{digest(self.trained_by(run))}"

    def trained_by(self, run: Run) -> object:
        """Plain content that a training depends on besides task, row and seed."""
        raise NotImplementedError

    def settings(self) -> Figures:
        """What figures depend on besides the training."""
        raise NotImplementedError

    def stores(self, task: str, row: str) -> list[Store]:
        """Results of a row of a task, a store a seed."""
        return [Store(self.run_folder(Run(task, row, seed))) for seed in self.seeds]

    def missing(self, tasks: Mapping[str, Mapping[str, Figures]]) -> list[str]:
        """Task and row of those figures that lack some of their `runs`."""
        return [f"{t} {r}" for t, rows in tasks.items() for r, f in rows.items() if f["runs"] < len(self.seeds)]

    def failures(self, task: str, row: str) -> dict[str, str]:
        """Why seeds of a row have no results, by seed."""
        stores = zip(self.seeds, self.stores(task, row), strict=True)
        return {str(seed): failure for seed, store in stores if (failure := store.failure) is not None}


def parts(stores: Iterable[Store], part: str, settings: Figures | None = None) -> list[Figures]:
    """The figures of a part, of those stores that have it."""
    return [found for store in stores if (found := store.read(part, settings)) is not None]


def do(
    measure: Callable[[Job, Store], str],
    jobs: Sequence[Job],
    folder_of: Callable[[Job], Path],
    workers: int,
) -> None:
    """Do every job in `workers` processes (`HERE`: in this one); prints the line that `measure` returns.

    `measure` keeps what it finds, part by part, in the store that it is given, and asks that store first, so that an
    interrupted study goes on where it was. A failure is kept there too, the other jobs go on, and the next call tries
    again.
    """
    work = partial(_carry_out, measure, folder_of)
    if workers == HERE:
        for job in jobs:
            say(work(job))
        return
    for job, reason in do_all(work, jobs, workers, say):
        Store(folder_of(job)).fail(reason)
        say(f"{job}: FAILED, {reason}")


def _carry_out(measure: Callable[[Job, Store], str], folder_of: Callable[[Job], Path], job: Job) -> str:
    store = Store(folder_of(job))
    store.fail("unfinished: its process died or was interrupted")
    try:
        line = measure(job, store)
    except Exception as error:
        store.fail(error)
        return f"{job}: FAILED, {reason_of(error)}"
    store.succeed()
    return f"{job}: {line}"


class _Named(NamedTuple, Generic[Job]):
    name: str
    job: Job
    folder: Path

    def __str__(self) -> str:
        return self.name


def measure_all(
    measure: Callable[[Job], Figures],
    jobs: Mapping[str, Job],
    folder: Path,
    workers: int,
    words: Callable[[Figures], str],
    settings_of: Callable[[Job], str] = repr,
) -> dict[str, Figures]:
    """Figures of every job by name, where each has one part: kept by an earlier call in `folder`, or measured now.

    settings_of: what the figures of a job depend on; words: about figures, for the line that is printed.
    Raises RuntimeError naming the first job that failed; what the others found is kept.
    """
    named = [
        _Named(name, job, folder / f"{re.sub('[^a-z0-9]+', '_', name.lower())}-{digest(settings_of(job))}")
        for name, job in jobs.items()
    ]
    do(partial(_whole, measure, words), named, _folder, workers)
    stores = {job.name: Store(job.folder) for job in named}
    failed = [f"{name}: {store.failure}" for name, store in stores.items() if store.failure is not None]
    if failed:
        raise RuntimeError(
            f"{len(failed)} of {len(jobs)} measurements failed, first {failed[0]}; what the others found is kept in "
            f"{folder}: mend it and run the command again"
        )
    return {name: store.get("figures", {}, dict) for name, store in stores.items()}


def _whole(measure: Callable[[Job], Figures], words: Callable[[Figures], str], named: _Named[Job], store: Store) -> str:
    return words(store.get("figures", {}, lambda: measure(named.job)))


def _folder(named: _Named[Any]) -> Path:
    return named.folder
