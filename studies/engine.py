"""One frame for all studies: options, the run, tables, plots and `summary.json`.

A study is a folder with a `study.py`: a first docstring line that says what it asks, and

- `run(out_dir, quick, **options) -> figures`, which keeps what it measures below `out_dir` (`studies.grid`);
- where it has options of its own, `add_options(parser)` (`studies.options`);
- where there is more to show than a list of figures, `tables(figures)`, which yields tables and lines
  (`studies.tables`), and `plots(figures, out_dir) -> paths`.
"""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterable, Iterator, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table

from studies.grid import Figures
from trace_memory_ros.files import outputs
from trace_memory_ros.measure.summary import write_summary

COMMAND = ("trace-memory", "bench")
WIDTH = 140


def main(name: str, words: Sequence[str]) -> int:
    """Run the study `name` with the options `words`; prints its tables, writes its summary, returns 0."""
    study = import_module(f"studies.{name.replace('-', '_')}.study")
    options = vars(option_parser(name, study).parse_args(words))
    out_dir = outputs.claim(options.pop("out"), shlex.join([*COMMAND, name]))
    figures = study.run(out_dir, options.pop("quick"), **options)
    report(study, [name, *words], figures, out_dir)
    return 0


def option_parser(name: str, study: Any) -> argparse.ArgumentParser:
    """Options that every study has, and those that its `add_options(parser)` adds."""
    parser = argparse.ArgumentParser(prog=shlex.join([*COMMAND, name]), description=study.__doc__)
    parser.add_argument("--quick", action="store_true", help="smaller, for a first look")
    parser.add_argument("--out", type=Path, default=Path("out") / f"bench-{name}", help="folder of summary.json")
    if hasattr(study, "add_options"):
        study.add_options(parser)
    return parser


def report(study: Any, words: Sequence[str], figures: Figures, out_dir: Path) -> Path:
    """Print what a study (or a part of one) found, draw its plots and write its summary; returns the summary's path.

    words: of the command after `trace-memory bench`.
    """
    command = shlex.join([*COMMAND, *words])
    show(study.tables(figures) if hasattr(study, "tables") else [flat_table(figures, command)])
    for path in study.plots(figures, out_dir) if hasattr(study, "plots") else ():
        show([f"plot in {path}"])
    path = write_summary(out_dir, command, figures)
    show([f"written to {path}"])
    return path


def show(found: Iterable[RenderableType], console: Console | None = None) -> None:
    """Print tables and lines."""
    console = console or Console(width=max(WIDTH, Console().width))
    for item in found:
        console.print(item, highlight=False, soft_wrap=isinstance(item, str))


def flat_table(figures: Figures, title: str) -> Table:
    """Every figure by its dotted name."""
    table = Table("figure", "value", title=title)
    for name, value in flatten(figures):
        table.add_row(name, f"{value:.4g}" if isinstance(value, float) else str(value))
    return table


def flatten(figures: Figures, prefix: str = "") -> Iterator[tuple[str, Any]]:
    """Dotted name and value of every leaf of nested figures, in order."""
    for key, value in figures.items():
        if isinstance(value, dict):
            yield from flatten(value, f"{prefix}{key}.")
        else:
            yield f"{prefix}{key}", value
