"""Many trainings that differ in seed, memory and recipe: what a sweep's file says, its runs, and one table of them."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.files import plain
from trace_memory_ros.files.strict import ConfigError, require_int
from trace_memory_ros.learning.run_config import merged, nested, read_file
from trace_memory_ros.measure.accuracy import LEAST
from trace_memory_ros.measure.statistics import Interval, t_interval
from trace_memory_ros.measure.summary import FILE_NAME, SummaryError, read_summary

USUAL = "usual"
LEARNED_FROM = "learned_from"
"""In a training's summary: a digest of its episodes and observation."""
ROWS = {"memory.name": "memories", "seed": "seeds"}
"""Values that differ between runs, and where they are given."""
OWN = {
    "--memory": "give it under memories",
    "--seed": "give it under seeds",
    "--out": "`trace-memory sweep --out` says where runs are kept",
}
TRAIN = (
    "import sys; from trace_memory_ros.files.parent import stop_with; stop_with({parent}); "
    "from trace_memory_ros.cli.main import main; sys.exit(main())"
)
"""A training that nobody waits for would go on, and write beside the one that takes its place."""
_STOPPED = 130


@dataclass(frozen=True)
class SweepConfig:
    """source, train: what every run gives `trace-memory train`, and further words for it; set: values of every run.

    recipes: by name, values that a row has besides. All memories are trained by all recipes with all seeds.
    """

    source: tuple[str, ...] = ()
    memories: tuple[str, ...] = ("trace",)
    seeds: tuple[int, ...] = (0, 1, 2)
    recipes: Mapping[str, Any] = field(default_factory=lambda: {USUAL: {}})
    set: Mapping[str, Any] = field(default_factory=dict)
    train: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        for name in ("source", "memories", "seeds", "recipes"):
            if not getattr(self, name):
                raise ConfigError(f"sweep: {name} is empty: give at least one")
        for name in ("memories", "seeds"):
            given = list(getattr(self, name))
            if twice := [one for one in given if given.count(one) > 1]:
                raise ConfigError(f"sweep: {name} has {twice[0]} twice: its runs would count twice; leave one out")
        for seed in self.seeds:
            require_int(seed, "sweep: seeds", 0)
        for name, values in self.recipes.items():
            if not isinstance(values, Mapping):
                raise ConfigError(f"sweep: recipes.{name} = {values!r}: must be a mapping, {{}} for what is usual")
            _check_rows({**self.set, **values}, f"set or recipes.{name}")
        for word in self.train:
            if word.partition("=")[0] in OWN:
                raise ConfigError(f"sweep: train has {word}, which is each run's own: {OWN[word.partition('=')[0]]}")

    @classmethod
    def load(cls, path: Path) -> SweepConfig:
        """Read a YAML file. Raises ConfigError naming what is unknown or wrong."""
        return plain.read(cls, read_file(path), str(path))

    def runs(self) -> list[Run]:
        """All trainings, whole tables of one seed first, so that what is there after an interruption is balanced."""
        return [
            Run(memory, recipe, seed, self._words(memory, seed, values), self._read)
            for seed in self.seeds
            for recipe, values in self.recipes.items()
            for memory in self.memories
        ]

    @cached_property
    def _read(self) -> tuple[str, ...]:
        """Hashes of the files that `train` names by `--recipe`: other values under the same name are other runs."""
        words = [part for word in self.train for part in word.split("=", 1)]
        files = [Path(path) for option, path in pairwise(words) if option == "--recipe"]
        return tuple(hashlib.sha256(file.read_bytes()).hexdigest() for file in files if file.is_file())

    def _words(self, memory: str, seed: int, values: Mapping[str, Any]) -> tuple[str, ...]:
        chosen = {**self.set, **values}
        assigned = [word for key, value in chosen.items() for word in ("--set", f"{key}={json.dumps(value)}")]
        return (*self.source, "--memory", memory, "--seed", str(seed), *self.train, *assigned)


@dataclass(frozen=True)
class Run:
    """One training. words: for `trace-memory train`, but where it is kept. read: hashes of files that these name."""

    memory: str
    recipe: str
    seed: int
    words: tuple[str, ...]
    read: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Of its folder: another sweep's run of other words is another folder."""
        digest = hashlib.sha256(json.dumps((*self.words, *self.read)).encode()).hexdigest()[:8]
        return f"{self.memory}-{self.recipe}-{self.seed}-{digest}".replace(" ", "-").replace("/", "-")

    def figures(self, out: Path) -> Mapping[str, Any] | None:
        """What its summary says; None where it has not come to its end."""
        try:
            return read_summary(out / self.name).figures
        except SummaryError:
            return None


def _check_rows(values: Mapping[str, Any], where: str) -> None:
    """Refuse values that would make a run another than its row says."""
    given = merged([nested(key, value) for key, value in values.items()])
    memory = given.get("memory")
    for key, found in (("memory.name", isinstance(memory, Mapping) and "name" in memory), ("seed", "seed" in given)):
        if found:
            raise ConfigError(f"sweep: {where} has {key}, which is each run's own: give it under {ROWS[key]}")


@dataclass(frozen=True)
class Job:
    """A run, where it is kept, and where it is started."""

    run: Run
    folder: Path
    place: Path


