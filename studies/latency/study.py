"""How long an observation takes to become a condition, and which pictures come: quiet, busy, at real-time priority."""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable, Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from functools import partial
from multiprocessing import get_context
from pathlib import Path

from rich.table import Table

from studies import options
from studies.busy import busy
from studies.grid import Figures, Store, cores, say
from studies.latency import arm, cameras
from studies.tables import table
from trace_memory_ros.nodes.launch_arguments import REALTIME_PRIORITY
from trace_memory_ros.nodes.qos import RELIABILITIES

BUSY = 2
ARM_S, CAMERAS_S = 120, 30
QUICK_ARM_S, QUICK_CAMERAS_S = 40, 8


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
GRAPHS = ("arm", "cameras")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Graphs."""
    options.add_names(parser, "--graphs", GRAPHS, "graphs")


def run(out_dir: Path, quick: bool, graphs: tuple[str, ...]) -> Figures:
    """Every case of each graph; figures of a quiet machine are those of one that does nothing else."""
    figures: Figures = {"cores": cores(), "busy_processes": BUSY, "priority": REALTIME_PRIORITY}
    arm_s, cameras_s = (QUICK_ARM_S, QUICK_CAMERAS_S) if quick else (ARM_S, CAMERAS_S)
    logs = out_dir / "logs"
    for name, case in CASES.items() if "arm" in graphs else ():
        measure = partial(arm.measure, case.priority, arm_s, logs / name)
        _kept(out_dir / "arm", name, arm_s, partial(_of_case, case, measure))
    for reliability in RELIABILITIES if "cameras" in graphs else ():
        for name, case in CASES.items():
            full = f"{name}, {reliability}"
            measure = partial(cameras.measure, case.priority, reliability, cameras_s, logs / full)
            _kept(out_dir / "cameras", full, cameras_s, partial(_of_case, case, measure))
    for graph, seconds in zip(GRAPHS, (arm_s, cameras_s), strict=True):
        store = Store(out_dir / graph)
        full_names = [*CASES, *(f"{name}, {reliability}" for reliability in RELIABILITIES for name in CASES)]
        # A graph that was not asked for may have been measured before, but not as shortly as a quick run does.
        found = {name: store.read(name, {"seconds": seconds}) for name in full_names}
        figures[graph] = {name: one for name, one in found.items() if one is not None}
    return figures


def tables(figures: Figures) -> Iterator[Table]:
    """The arm, where its time goes, and the robot with large pictures."""
    if figures["arm"]:
        heads = ["machine", "received, ms", "published, ms", "ticks", "lost", "load before"]
        rows = [
            [
                name,
                _three(one["received_ms"]),
                _three(one["published_ms"]),
                one["ticks"],
                one["lost"],
                one["load_before"],
            ]
            for name, one in figures["arm"].items()
        ]
        yield table("simulated arm, stamp of an observation to its condition, p50 / p99 / max", heads, rows)
        stages = list(next(iter(figures["arm"].values()))["stages_ms"])
        rows = [[name, *(_three(one["stages_ms"][s]) for s in stages)] for name, one in figures["arm"].items()]
        yield table("stages in memory_node, ms, p50 / p99 / max", ["machine", *stages], rows)
    if figures["cameras"]:
        heads = ["machine", "raw pictures", "JPEG", "ticks OK", "published, ms", "load before"]
        rows = [[name, *_pictures(one)] for name, one in figures["cameras"].items()]
        yield table("two cameras of 640x480 at 30 Hz: pictures heard of those sent", heads, rows)


def _pictures(one: Figures) -> list[object]:
    heard = [f"{came} of {sent}" for came, sent in one["pictures"].values()]
    return [*heard, f"{one['ok']} of {one['ticks']}", _three(one["published_ms"]), one["load_before"]]


def _kept(folder: Path, name: str, seconds: int, measure: Callable[[], Figures]) -> None:
    found = Store(folder).get(name, {"seconds": seconds}, measure)
    say(f"{folder.name}, {name}: published {_three(found['published_ms'])} ms")


def _of_case(case: Case, measure: Callable[[], Figures]) -> Figures:
    load = round(os.getloadavg()[0], 2)
    # A process of its own, as priorities stay with one.
    with busy(case.busy), ProcessPoolExecutor(1, get_context("spawn")) as pool:
        return {"load_before": load, **pool.submit(measure).result()}


def _three(values: list[float]) -> str:
    return " / ".join(f"{value:.1f}" for value in values)
