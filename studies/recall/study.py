"""The papers' recall tasks: train every memory on symbol streams and compare what it answers, writes and keeps."""

from __future__ import annotations

import argparse
import ast
import shlex
from importlib import import_module
from pathlib import Path
from typing import Any

import studies.recall.tasks as recall_tasks
from trace_memory_ros.measure.summary import write_summary

_FOLDER = Path(next(iter(recall_tasks.__path__)))
DEFAULT_SEEDS = 3


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add `--task` and `--seeds`."""
    names = ", ".join(task_names())
    parser.add_argument("--task", type=_tasks, default=task_names(), help=f"one or more, by commas, of {names} (all)")
    parser.add_argument(
        "--seeds", type=_positive, default=DEFAULT_SEEDS, help=f"trainings of every cell (default {DEFAULT_SEEDS})"
    )


def task_names() -> tuple[str, ...]:
    """Tasks that can run: the modules of `recall_tasks/` that define `run`, read without importing them."""
    return tuple(sorted(file.stem for file in _FOLDER.glob("*.py") if _defines_run(file)))


def run(out_dir: Path, quick: bool, task: tuple[str, ...], seeds: int) -> dict[str, Any]:
    """Run each task, write `<out_dir>/<task>/summary.json` as soon as it is done, and return the figures by task."""
    figures = {}
    for name in task:
        figures[name] = import_module(f"{recall_tasks.__name__}.{name}").run(out_dir / name, quick, seeds)
        words = ["trace-memory", "bench", "recall", "--task", name, "--seeds", str(seeds), *["--quick"] * quick]
        write_summary(out_dir / name, shlex.join(words), figures[name])
    return figures


def _defines_run(file: Path) -> bool:
    tree = ast.parse(file.read_text(encoding="utf-8"))
    return any(isinstance(node, ast.FunctionDef) and node.name == "run" for node in tree.body)


def _tasks(text: str) -> tuple[str, ...]:
    chosen = tuple(text.replace("-", "_").split(","))
    unknown = [name for name in chosen if name not in task_names()]
    if unknown:
        raise argparse.ArgumentTypeError(f"task {unknown[0]!r} is unknown: known are {', '.join(task_names())}")
    return chosen


def _positive(text: str) -> int:
    if not text.isdigit() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text!r}: must be a whole number of at least 1")
    return int(text)
