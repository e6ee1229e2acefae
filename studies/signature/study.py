"""One float64 signature tick (17 channels, depth 3) beside RoughPy, iisignature and C, interleaved."""

from __future__ import annotations

import gc
import os
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.table import Table

from studies.signature import peers
from studies.signature.growth import growth
from studies.tables import table
from trace_memory_ros.signature.naive import signature

Array = NDArray[np.float64]

DIM = 17
LIBRARIES = ("roughpy", "iisignature")
TARGET_US = 1.5
TARGET_RATIO = 7.0
TURN_S = 4e-4
ROUNDS = 1500
QUICK_ROUNDS = 200


def run(out_dir: Path, quick: bool) -> dict[str, Any]:
    """Measure and return the figures (times in µs per tick); nothing is kept in `out_dir`.

    Raises RuntimeError if a contestant computes something else than the definition.
    """
    path = peers.closed_path(DIM)
    contestants, missing = gather(path)
    check(contestants, signature(path, peers.DEPTH))
    rounds = QUICK_ROUNDS if quick else ROUNDS
    times = measure(contestants, rounds, ticks=len(path) - 1)
    figures = summarise(times, missing)
    figures.update(dim=DIM, depth=peers.DEPTH, rounds=rounds, load_average=os.getloadavg()[0])
    figures["growth"] = growth(DIM, peers.DEPTH)
    return figures


def gather(path: Array) -> tuple[list[peers.Contestant], dict[str, str]]:
    """Contestants that can run here, and per absent one what to install."""
    found, missing = list(peers.ours(path)), {}
    for name, build in (("roughpy", peers.roughpy_fmexp), ("iisignature", peers.iisignature_join)):
        try:
            found.append(build(path))
        except peers.MissingPeerError as reason:
            missing[name] = str(reason)
    try:
        found.extend(peers.c_kernels(path))
    except peers.MissingPeerError as reason:
        missing["c"] = str(reason)
    return found, missing


def check(contestants: list[peers.Contestant], expected: Array) -> None:
    """Run one lap of each, which also warms it up, and compare with the definition."""
    for contestant in contestants:
        contestant.lap()
        error = np.abs(contestant.value() - expected).max() / np.abs(expected).max()
        if not error <= contestant.tolerance:
            raise RuntimeError(f"{contestant.key} is off by {error:.1e} of the signature: not comparable")


def measure(contestants: list[peers.Contestant], rounds: int, ticks: int) -> dict[str, Array]:
    """µs per tick `(rounds,)` of each contestant, `ticks` to a lap.

    They take turns of like duration, so that all meet the same disturbances as often.
    """
    laps = {c.key: max(1, round(TURN_S * 1e6 / min(_timed(c.lap, 1) for _ in range(20)))) for c in contestants}
    times = {contestant.key: np.empty(rounds) for contestant in contestants}
    gc.collect()
    gc.disable()
    try:
        for index in range(rounds):
            for contestant in contestants:
                count = laps[contestant.key]
                times[contestant.key][index] = _timed(contestant.lap, count) / (count * ticks)
    finally:
        gc.enable()
    return times


def _timed(lap: Callable[[], object], count: int) -> float:
    start = time.perf_counter_ns()
    for _ in range(count):
        lap()
    return (time.perf_counter_ns() - start) / 1e3


def summarise(times: dict[str, Array], missing: dict[str, str]) -> dict[str, Any]:
    """Spread of each contestant, ratios to our update, and whether the targets are met.

    Ratios are of minima: on a shared machine the median tells how often a turn was interrupted, and the longer
    calls of a library are interrupted more often.
    """
    update = times["update"]
    spread = {
        key: {
            "min": float(values.min()),
            "p10": float(np.quantile(values, 0.1)),
            "median": float(np.median(values)),
            "p90": float(np.quantile(values, 0.9)),
            "ratio_to_update": float(values.min() / update.min()),
        }
        for key, values in times.items()
    }
    ratios = {name: spread[name]["ratio_to_update"] for name in LIBRARIES if name in spread}
    fastest = min(ratios, key=ratios.__getitem__, default=None)
    speedup = ratios[fastest] if fastest else None
    return {
        "update_us": spread["update"]["median"],
        "fastest_library": fastest,
        "speedup": speedup,
        "target_us": TARGET_US,
        "target_speedup": TARGET_RATIO,
        "met": bool(np.median(update) <= TARGET_US and speedup is not None and speedup >= TARGET_RATIO),
        "us": spread,
        "missing": missing,
    }


def tables(figures: dict[str, Any]) -> Iterator[Table | str]:
    """The comparison, then how level sizes and clipping grow with the length of an episode."""
    spreads = ("min", "p10", "median", "p90", "ratio_to_update")
    title = f"one signature tick, {figures['dim']} channels, depth {figures['depth']}, float64: µs"
    columns: Sequence[str] = ("", *spreads[:-1], "x update")
    rows = ((peers.LABELS[key], *(f"{row[name]:.2f}" for name in spreads)) for key, row in figures["us"].items())
    yield table(title, columns, rows)
    yield f"load average {figures['load_average']:.1f} on {os.cpu_count()} cores"
    yield from (f"not measured: {reason}" for reason in figures["missing"].values())
    speedup = "no library to compare with" if figures["speedup"] is None else f"{figures['speedup']:.1f}x the fastest"
    verdict = "met" if figures["met"] else "MISSED"
    yield (
        f"update {figures['update_us']:.2f} µs, {speedup}; target <= {TARGET_US} µs and >= {TARGET_RATIO:g}x: {verdict}"
    )
    grown = figures["growth"]
    title = f"growth, and clipping by statistics of {grown['training_ticks']}-tick episodes"
    columns = ("ticks", *(f"level {n} rms" for n in range(1, figures["depth"] + 1)), "clipped")
    lengths = zip(grown["ticks"], grown["level_rms"], grown["clipped_share"], strict=True)
    yield table(title, columns, ((n, *(f"{rms:.3g}" for rms in levels), f"{c:.1%}") for n, levels, c in lengths))