def carry_out(job: Job) -> tuple[Job, str]:
    """Train in a process of its own, going on where an interrupted run stopped; the job, and why it failed, if it did.

    What it prints is in a file beside its folder. It stops when this process ends.
    """
    job.folder.parent.mkdir(parents=True, exist_ok=True)
    command = [sys.executable, "-c", TRAIN.format(parent=os.getpid()), "train", *job.run.words]
    log = job.folder.with_name(f"{job.folder.name}.log")
    with log.open("w", encoding="utf-8") as said:
        done = subprocess.run(
            [*command, "--out", str(job.folder), "--resume"],
            check=False, cwd=job.place, stdout=said, stderr=subprocess.STDOUT,
        )  # fmt: skip
    if done.returncode == _STOPPED:
        return job, "interrupted: the same command goes on there"
    if done.returncode or not (job.folder / FILE_NAME).exists():
        lines = log.read_text(encoding="utf-8").strip().splitlines()
        return job, lines[-1] if lines else f"ended with status {done.returncode}"
    return job, ""


def outdated(config: SweepConfig, out: Path) -> dict[str, str]:
    """Runs that learned from other recordings than the newest one, and what to do: one table must not compare them."""
    found = {run: run.figures(out) or {} for run in config.runs()}
    runs = {run: figures[LEARNED_FROM] for run, figures in found.items() if figures.get(LEARNED_FROM)}
    if not runs:
        return {}
    newest = max(runs, key=lambda run: (out / run.name / FILE_NAME).stat().st_mtime_ns)
    reason = "learned from other recordings, or another observation, than {}: delete {} and sweep again"
    return {
        run.name: reason.format(newest.name, out / run.name)
        for run, learned_from in runs.items()
        if learned_from != runs[newest]
    }


def table(config: SweepConfig, out: Path, failed: Mapping[str, str]) -> list[dict[str, Any]]:
    """A row for each memory and recipe: what its seeds that are done reached, and why others failed.

    held_out: by folds where nothing was held out. Right decisions of all seeds together, which judge the same episodes:
    ci95 is the wider of the seeds' own intervals, on average, and Student's over seeds. minutes: of seeds that were
    trained without an interruption.
    """
    rows = []
    for recipe in config.recipes:
        for memory in config.memories:
            runs = [run for run in config.runs() if (run.memory, run.recipe) == (memory, recipe)]
            counted = (run for run in runs if run.name not in failed)
            done = [figures for run in counted if (figures := run.figures(out)) is not None]
            rows.append(
                {
                    "memory": memory,
                    "recipe": recipe,
                    "seeds": len(done),
                    "of": len(runs),
                    "held_out": _pooled([_never_looked_at(f) for f in done]),
                    "validation": _pooled([f.get("validation_branch_accuracy") for f in done]),
                    "held_out_chunk_error": _mean([f.get("held_out_chunk_error") for f in done]),
                    "minutes": _mean([f.get("training_minutes") for f in done if not f.get("resumed")]),
                    "failed": {str(run.seed): failed[run.name] for run in runs if run.name in failed},
                }
            )
    return rows


def _never_looked_at(figures: Mapping[str, Any]) -> Mapping[str, Any] | None:
    """The accuracy that chose nothing: of what was held out, or by folds."""
    held_out, folded = figures.get("held_out_branch_accuracy"), figures.get("cross_validation")
    accuracy: Mapping[str, Any] | None = held_out or (folded and folded["accuracy"])
    return accuracy


def _pooled(found: Sequence[Mapping[str, Any] | None]) -> dict[str, Any] | None:
    judged = [accuracy for accuracy in found if accuracy]
    if not judged:
        return None
    right, count = (sum(accuracy[key] for accuracy in judged) for key in ("right", "count"))
    values = [float(accuracy["value"]) for accuracy in judged]
    own = Interval(*(sum(accuracy["ci95"][end] for accuracy in judged) / len(judged) for end in (0, 1)))
    bounds = [own, *([t_interval(values)] if len(values) > 1 else [])]
    low, high = max(0.0, min(bound.low for bound in bounds)), min(1.0, max(bound.high for bound in bounds))
    mean, of_a_seed = sum(values) / len(values), max(accuracy["count"] for accuracy in judged)
    figures = {"value": mean, "right": right, "count": count, "of_a_seed": of_a_seed}
    return {**figures, "ci95": [low, high], "by_seed": values}


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


TITLES = ("memory", "recipe", "seeds", "held-out branch accuracy", "validation", "chunk error", "minutes")


def cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """A row as text, in the order of `TITLES`."""
    return (
        row["memory"],
        row["recipe"],
        f"{row['seeds']} of {row['of']}",
        *(_accuracy_text(row[name]) for name in ("held_out", "validation")),
        "" if row["held_out_chunk_error"] is None else f"{row['held_out_chunk_error']:.3f}",
        "" if row["minutes"] is None else f"{row['minutes']:.1f}",
    )


def markdown(rows: Sequence[Mapping[str, Any]]) -> str:
    """The table in Markdown."""
    lines = [TITLES, tuple("---" for _ in TITLES), *map(cells, rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)


def _accuracy_text(found: Mapping[str, Any] | None) -> str:
    if found is None:
        return "not judged"
    if found["of_a_seed"] < LEAST:
        return f"{found['right']}/{found['count']} right, too few to tell"
    low, high = found["ci95"]
    return f"{found['value']:.2f} ({found['right']}/{found['count']}, {low:.2f} to {high:.2f})"


def written(config: SweepConfig) -> str:
    """The configuration as YAML, to be kept beside its results."""
    values = {name: getattr(config, name) for name in config.__dataclass_fields__}
    text: str = yaml.safe_dump(json.loads(json.dumps(values, default=dict)), sort_keys=False, allow_unicode=True)
    return text
