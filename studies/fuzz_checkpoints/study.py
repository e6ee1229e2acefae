"""A hundred thousand broken checkpoints: is each refused by name, or runs, without a crash, a hang or much memory?"""

from __future__ import annotations

import argparse
import resource
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from functools import partial
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np

from studies.fuzz_checkpoints.mutations import mutated, sound
from studies.fuzz_process import FuzzProcess
from studies.grid import Store, say
from studies.options import count

CHECKPOINTS, QUICK = 100_000, 300
PART = 2_000
"""Checkpoints that are kept together, from which an interrupted study goes on."""
DEADLINE_S = 60.0
START_S = 300.0
MEMORY_BYTES = 6 * 2**30
"""Of address space, most of which torch takes before the first checkpoint."""
GROWN_BYTES = 2**29
"""Resident memory that a process may have gained at its highest."""
TICKS = 2
CRASH, HANG, UNCLEAR, MEMORY = "crash", "hang", "unclear fault", "memory"


@dataclass(frozen=True)
class Outcome:
    """What became of one checkpoint. failure: empty, or what went wrong; runs: it was used."""

    index: int
    mutation: str
    runs: bool = False
    failure: str = ""
    text: str = ""
    seconds: float = 0.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options beyond --quick and --out."""
    parser.add_argument("--checkpoints", type=count, help=f"how many (default: {CHECKPOINTS}; {QUICK} with --quick)")
    parser.add_argument("--seed", type=int, default=0, help="another seed breaks them in other places (default: 0)")


def run(out_dir: Path, quick: bool, checkpoints: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Open mutated checkpoints, and let memories that open tick, in a process that is ended when one takes too long."""
    number = checkpoints or (QUICK if quick else CHECKPOINTS)
    store, parts = Store(out_dir / "parts"), []
    with Opener(seed) as opener:
        for first in range(0, number, PART):
            last = min(first + PART, number)
            settings = {"seed": seed, "last": last}
            parts.append(store.get(f"from-{first}", settings, partial(opener.part, first, last)))
            say(f"{last} checkpoints, {sum(sum(part['failures'].values()) for part in parts)} failures")
    joined: dict[str, Counter[str]] = {key: Counter() for key in ("mutations", "ran", "failures")}
    for part in parts:
        for key, counter in joined.items():
            counter.update(part[key])
    return {
        "checkpoints": number,
        "seed": seed,
        **{key: dict(sorted(counter.items())) for key, counter in joined.items()},
        "failed": [one for part in parts for one in part["failed"]][:50],
        "slowest_s": max(part["slowest_s"] for part in parts),
        "grown_bytes": max(part["grown_bytes"] for part in parts),
        "seconds": sum(part["seconds"] for part in parts),
    }


class Opener(FuzzProcess):
    """A process that opens checkpoints; started anew when it hangs or dies. A context manager."""

    def __init__(self, seed: int, deadline_s: float = DEADLINE_S) -> None:
        super().__init__(_serve, seed, deadline_s, START_S)
        self._grown = 0

    def part(self, first: int, last: int) -> dict[str, Any]:
        """Outcomes of checkpoints `first` to `last`, counted."""
        begun, outcomes = time.perf_counter(), [self.open(index) for index in range(first, last)]
        failed = [outcome for outcome in outcomes if outcome.failure]
        return {
            "mutations": dict(Counter(outcome.mutation for outcome in outcomes)),
            "ran": dict(Counter(outcome.mutation for outcome in outcomes if outcome.runs)),
            "failures": dict(Counter(outcome.failure for outcome in failed)),
            "failed": [f"{one.index}, {one.mutation}: {one.failure}: {one.text}" for one in failed],
            "slowest_s": max(outcome.seconds for outcome in outcomes),
            "grown_bytes": self._grown,
            "seconds": time.perf_counter() - begun,
        }

    def open(self, index: int) -> Outcome:
        """Mutate and open one checkpoint."""
        begun = time.perf_counter()
        try:
            self._pipe.send(index)
            if not self._pipe.poll(self._deadline_s):
                return self._restarted(index, HANG, f"nothing after {self._deadline_s:g} s", begun)
            outcome, grown = self._pipe.recv()
        except (EOFError, OSError):
            return self._restarted(index, CRASH, "the process died", begun)
        more, self._grown = grown - self._grown, max(self._grown, grown)
        if not outcome.failure and more > 0 and grown > GROWN_BYTES:
            return Outcome(index, outcome.mutation, outcome.runs, MEMORY, f"{grown} bytes more than at the start")
        found: Outcome = outcome
        return found

    def _restarted(self, index: int, failure: str, text: str, begun: float) -> Outcome:
        self.restart()
        self._grown = 0
        return Outcome(index, "unknown", False, failure, text, time.perf_counter() - begun)


def _serve(pipe: Connection, seed: int, folder: str) -> None:
    """Answer indices with outcomes and how much memory was gained at most."""
    found, path = sound(), Path(folder) / "checkpoint"
    path.mkdir(exist_ok=True)
    for files in found:
        _write(path, files)
        assert judge(-1, "sound", path).runs
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    began = _most_resident()
    pipe.send("ready")
    while True:
        try:
            index = pipe.recv()
        except EOFError:
            return
        mutation, files = mutated(found, np.random.default_rng((seed, index)))
        _write(path, files)
        pipe.send((judge(index, mutation, path), _most_resident() - began))


def judge(index: int, mutation: str, path: Path) -> Outcome:
    """Open a checkpoint; a memory that opens ticks. Only a CheckpointError is a clear refusal."""
    from trace_memory_ros.observation.types import Observation
    from trace_memory_ros.runtime.checkpoint import CheckpointError
    from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

    begun, failure, text, runs = time.perf_counter(), "", "", False
    try:
        runtime = MemoryRuntime.from_checkpoint(path)
        seen = runtime.config.observation
        for tick in range(TICKS):
            state = np.full(seen.state_dim, 0.1 * tick)
            runtime.tick(Observation(tick, tick * seen.period_ns, seen.black_images(), state, {}, {}))
        runs = True
    except CheckpointError as error:
        text = str(error)
        failure = "" if len(text) < 20_000 else UNCLEAR
    except Exception:  # whatever it is, it says nothing of the checkpoint
        failure, text = UNCLEAR, "".join(traceback.format_exc()[-1500:])
    return Outcome(index, mutation, runs, failure, text if failure else "", time.perf_counter() - begun)


def _write(path: Path, files: dict[str, bytes]) -> None:
    for name, content in files.items():
        (path / name).write_bytes(content)


def _most_resident() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
