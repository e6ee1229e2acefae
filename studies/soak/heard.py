"""What was heard of a live graph, in figures: ticks lost, statuses, latencies, what its diagnostics said."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from studies.grid import Figures

MS_NS = 1_000_000
TENTHS = 10
LISTED = 20
PERCENTS = (50, 99)


class Hour(NamedTuple):
    """A mechanism, and for how long its graph is to live."""

    memory: str
    minutes: int

    def __str__(self) -> str:
        return f"{self.memory}, {self.minutes} min"


class Heard(NamedTuple):
    """A condition as it came. got_ns: when the middleware had it, on the clock of the stamps."""

    instance: int
    episode: int
    tick: int
    stamp_ns: int
    status: str
    gap_ticks: int
    got_ns: int


def ticks_of(heard: Sequence[Heard], last_ns: int, period_ns: int) -> Figures:
    """Ticks of the episode whose tick 0 was heard first, against those that the streams' stamps give.

    last_ns: up to which every stream sent a sample, so that nothing that belongs to an earlier tick can still come.
    Those beyond it are not counted. Where no tick 0 was heard, nothing was expected, and `first_stamp_ns` is None.
    """
    begun = next((at for at, one in enumerate(heard) if one.tick == 0), None)
    if begun is None:
        return {"first_stamp_ns": None, "expected": 0, "received": 0, "lost": 0, "gaps": [], "by_status": {}}
    first = heard[begun]
    expected = max(0, (last_ns - first.stamp_ns) // period_ns + 1)
    memories = {(one.instance, one.episode) for one in heard[begun:]}
    own = [one for one in heard[begun:] if (one.instance, one.episode) == (first.instance, first.episode)]
    own = [one for one in own if one.tick < expected]
    known = {one.tick for one in own}
    gaps = _runs(sorted(set(range(expected)) - known))
    return {
        "first_stamp_ns": first.stamp_ns,
        "expected": expected,
        "received": len(own),
        "lost": expected - len(known),
        "gaps": gaps[:LISTED],
        "twice": len(own) - len(known),
        "disordered": sum(after.tick < before.tick for before, after in pairwise(own)),
        "off_the_grid": sum(one.stamp_ns != first.stamp_ns + one.tick * period_ns for one in own),
        "gap_ticks": max((one.gap_ticks for one in own), default=0),
        "other_memories": len(memories) - 1,
        "by_status": dict(Counter(one.status for one in own)),
    }


def _runs(numbers: Sequence[int]) -> list[list[int]]:
    """First and count of each run of neighbours."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == sum(runs[-1]):
            runs[-1][1] += 1
        else:
            runs.append([number, 1])
    return runs


def latencies(values: Sequence[tuple[int, float]], begin_ns: int, end_ns: int) -> Figures:
    """Of `(stamp_ns, ms)`: count, p50, p99 and the greatest, of all and of each tenth of the time; None of none."""
    stamps = np.array([stamp for stamp, _ in values], dtype=np.int64)
    ms = np.array([value for _, value in values])
    ms, stamps = ms[np.isfinite(ms)], stamps[np.isfinite(ms)]
    edges = np.linspace(0, max(1, end_ns - begin_ns), TENTHS + 1)
    place = np.clip(np.searchsorted(edges, stamps - begin_ns, side="right") - 1, 0, TENTHS - 1)
    return {"whole": _told(ms), "tenths": [_told(ms[place == tenth]) for tenth in range(TENTHS)]}


def _told(ms: np.ndarray) -> Figures | None:
    if not len(ms):
        return None
    p50, p99 = np.percentile(ms, PERCENTS)
    return {"count": len(ms), "p50_ms": float(p50), "p99_ms": float(p99), "max_ms": float(ms.max())}


def tenths_of(looks: Sequence[Sequence[float]]) -> list[int | None]:
    """Mean of `(at, bytes)` in each tenth of the time from the first to the last."""
    if not looks:
        return [None] * TENTHS
    at, values = np.array(looks, dtype=np.float64).T
    place = np.minimum((at - at[0]) / max(at[-1] - at[0], 1e-9) * TENTHS, TENTHS - 1).astype(int)
    parts = [values[place == tenth] for tenth in range(TENTHS)]
    return [round(float(part.mean())) if len(part) else None for part in parts]


class Sayings:
    """Statuses of /diagnostics, counted by name and level, and what those that were not OK said, without numbers."""

    LEVELS = ("OK", "WARN", "ERROR", "STALE")

    def __init__(self) -> None:
        self.levels: dict[str, Counter[str]] = {}
        self.texts: Counter[str] = Counter()
        self.values: dict[str, dict[str, str]] = {}

    def said(self, name: str, level: int, message: str) -> None:
        """Count a status."""
        word = self.LEVELS[level]
        self.levels.setdefault(name, Counter())[word] += 1
        text = f"{name} {word}: {re.sub(r'[0-9]+([.][0-9]+)?', '#', message)}"
        if level and (text in self.texts or len(self.texts) < LISTED):
            self.texts[text] += 1

    def figures(self) -> Figures:
        """How often each status had each level; words of those that were not OK."""
        return {"levels": {name: dict(counts) for name, counts in self.levels.items()}, "said": dict(self.texts)}


def whole(text: str) -> int:
    """A number of a status's values; 0 for what is none."""
    return int(text) if text.isdigit() else 0
