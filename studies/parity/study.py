"""Live over DDS against replay of what was recorded: how far their memories are apart.

memory_node runs as a process of its own on streams that are jittered, dropped, repeated, reordered and damaged by a
seed; its conditions and its inputs are recorded over their topics, and the bag is replayed. Compared are tokens,
vector, read weights and addresses, statuses, reasons, and which sample every tick held. Three kinds of run:

- `lossless`: what reaches the node reaches the recorder. Replayed by stamps alone, and following the live conditions.
- `deadlines`: a camera comes late by more than the node waits, so that ticks fire without it, by the wall clock.
- `lossy`: messages that only the recorder received, or only the node.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from rich.table import Table

from studies.grid import Figures, Store
from studies.options import count, names_of
from studies.parity.models import random_checkpoint, shipped
from studies.parity.scan import scan_difference
from studies.tables import table
from trace_memory_ros.memory import registry
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.replay.bag_replay import Replay
from trace_memory_ros.replay.output_bag import replay_to_bag
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

TICKS, QUICK_TICKS = 3000, 200
SIDE_TICKS, QUICK_SIDE_TICKS = 400, 150
SCAN_TARGET = 1e-5
TICK_S = 0.1
MEMORIES = ("trace", "gru", "none")
SIDES: dict[str, Figures] = {
    "deadlines": {"deadline_ms": 150, "disturbance": {"late_every_s": 10.0, "burst_every_s": 0.0}},
    "lossy_recorder_only": {"disturbance": {"recorder_only": 0.02}},
    "lossy_node_only": {"disturbance": {"node_only": 0.005}},
}


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options beside --quick and --out."""
    parser.add_argument(
        "--memory",
        type=lambda text: registry.names() if text == "all" else names_of(registry.names())(text),
        default=MEMORIES,
        help=f"memories by comma, or all (default: {','.join(MEMORIES)}); those without shipped weights are random",
    )
    parser.add_argument("--ticks", type=count, help=f"control ticks of every lossless run (default: {TICKS})")
    parser.add_argument("--seed", type=int, default=0, help="of streams and disturbances")


def run(
    out_dir: Path, quick: bool, memory: tuple[str, ...] = MEMORIES, ticks: int | None = None, seed: int = 0
) -> Figures:
    """Run, record, replay and compare; what was measured before with the same settings is kept."""
    ticks = ticks or (QUICK_TICKS if quick else TICKS)
    store = Store(out_dir / "parts")
    lossless = {}
    for name in memory:
        settings = {"ticks": ticks, "seed": seed, "model": _weights_of(name)}
        lossless[name] = store.get(f"lossless_{name}", settings, _lossless(out_dir, name, ticks, seed))
    side_ticks = QUICK_SIDE_TICKS if quick else SIDE_TICKS
    sides = {}
    for kind, plan in SIDES.items():
        settings = {"ticks": side_ticks, "seed": seed, "model": _weights_of(memory[0]), **plan}
        sides[kind] = store.get(f"{kind}_{memory[0]}", settings, _side(out_dir, kind, memory[0], side_ticks, seed))
    return {
        "met": _met(lossless, sides),
        "max_abs": max(figures["stamps_alone"]["max_abs"] for figures in lossless.values()),
        "max_abs_training_scan": max(figures["training_scan"]["max_abs"] for figures in lossless.values()),
        "target_training_scan": SCAN_TARGET,
        "lossless": lossless,
        **sides,
    }


def tables(figures: Figures) -> Iterator[Table | str]:
    """How far apart memories are, by run; `-` where a run is not compared so."""
    columns = ("run", "ticks live", "by stamps alone", "as recorded", "training scan")
    runs = {f"lossless {memory}": found for memory, found in figures["lossless"].items()}
    runs |= {kind: figures[kind] for kind in SIDES}
    yield table("largest difference", columns, ((name, *_cells(found)) for name, found in runs.items()))
    yield "met" if figures["met"] else "MISSED"


def _cells(found: Figures) -> Iterator[str]:
    yield str(found["stamps_alone"]["ticks_live"])
    for how in ("stamps_alone", "as_recorded", "training_scan"):
        yield f"{found[how]['max_abs']:.1e}" if how in found else "-"


