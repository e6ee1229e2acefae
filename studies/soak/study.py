"""Whether a memory may tick without end: memory in use, size and ranges of the state, decisions after a long pause."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from rich.table import Table

from studies import options
from studies.grid import HERE, Figures, Store, digest, do
from studies.soak.decisions import Question, answer
from studies.soak.endure import Endurance, endure
from studies.soak.heard import Hour
from studies.soak.robot import DEPTH, JOINTS, PERIOD_MS, PX, rows
from studies.soak.signature import drift
from studies.tables import table
from trace_memory_ros.memory import registry
from trace_memory_ros.runtime.checkpoint import load

TICKS, QUICK_TICKS = 1_000_000, 5_000
SHIPPED = tuple((task, memory) for task in ("origin", "colour") for memory in ("gru", "trace"))
IDLE, PAIRS = 10_000, 10
MINUTES, QUICK_MINUTES = 60, 1
PARTS = ("ticks", "decisions", "signature", "live")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Ticks, rows, and what is asked of shipped weights."""
    options.add_counts(parser, ticks=(TICKS, "ticks of each row"), pause=(TICKS, "ticks of the longest pause"))
    options.add_names(parser, "--rows", rows(), "mechanisms")
    options.add_names(parser, "--asked", [f"{task}_{memory}" for task, memory in SHIPPED], "shipped weights")
    options.add_counts(parser, minutes=(MINUTES, "minutes that the live graph runs in real time"))
    parser.add_argument("--memory", choices=registry.names(), default="gru", help="of the live graph (default: gru)")
    parser.add_argument("--part", choices=PARTS, help="measure this alone, and tabulate all that is there")
    options.add_demos(parser)


def run(
    out_dir: Path,
    quick: bool,
    ticks: int = TICKS,
    pause: int = TICKS,
    rows: tuple[str, ...] = tuple(rows()),
    asked: tuple[str, ...] = (),
    part: str | None = None,
    demos: Path = options.DEMOS,
    minutes: int = MINUTES,
    memory: str = "gru",
) -> Figures:
    """Tick every row in a process of its own, from where an earlier call stopped, and ask shipped weights to decide;
    then memory, policy and markers as nodes, in real time.

    Figures of rows that an earlier call took further than `ticks` are kept.
    """
    ticks, pause = (QUICK_TICKS, QUICK_TICKS) if quick else (ticks, pause)
    for name in rows if part in (None, "ticks") else ():
        do(partial(_ticked, ticks), [name], partial(_folder, out_dir), 1)
    for name in asked if part in (None, "decisions") else ():
        task, _, of_task = name.partition("_")
        question = Question(task, of_task, 1 if quick else PAIRS, 200 if quick else IDLE, pause)
        do(partial(_answered, demos), [question], partial(_asked_folder, out_dir), 1)
    strayed = Store(out_dir / "signature")
    if part in (None, "signature"):
        strayed.get(
            "drift", {"ticks": QUICK_TICKS if quick else TICKS}, lambda: drift(QUICK_TICKS if quick else TICKS, 0)
        )
    if part in (None, "live"):
        do(_lived, [Hour(memory, QUICK_MINUTES if quick else minutes)], partial(_live_folder, out_dir), HERE)
    return {
        "robot": {"joints": len(JOINTS), "image_px": PX, "tick_period_ms": PERIOD_MS, "signature_depth": DEPTH},
        "rows": _kept(out_dir / "rows"),
        "decisions": _kept(out_dir / "decisions"),
        "signature": strayed.read("drift"),
        "live": _kept(out_dir / "live"),
    }


def tables(figures: Figures) -> Iterator[Table]:
    """What each row did, and what shipped weights decided."""
    yield table(
        "ticks without a reset",
        ["memory", "ticks", "ticks/s", "writes", "state, bytes", "resident MB per 10^6 ticks (95 %)", "largest number"],
        ([name, *_cells(row)] for name, row in figures["rows"].items()),
    )
    yield table(
        "decisions of shipped weights",
        ["weights", "at once", "after a pause", "pause", "memory the same", "decision", "new episodes, no reset"],
        ([name, *_decided(row)] for name, row in figures["decisions"].items()),
    )
    yield table(
        "the live graph in real time",
        [
            "memory",
            "minutes",
            "ticks",
            "lost",
            "not OK",
            "latency p50, p99, max, ms",
            "messages lost",
            "growth, MB/h",
            "nodes that failed",
        ],
        ([name, *_live_cells(row)] for name, row in figures["live"].items()),
    )


