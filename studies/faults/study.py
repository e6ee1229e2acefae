"""What do the nodes say and do when drivers, processes, disks, networks or policies fail? One by one, live."""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.table import Table

from studies import options
from studies.faults.judge import COLUMNS
from studies.faults.running import MET, MISSED, ROWS, SKIPPED, Runner
from studies.grid import Figures, Store, say
from studies.tables import table

SCHEMA = 1
QUICK = ("camera_freeze", "joint_nan", "joints_reordered", "stop_button")
WORDS = 160


def add_options(parser: argparse.ArgumentParser) -> None:
    """Rows."""
    options.add_names(parser, "--rows", ROWS, "rows")


def run(out_dir: Path, quick: bool, rows: tuple[str, ...]) -> Figures:
    """Rows that are kept, met or skipped, are not run again; those that were missed are."""
    store = Store(out_dir / "rows")
    figures: Figures = {}
    with Runner(out_dir / "benches") as runner:
        for name in rows if rows != tuple(ROWS) or not quick else QUICK:
            row = ROWS[name]
            settings = {"schema": SCHEMA, "fault": row.fault, "expected": row.expected}
            kept = store.read(name, settings)
            if kept is None or kept["verdict"] == MISSED:
                kept = store.write(name, settings, runner.run(row))
            figures[name] = kept
            say(f"{name}: {kept['verdict']} in {kept['seconds']:g} s{_wrong(kept)}")
    return {"rows": figures, **_counts(figures)}


def tables(figures: Figures) -> Iterator[Table]:
    """A row per fault, a column per thing that may not be."""
    title = "faults: " + ", ".join(f"{figures[word]} {word}" for word in (MET, MISSED, SKIPPED))
    rows = [
        [name, row["verdict"], *(len(row["columns"][column]) or "-" for column in COLUMNS), row["fault"]]
        for name, row in figures["rows"].items()
    ]
    yield table(title, ["row", "verdict", *COLUMNS, "fault"], rows)


def _counts(rows: Figures) -> Figures:
    verdicts = Counter(row["verdict"] for row in rows.values())
    return {
        **{word: verdicts[word] for word in (MET, MISSED, SKIPPED)},
        "by_column": {column: sum(bool(row["columns"][column]) for row in rows.values()) for column in COLUMNS},
        "seconds": sum(row["seconds"] for row in rows.values()),
    }


def _wrong(row: Figures) -> str:
    texts = [f"{column}: {faults[0]}" for column, faults in row["columns"].items() if faults]
    if row["verdict"] == SKIPPED:
        texts = row["seen"]
    return "".join(f"\n    {text[:WORDS]}" for text in texts)