def _met(lossless: dict[str, Figures], sides: dict[str, Figures]) -> bool:
    """Lossless runs bit-identical both ways and close to training; the other runs bit-identical when followed."""
    runs = [figures[how] for figures in lossless.values() for how in ("stamps_alone", "as_recorded")]
    same = [run["identical"] and run["ticks_live"] == run["ticks_replayed"] for run in runs]
    same += [sides[kind]["as_recorded"]["identical"] for kind in ("deadlines", "lossy_recorder_only")]
    return all(same) and all(f["training_scan"]["max_abs"] <= SCAN_TARGET for f in lossless.values())


def _weights_of(memory: str) -> str:
    """Which weights a memory is run with: others are another measurement."""
    path = shipped(memory)
    return "random" if path is None else load(path).model_id


def _lossless(out_dir: Path, memory: str, ticks: int, seed: int) -> Callable[[], Figures]:
    def measure() -> Figures:
        folder = out_dir / f"lossless_{memory}"
        checkpoint = shipped(memory) or random_checkpoint(folder / "checkpoint", memory)
        live = record_live(folder, checkpoint, ticks, seed)
        replays, conditions = compare_replays(folder / "bag", checkpoint)
        scan = scan_difference(load(checkpoint), folder / "bag", conditions)
        weights = "trained" if shipped(memory) else "random"
        return {"weights": weights, "live": live, **replays, "training_scan": scan}

    return measure


def _side(out_dir: Path, kind: str, memory: str, ticks: int, seed: int) -> Callable[[], Figures]:
    def measure() -> Figures:
        folder = out_dir / kind
        checkpoint = shipped(memory) or random_checkpoint(folder / "checkpoint", memory)
        live = record_live(folder, checkpoint, ticks, seed, **SIDES[kind])
        return {"live": live, **compare_replays(folder / "bag", checkpoint)[0]}

    return measure


def record_live(
    folder: Path,
    checkpoint: Path,
    ticks: int,
    seed: int,
    deadline_ms: int = 60_000,
    disturbance: Figures | None = None,
    tick_s: float = TICK_S,
) -> Figures:
    """Let memory_node run over DDS and record it into `folder`/bag; tick_s: the checkpoint's tick period.

    Raises ValueError with the reason if it failed.
    """
    folder.mkdir(parents=True, exist_ok=True)
    plan = folder / "plan.json"
    claim = DomainClaim()
    settings = {
        "checkpoint": str(checkpoint.resolve()),
        "bag": str((folder / "bag").resolve()),
        "seconds": ticks * tick_s,
        "seed": seed,
        "deadline_ms": deadline_ms,
        "domain_id": claim.id,
        "disturbance": disturbance or {},
    }
    plan.write_text(json.dumps(settings), encoding="utf-8")
    command = [sys.executable, "-m", "studies.parity.disturbed_run", str(plan)]
    with claim:
        done = subprocess.run(command, check=False, capture_output=True, text=True)
    if done.returncode:
        raise ValueError(f"the live run in {folder} failed: {done.stdout[-2000:]}{done.stderr[-2000:]}")
    result = json.loads((folder / "result.json").read_text(encoding="utf-8"))
    result.pop("plan")
    return dict(result)


def compare_replays(bag: Path, checkpoint: Path) -> tuple[Figures, list[Condition]]:
    """Replay `bag` by stamps alone and following its live conditions; figures of both, and those conditions."""
    figures: Figures = {}
    live: list[Condition] = []
    for name, as_recorded in (("stamps_alone", False), ("as_recorded", True)):
        replay = Replay(bag, MemoryRuntime.from_checkpoint(checkpoint), as_recorded=as_recorded)
        parity = replay_to_bag(replay, bag.parent / f"bag_{name}")
        if parity is None:
            raise ValueError(f"{bag} holds no conditions of the checkpoint {checkpoint}: run it again")
        report, live = replay.report, replay.live
        figures[name] = {
            **parity.figures(),
            "statuses": report.statuses,
            "missed_samples": report.missed,
            "times_real_time_cpu": report.times_real_cpu,
        }
    return figures, live
