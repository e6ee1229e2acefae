"""How long an observation takes to become a condition, on a quiet machine and beside busy cores, at two priorities."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.table import Table

from studies import options
from studies.grid import Figures, Store, cores, say
from studies.latency.graph import measure
from studies.tables import table
from trace_memory_ros.arm.demo.plan import REALTIME_PRIORITY

BUSY = 2
SECONDS, QUICK_S = 160, 20
BUSY_LOOP = "while True: pass"


@dataclass(frozen=True)
class Case:
    """busy: processes that do nothing but compute. priority: real-time priority of the nodes, 0 for none."""

    busy: int
    priority: int


CASES = {
    "quiet": Case(0, 0),
    "quiet, real-time": Case(0, REALTIME_PRIORITY),
    "busy": Case(BUSY, 0),
    "busy, real-time": Case(BUSY, REALTIME_PRIORITY),
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Cases, and how long each is measured."""
    options.add_names(parser, "--cases", (name.replace(", real-time", "+realtime") for name in CASES), "cases")
    options.add_counts(parser, seconds=(SECONDS, "seconds of each case, about"))


def run(out_dir: Path, quick: bool, cases: tuple[str, ...], seconds: int) -> Figures:
    """The demo's graph in real time, case by case; only figures of a machine that does nothing else count."""
    seconds, store = QUICK_S if quick else seconds, Store(out_dir / "cases")
    figures: Figures = {}
    for name, case in CASES.items():
        flag = name.replace(", real-time", "+realtime")
        if flag not in cases:
            continue
        found = store.get(flag, {"seconds": seconds}, partial(_of_case, case, seconds, out_dir / "logs" / flag))
        figures[name] = found
        say(f"{name}: p50 / p99 / max {_three(found['received_ms'])} ms")
    return {
        "cores": cores(),
        "seconds": seconds,
        "busy_processes": BUSY,
        "priority": REALTIME_PRIORITY,
        "cases": figures,
    }


def tables(figures: Figures) -> Iterator[Table]:
    """A row per case; then where the time goes."""
    cases = figures["cases"]
    heads = ["machine", "received, ms", "published, ms", "ticks", "lost", "load before"]
    rows = [
        [name, _three(one["received_ms"]), _three(one["published_ms"]), one["ticks"], one["lost"], one["load_before"]]
        for name, one in cases.items()
    ]
    yield table("stamp of an observation to its condition, p50 / p99 / max", heads, rows)
    stages = list(next(iter(cases.values()))["stages_ms"])
    rows = [[name, *(_three(one["stages_ms"][stage]) for stage in stages)] for name, one in cases.items()]
    yield table("stages in memory_node, ms, p50 / p99 / max", ["machine", *stages], rows)


def _of_case(case: Case, seconds: int, logs: Path) -> Figures:
    load = round(os.getloadavg()[0], 2)
    # A process of its own, as priorities stay with one.
    with busy(case.busy), ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return {"load_before": load, **pool.submit(measure, case.priority, seconds, logs).result()}


@contextmanager
def busy(count: int) -> Iterator[list[subprocess.Popen[bytes]]]:
    """So many processes that compute without end, at ordinary priority."""
    loops = [subprocess.Popen([sys.executable, "-c", BUSY_LOOP]) for _ in range(count)]
    try:
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def _three(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)
