"""The papers' recall tasks: train every memory on symbol streams and compare what it answers, writes and keeps."""

from __future__ import annotations

import argparse
import ast
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

import studies.recall.tasks as recall_tasks
from studies import engine, options
from studies.grid import Figures

_FOLDER = Path(next(iter(recall_tasks.__path__)))
DEFAULT_SEEDS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--task` and `--seeds`."""
    names = ", ".join(task_names())
    parser.add_argument("--task", type=_tasks, default=task_names(), help=f"one or more, by commas, of {names} (all)")
    options.add_counts(parser, seeds=(DEFAULT_SEEDS, "trainings of every cell"))


def task_names() -> tuple[str, ...]:
    """Tasks that can run: the modules of `tasks/` that define `run`, read without importing them."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.py") if _defines_run(file)))


def run(out_dir: Path, quick: bool, task: tuple[str, ...], seeds: int) -> Figures:
    """Run each task, write `<out_dir>/<task>/summary.json` as soon as it is done, and return the figures by task."""
    figures = {}
    for name in task:
        module = import_module(f"{recall_tasks.__name__}.{name}")
        figures[name] = module.run(out_dir / name, quick, seeds)
        words = ["recall", "--task", name, "--seeds", str(seeds), *["--quick"] * quick]
        engine.report(module, words, figures[name], out_dir / name)
    return figures


def tables(figures: Figures) -> Iterator[str]:
    """Which tasks were run: each has shown its own tables."""
    yield f"tasks: {', '.join(figures)}"


def _defines_run(file: Path) -> bool:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)


def _tasks(text: str) -> tuple[str, ...]:
    chosen = tuple(text.replace("-", "_").split(","))
    unknown = [name for name in chosen if name not in task_names()]
    if unknown:
        raise argparse.ArgumentTypeError(f"task {unknown[0]!r} is unknown: known are {', '.join(task_names())}")
    return chosen
