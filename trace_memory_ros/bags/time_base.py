"""Whether what a bag holds counts from one clock: by when messages were recorded, and by how a robot moved."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

SECOND_NS = 1_000_000_000
AGREE_NS = SECOND_NS
"""Header stamps of one clock are recorded after alike delays, but for this much."""
RECEIVED_NS = 100_000_000
"""Log times and header stamps may lie this far apart, or a tick, before they count as two clocks."""
WITHIN_NS = 5 * SECOND_NS
COARSE_NS, FINE_NS = 50_000_000, 10_000_000
CLEAR_NS = 500_000_000
"""Shifts that lie farther apart than this must be told apart by the motion."""
LEAST_MOTION = 0.02
"""rad, m, or per second: what moves less stands."""
LEAST_TICKS, MOST_TICKS = 10, 2000
UNLIKE, CLEARLY = 0.2, 0.001
"""Share of the motion that commands at their best shift may leave unexplained, and by how much more others must."""

LATEST_NS = 2**62
"""A century and a half; differences of such times still fit 64 bits. An mcap log time has 64 bits without a sign."""

Longs = NDArray[np.int64]
Doubles = NDArray[np.float64]


class ClockMarks:
    """Log times and header stamps of a topic's messages, ns."""

    def __init__(self) -> None:
        self._logs = array("q")
        self._stamps = array("q")

    def note(self, log_ns: int, stamp_ns: int) -> None:
        """A message with its log time and its stamp; times that no clock tells are of damaged ones, and say nothing."""
        if max(abs(log_ns), abs(stamp_ns)) > LATEST_NS:
            return
        self._logs.append(log_ns)
        self._stamps.append(stamp_ns)

    @property
    def lag_ns(self) -> int | None:
        """Median of log time less stamp; None without a message."""
        return int(np.median(self._lags()[1])) if self._logs else None

    def lag_beside(self, other: ClockMarks) -> int:
        """Median by how much later messages are recorded after their stamps than those of `other` recorded beside them.

        Where stamps are of a simulation that is slower than the recorder's clock, lags grow; their difference does not.
        """
        logs, lags = self._lags()
        others, other_lags = other._lags()
        right = np.searchsorted(others, logs).clip(1, max(len(others) - 1, 1))
        before = right - 1
        right = np.minimum(right, len(others) - 1)
        nearest = np.where(np.abs(others[before] - logs) <= np.abs(others[right] - logs), before, right)
        return int(np.median(lags - other_lags[nearest]))

    def _lags(self) -> tuple[Longs, Longs]:
        """Log times in order, and log time less stamp of each."""
        logs, stamps = (np.frombuffer(values, dtype=np.int64) for values in (self._logs, self._stamps))
        order = np.argsort(logs, kind="stable")
        return logs[order], (logs - stamps)[order]


def fallen_back(stamps_ns: Longs) -> NDArray[np.bool_]:
    """Which stamps `(N,)`, in the order of recording, a clock gave again after it fell back by over `AGREE_NS`.

    That is as a restart leaves them, until they rise beyond what came before. One stamp that is far off is no such.
    """
    again = np.zeros(len(stamps_ns), dtype=bool)
    if len(stamps_ns) < 4:
        return again
    before, after = (np.array([f(pair) for pair in pairwise(stamps_ns.tolist())]) for f in (min, max))
    for fall in np.flatnonzero(before[:-2] - after[2:] > AGREE_NS) + 2:
        again[fall:] |= stamps_ns[fall:] <= stamps_ns[:fall][~again[:fall]].max()
    return again


class Motion(NamedTuple):
    """What is commanded, at times `(N,)` as `(N, A)`, and what is measured, at `(T,)` as `(T, A)`; SI units, ns."""

    commanded_ns: Longs
    commanded: Doubles
    measured_ns: Longs
    measured: Doubles

    def of_moving(self) -> Motion:
        """Ticks with a known state, at most 2000, and what moves in commands and in measurements."""
        known = np.flatnonzero(np.isfinite(self.measured).all(axis=1))
        known = known[:: max(1, -(-len(known) // MOST_TICKS))]
        order = np.argsort(self.commanded_ns, kind="stable")
        seen = self.measured[known]
        moving = np.zeros(seen.shape[1], dtype=bool)
        if len(known) and len(order):
            moving = np.minimum(np.ptp(seen, axis=0), np.ptp(self.commanded, axis=0)) >= LEAST_MOTION
        return Motion(
            self.commanded_ns[order], self.commanded[order][:, moving], self.measured_ns[known], seen[:, moving]
        )


def shift_by_motion(motion: Motion, around_ns: int = 0, within_ns: int = WITHIN_NS) -> int | None:
    """By how much commands are to be moved so that the measured motion follows them best, ns; with the robot's delay.

    Looks `within_ns` of `around_ns`. None where nothing moves, where nothing follows, or where several shifts would do.
    """
    moving = motion.of_moving()
    if not moving.measured.shape[1] or min(len(moving.measured_ns), len(moving.commanded_ns)) < LEAST_TICKS:
        return None
    unlike = _unlikeness(moving)
    shifts = np.arange(around_ns - within_ns, around_ns + within_ns + 1, COARSE_NS)
    found = np.array([unlike(int(shift)) for shift in shifts])
    best = int(found.argmin())
    rivals = found[np.abs(shifts - shifts[best]) > CLEAR_NS]
    at_edge = min(shifts[best] - shifts[0], shifts[-1] - shifts[best]) < CLEAR_NS
    if at_edge or found[best] > UNLIKE or rivals.min() < 3 * found[best] + CLEARLY:
        return None
    fine = np.arange(shifts[best] - COARSE_NS, shifts[best] + COARSE_NS + 1, FINE_NS)
    return int(fine[int(np.argmin([unlike(int(shift)) for shift in fine]))])


def _unlikeness(motion: Motion) -> Callable[[int], float]:
    """1 less the mean correlation of commands, moved by a shift, with what is measured; 2 where they hardly overlap."""
    begin_ns = int(motion.measured_ns[0])
    at = (motion.measured_ns - begin_ns) / SECOND_NS
    times = (motion.commanded_ns - begin_ns) / SECOND_NS

    def unlike(shift_ns: int) -> float:
        wanted = at - shift_ns / SECOND_NS
        both = (wanted >= times[0]) & (wanted <= times[-1])
        if both.sum() < max(LEAST_TICKS, len(at) // 2):
            return 2.0
        alike = 0.0
        for commanded, measured in zip(motion.commanded.T, motion.measured[both].T, strict=True):
            moved = np.interp(wanted[both], times, commanded)
            a, b = moved - moved.mean(), measured - measured.mean()
            size = float(np.sqrt((a @ a) * (b @ b)))
            alike += float(a @ b) / size if size > 0 else 0.0
        return 1.0 - alike / len(motion.commanded.T)

    return unlike
