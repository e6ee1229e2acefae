"""One memory, ticked for as long as asked, with what it holds looked at on the way."""

from __future__ import annotations

import gc
import os
import resource
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

import numpy as np
from safetensors.numpy import load_file, save_file

from studies.grid import Figures, Store
from studies.soak.robot import Robot, Row, write_checkpoint
from trace_memory_ros.files import atomic
from trace_memory_ros.measure.statistics import Interval, t_interval
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.snapshot import Arrays

LOOK = 1_000
"""Ticks from one look at state and memory to the next."""
KEPT = 50_000
"""Ticks from one snapshot to the next, from which an interrupted run goes on."""
WARM = 5_000
"""Ticks of a process that are not counted as growth: libraries allocate what they keep."""
BLOCKS = 20
SNAPSHOT = "snapshot.safetensors"


class Gained(NamedTuple):
    """Resident bytes gained per unit of what looks are counted by, with the 95 % interval of a mean over blocks, and
    the last look's."""

    bytes_per_unit: float
    ci95: Interval
    resident_bytes: float


class Lost(RuntimeError):
    """A memory does not hold what it promises; the message names the tick and the array."""


@dataclass(frozen=True)
class Endurance:
    """A mechanism and how long it ticks."""

    name: str
    row: Row
    ticks: int
    seed: int = 0

    @property
    def settings(self) -> Figures:
        """What a kept part depends on besides how long the run is to be."""
        return {"row": repr(self.row), "seed": self.seed, "kept": KEPT, "look": LOOK}


def endure(job: Endurance, store: Store) -> Figures:
    """Tick up to `job.ticks`, from where an earlier call stopped; every `KEPT` ticks are a part of `store`.

    Raises Lost at the first number that is not finite, or where the state's bytes change.
    """
    with TemporaryDirectory() as folder:
        runtime = MemoryRuntime.from_checkpoint(write_checkpoint(Path(folder) / "soak", job.row, job.seed))
    robot, parts = Robot(job.seed), _parts_of(job, store)
    if parts:
        runtime.restore(load_file(store.folder / SNAPSHOT))
    for first in range(len(parts) * KEPT, job.ticks, KEPT):
        figures = _part(runtime, robot, first, min(first + KEPT, job.ticks))
        if (first + KEPT) <= job.ticks:
            with atomic.replacing(store.folder / SNAPSHOT) as partial:
                save_file(runtime.snapshot(), partial)
            store.write(_name(first), job.settings, figures)
        parts.append(figures)
    return _summed(parts, job.ticks)


def _parts_of(job: Endurance, store: Store) -> list[Figures]:
    """Parts that an earlier call kept, up to the first that is missing; none without a snapshot of their end."""
    found: list[Figures] = []
    while (len(found) + 1) * KEPT <= job.ticks:
        part = store.read(_name(len(found) * KEPT), job.settings)
        if part is None:
            break
        found.append(part)
    path = store.folder / SNAPSHOT
    at = int(load_file(path)["ticks.ok"][0]) if path.is_file() else -1
    return found if at == len(found) * KEPT else []


def _name(first: int) -> str:
    return f"ticks-{first}"


def _part(runtime: MemoryRuntime, robot: Robot, first: int, end: int) -> Figures:
    """Ticks `first` to `end`: seconds, resident memory at every look, ranges of state at powers of ten."""
    seconds, resident, ranges, sizes = 0.0, [], {}, set()
    wrote = 0
    for tick in range(first, end):
        observation = robot.observe(tick)
        begun = time.perf_counter()
        condition, _ = runtime.tick(observation)
        seconds += time.perf_counter() - begun
        wrote += condition.wrote
        if not (np.isfinite(condition.vector).all() and np.isfinite(condition.tokens).all()):
            raise Lost(f"tick {tick}: the condition holds numbers that are not finite: {condition.vector}")
        done = tick + 1
        if done % LOOK == 0 or _power_of_ten(done):
            state = runtime.snapshot()
            _refuse_unsound(state, tick)
            sizes.add(sum(array.nbytes for array in state.values()))
            if _power_of_ten(done):
                ranges[str(done)] = _ranges(state)
        if done % LOOK == 0:
            gc.collect()
            resident.append([done, resident_bytes()])
    return {
        "pid": os.getpid(),
        "seconds": seconds,
        "writes": wrote,
        "state_bytes": sorted(sizes),
        "resident": resident,
        "ranges": ranges,
    }


def _power_of_ten(number: int) -> bool:
    return str(number).rstrip("0") == "1"


def _refuse_unsound(state: Arrays, tick: int) -> None:
    for name, array in state.items():
        if array.dtype.kind == "f" and not np.isfinite(array).all():
            raise Lost(f"tick {tick}: {name} holds {int((~np.isfinite(array)).sum())} numbers that are not finite")


def _ranges(state: Arrays) -> Figures:
    """Least, greatest and root mean square of every array that a tick depends on."""
    numeric = {name: array for name, array in state.items() if array.size and not name.startswith("snapshot.")}
    return {
        name: [float(array.min()), float(array.max()), float(np.sqrt(np.square(array.astype(np.float64)).mean()))]
        for name, array in numeric.items()
    }


def resident_bytes(process: int | str = "self") -> int:
    """Resident memory of a process. Raises OSError for one that is gone."""
    pages = int(Path(f"/proc/{process}/statm").read_text(encoding="ascii").split()[1])
    return pages * resource.getpagesize()


def _summed(parts: Sequence[Figures], ticks: int) -> Figures:
    seconds = sum(part["seconds"] for part in parts)
    sizes = sorted({size for part in parts for size in part["state_bytes"]})
    return {
        "ticks": ticks,
        "ticks_per_s": ticks / seconds,
        "writes": sum(part["writes"] for part in parts),
        "state_bytes": sizes,
        "resident_growth": growth(parts),
        "processes": len({part["pid"] for part in parts}),
        "ranges": {tick: ranges for part in parts for tick, ranges in part["ranges"].items()},
    }


def growth(parts: Sequence[Figures]) -> dict[str, Any] | None:
    """Resident bytes gained per 10^6 ticks, as `gained` has it.

    Looks of one process count, the longest, since another one begins elsewhere.
    """
    by_process: dict[int, list[list[int]]] = {}
    for part in parts:
        by_process.setdefault(part["pid"], []).extend(part["resident"])
    found = gained(max(by_process.values(), key=len, default=[]), WARM)
    if found is None:
        return None
    low, high = found.ci95
    return {
        "bytes_per_million_ticks": 1e6 * found.bytes_per_unit,
        "ci95": [1e6 * low, 1e6 * high],
        "resident_bytes": found.resident_bytes,
    }


def gained(looks: Sequence[Sequence[float]], warm: float) -> Gained | None:
    """What a process gained by looks `(at, bytes)`, those of its first `warm` units left out; None from too few."""
    found = np.array(looks, dtype=np.float64).reshape(-1, 2)
    found = found[found[:, 0] > found[0, 0] + warm] if len(found) else found
    if len(found) < 2 * BLOCKS:
        return None
    blocks = np.array([block.mean(axis=0) for block in np.array_split(found, BLOCKS)])
    slopes = np.diff(blocks[:, 1]) / np.diff(blocks[:, 0])
    return Gained(float(slopes.mean()), t_interval(slopes), float(found[-1, 1]))
