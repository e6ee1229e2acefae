"""Ten thousand broken bags: whether each is decoded or refused by name, without a crash, a hang or a silent loss."""

from __future__ import annotations

import argparse
import resource
import shutil
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
from rich.progress import track

from studies.fuzz_bags.mutations import TICKS, mutated
from studies.fuzz_process import FuzzProcess
from studies.grid import say
from studies.options import count
from studies.tiny_bags import BEGIN_NS, PERIOD_NS

BAGS, QUICK_BAGS = 10_000, 200
DEADLINE_S = 20.0
START_S = 120.0
MEMORY_BYTES = 4 * 2**30
MOST_KEPT = 20
STARTING = 2
"""Ticks at which a stream may not have begun yet, within its stale limit, without the verdict's blame."""

CRASH, HANG, SILENT, UNCLEAR = "crash", "hang", "silent loss", "unclear fault"


@dataclass(frozen=True)
class Decoded:
    """What became of one bag. grade: of its verdict. failure: empty, or what went wrong with the decoder."""

    index: int
    mutation: str
    grade: str = ""
    failure: str = ""
    text: str = ""
    seconds: float = 0.0


def add_options(parser: argparse.ArgumentParser) -> None:
    """Options beyond --quick and --out."""
    parser.add_argument("--bags", type=count, help=f"how many (default: {BAGS}; {QUICK_BAGS} with --quick)")
    parser.add_argument("--seed", type=int, default=0, help="another seed breaks bags in other places (default: 0)")


def run(out_dir: Path, quick: bool, bags: int | None = None, seed: int = 0) -> dict[str, Any]:
    """Decode mutated bags one after the other in a process of its own that is ended when one takes too long.

    A bag that fails is kept in `out_dir`.
    """
    number = bags or (QUICK_BAGS if quick else BAGS)
    begun = time.perf_counter()
    outcomes = []
    with Decoder(seed) as decoder:
        for index in track(range(number), "decoding broken bags"):
            outcomes.append(decoder.decode(index))
    figures = figures_of(outcomes, seed) | {
        "wall_s": time.perf_counter() - begun,
        "cpu_s": resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime,
    }
    failures = [outcome for outcome in outcomes if outcome.failure]
    for outcome in failures[:MOST_KEPT]:
        keep(out_dir / "failures", seed, outcome)
    for outcome in failures:
        say(f"bag {outcome.index}, {outcome.mutation}: {outcome.failure}: {outcome.text}")
    return figures


def figures_of(outcomes: list[Decoded], seed: int) -> dict[str, Any]:
    """Counts by grade, failure and mutation."""
    failures = Counter(outcome.failure for outcome in outcomes)
    slowest = max(outcomes, key=lambda outcome: outcome.seconds)
    return {
        "bags": len(outcomes),
        "seed": seed,
        "grades": dict(sorted(Counter(outcome.grade for outcome in outcomes if outcome.grade).items())),
        "failures": {name: failures[name] for name in (CRASH, HANG, SILENT, UNCLEAR)},
        "mutations": dict(sorted(Counter(outcome.mutation for outcome in outcomes).items())),
        "slowest_s": slowest.seconds,
    }


class Decoder(FuzzProcess):
    """A process that decodes bags; started anew when it hangs or dies. A context manager."""

    def __init__(self, seed: int, deadline_s: float = DEADLINE_S) -> None:
        super().__init__(_serve, seed, deadline_s, START_S)

    def decode(self, index: int) -> Decoded:
        """Mutate and decode one bag."""
        begun = time.perf_counter()
        mutation = "unknown"
        try:
            self._pipe.send(index)
            while True:
                if not self._pipe.poll(self._deadline_s):
                    return self._restarted(index, mutation, HANG, f"nothing after {self._deadline_s:g} s", begun)
                answer = self._pipe.recv()
                if isinstance(answer, Decoded):
                    return answer
                mutation = answer
        except (EOFError, OSError):
            return self._restarted(index, mutation, CRASH, "the process died", begun)

    def _restarted(self, index: int, mutation: str, failure: str, text: str, begun: float) -> Decoded:
        self.restart()
        return Decoded(index, mutation, "", failure, text, time.perf_counter() - begun)


def _serve(pipe: Connection, seed: int, folder: str) -> None:
    """Answer indices with the mutation, then the outcome."""
    from trace_memory_ros.bags import build  # noqa: F401 - loaded before the first bag's clock runs

    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_BYTES, MEMORY_BYTES))
    pipe.send("ready")
    while True:
        try:
            index = pipe.recv()
        except EOFError:
            return
        kind, mutation, files = mutated(np.random.default_rng((seed, index)))
        bag = write_files(Path(folder) / f"bag{index}", files)
        pipe.send(mutation)
        pipe.send(judge(index, mutation, bag, kind.recording))
        shutil.rmtree(bag)


def judge(index: int, mutation: str, bag: Path, recording: Any) -> Decoded:
    """Decode a bag, and look whether the verdict is clear and says what is lost."""
    from trace_memory_ros.bags.build import decode_bag
    from trace_memory_ros.bags.faults import Grade

    begun = time.perf_counter()
    try:
        episodes, verdict = decode_bag(bag, recording)
    except BaseException:
        text = traceback.format_exc(limit=-4)
        return Decoded(index, mutation, "", CRASH, text, time.perf_counter() - begun)
    seconds = time.perf_counter() - begun
    failure, text = "", ""
    vague = [fault for fault in verdict.faults if not (fault.what and fault.where and fault.remedy)]
    # A first image with a later stamp moves the grid, and its last tick beyond the end.
    moved = sum(0 < int(episode.stamps_ns[0]) - BEGIN_NS < PERIOD_NS for episode in episodes)
    # A report whose phase was changed says that the episode was not yet running: what the bag says counts.
    begins = [episode.span.begin_stamp_ns for episode in episodes if episode.span.bounded]
    later = sum(max(0, begin - BEGIN_NS) // PERIOD_NS for begin in begins)
    ticks = sum(episode.ticks + episode.unfinished for episode in episodes) + moved + later
    if vague or (not verdict.ok and not verdict.faults):
        failure, text = UNCLEAR, str(verdict)
    elif verdict.grade is Grade.OK and (ticks < TICKS or not all(e.usable[STARTING:].all() for e in episodes)):
        failure, text = SILENT, f"{ticks} of {TICKS} ticks, and the verdict is ok"
    return Decoded(index, mutation, verdict.grade.value, failure, text, seconds)


def write_files(bag: Path, files: dict[str, bytes]) -> Path:
    """Lay a bag's files into a folder of its own; returns it."""
    bag.mkdir(parents=True, exist_ok=True)
    for name, content in files.items():
        (bag / name).write_bytes(content)
    return bag


def keep(folder: Path, seed: int, outcome: Decoded) -> None:
    """Leave a failing bag, and what happened, for whoever mends it."""
    _, _, files = mutated(np.random.default_rng((seed, outcome.index)))
    bag = write_files(folder / f"bag{outcome.index}", files)
    (bag.parent / f"bag{outcome.index}.txt").write_text(f"{outcome.failure}: {outcome.text}\n", encoding="utf-8")