def _ticked(ticks: int, name: str, store: Store) -> str:
    known = store.read("figures")
    if known is None or known["ticks"] < ticks:
        known = store.write("figures", {}, endure(Endurance(name, rows()[name], ticks), store))
    return f"{known['ticks']} ticks, {known['ticks_per_s']:.0f} a second"


def _answered(demos: Path, question: Question, store: Store) -> str:
    # Weights that were trained anew since are asked anew.
    settings = {"asked": repr(question), "model": load(question.checkpoint).model_id}
    figures = store.get("figures", settings, lambda: answer(question, demos))
    return f"{figures['held'][str(question.idle)]['share']:.2f} after {question.idle} ticks"


def _lived(hour: Hour, store: Store) -> str:
    # The other parts need no ROS.
    from studies.soak.live import live

    known = store.read("figures", hour._asdict())
    if known is None or known["seconds"] < 60 * hour.minutes:  # interrupted, or a node ended
        known = store.write("figures", hour._asdict(), live(hour, store.folder / "graph"))
    ticks = known["ticks"]
    return f"{ticks['lost']} of {ticks['expected']} ticks lost in {known['seconds'] / 60:.1f} min"


def _live_folder(out_dir: Path, hour: Hour) -> Path:
    return out_dir / "live" / f"{hour}-{digest(hour._asdict())}"


def _folder(out_dir: Path, name: str) -> Path:
    return out_dir / "rows" / f"{name}-{digest(repr(rows()[name]))}"


def _asked_folder(out_dir: Path, question: Question) -> Path:
    return out_dir / "decisions" / f"{question.task}_{question.memory}-{digest(repr(question))}"


def _kept(folder: Path) -> dict[str, Figures]:
    """Figures of every store below a folder, by name; those that failed say why.

    What was asked twice in different ways, as by a quick run and a whole one, is told apart by the folders' full names.
    """
    paths = sorted(folder.glob("*")) if folder.is_dir() else []
    names = [path.name.rpartition("-")[0] for path in paths]
    found = {}
    for path, name in zip(paths, names, strict=True):
        store = Store(path)
        figures = store.read("figures") if store.failure is None else {"failed": store.failure}
        found[name if names.count(name) == 1 else path.name] = figures
    return {name: figures for name, figures in found.items() if figures is not None}


def _cells(row: Figures) -> list[object]:
    if "failed" in row:
        return [row["failed"], *[""] * 5]
    grown = row["resident_growth"]
    words = "too few looks"
    if grown is not None:
        low, high = (value / 1e6 for value in grown["ci95"])
        words = f"{grown['bytes_per_million_ticks'] / 1e6:.1f} ({low:.1f} to {high:.1f})"
    largest = max(
        (max(abs(low), abs(high)), name)
        for name, (low, high, _) in row["ranges"][max(row["ranges"], key=int)].items()
        if name.startswith(("memory.", "address."))
    )
    sizes = ", ".join(map(str, row["state_bytes"]))
    return [row["ticks"], f"{row['ticks_per_s']:.0f}", row["writes"], sizes, words, f"{largest[0]:.3g} ({largest[1]})"]


def _live_cells(row: Figures) -> list[object]:
    if "failed" in row:
        return [row["failed"], *[""] * 7]
    ticks, whole = row["ticks"], row["stamp_to_condition"]["whole"] or {}
    lost = sum(stream["lost"] for stream in row["streams"].values()) + row["conditions_lost_by_middleware"]
    grown = {name.rpartition("/")[2]: node["resident_growth"] for name, node in row["nodes"].items()}
    return [
        f"{row['seconds'] / 60:.1f}",
        ticks["expected"],
        ticks["lost"],
        ticks["received"] - ticks["by_status"].get("OK", 0),
        ", ".join(f"{value:.1f}" for key, value in whole.items() if key != "count"),
        lost,
        ", ".join(f"{name} {g['bytes_per_hour'] / 1e6:.1f}" if g else f"{name} -" for name, g in grown.items()),
        len({*row["crashes"], *row["tracebacks"], *(name for name, code in row["exit_codes"].items() if code)}),
    ]


def _decided(row: Figures) -> list[object]:
    if "failed" in row:
        return [row["failed"], *[""] * 5]
    shares = [f"{part['right']}/{part['decisions']}" for part in row["held"].values()]
    long = row["long"]
    fresh = long["fresh_without_reset"]
    return [
        *shares,
        long["ticks"],
        "yes" if long["memory_unchanged"] else "no",
        "right" if long["held_right"] else "wrong",
        f"{fresh['right']}/{fresh['decisions']}",
    ]
