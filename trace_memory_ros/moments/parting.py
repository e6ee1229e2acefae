"""When the actions begin to part: of a kind of moment, and in each episode by what it does itself."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.recorded import Floats
from trace_memory_ros.moments.visible import parted
from trace_memory_ros.observation.periods import ticks_in

AHEAD_MS, PARTING_MS = 300, 2_000
"""Over how long actions are seen to change, and how long before the end of a stretch they may begin to part."""
AROUND_MS = 1_000
"""How far from where a kind's actions part those of one episode may begin to."""
HALF = 0.5
ROUNDS = 2
"""What a way's actions are is told by when they part, and that by what they are."""


@dataclass(frozen=True)
class Parting:
    """before: ticks before a stretch's end at which the actions of most begin to part.

    ahead, around: ticks over which they change, and among which an episode's own beginning is looked for. middle
    `(A,)`: of the ways' mean changes soon after; towards `(G, A)`: each way's own, less the middle.
    """

    before: int
    ahead: int
    around: int
    middle: Floats
    towards: Floats

    @classmethod
    def fit(
        cls,
        actions: Sequence[Floats],
        firsts: NDArray[np.intp],
        ends: NDArray[np.intp],
        told: NDArray[np.intp],
        named: NDArray[np.intp],
        period_ms: int,
        rng: np.random.Generator,
    ) -> Parting:
        """actions `(T, A)` of each of N occurrences, in their deviations; firsts, ends `(N,)` of stretches, ways
        told `(N,)`, the episodes `(N,)` that they are of."""
        ahead, reach, step = (ticks_in(ms, period_ms) for ms in (AHEAD_MS, PARTING_MS, 100))
        offsets = range(reach - reach % step, -1, -step)
        changes = [_changes(actions, ends - offset, ahead) for offset in offsets]
        before = offsets[parted(changes, told, named, rng)]
        begins = ends - before
        for _ in range(ROUNDS):
            full = _changes(actions, begins + ahead, ahead)
            means = np.stack([full[told == way].mean(axis=0) for way in range(told.max() + 1)])
            middle = means.mean(axis=0)
            fitted = cls(before, ahead, ticks_in(AROUND_MS, period_ms), middle, means - middle)
            ticks = [
                fitted.tick(*one) for one in zip(actions, firsts.tolist(), ends.tolist(), told.tolist(), strict=True)
            ]
            begins = np.array([old if new is None else new for old, new in zip(begins, ticks, strict=True)])
        return fitted

    def tick(self, actions: Floats, first: int, end: int, way: int) -> int | None:
        """From which on actions `(T, A)` go the given way, not the middle of all, in a stretch from `first` to `end`.

        None where they never do. Those of somebody who stays always do: then it is the tick at which others part.
        """
        towards = self.towards[way] / max(float((self.towards[way] ** 2).sum()), 1e-9)
        usual = max(end - self.before, 0)
        if -self.middle @ towards >= HALF:
            return usual
        ticks = np.arange(max(usual - self.around, first - self.ahead, 0), min(end + 1, len(actions) - 1) + 1)
        share = (_changes([actions] * len(ticks), ticks, self.ahead) - self.middle) @ towards
        gain = np.cumsum((share - HALF)[::-1])[::-1]
        best = int(gain.argmax())
        return int(ticks[best]) if gain[best] > 0 else None


def _changes(actions: Sequence[Floats], ticks: NDArray[np.intp], ahead: int) -> Floats:
    """How actions change from each of some ticks on `(N, A)`; the first and the last are held."""
    rows = zip(actions, np.asarray(ticks).tolist(), strict=True)
    return np.stack([of[_held(tick + ahead, of)] - of[_held(tick, of)] for of, tick in rows])


def _held(tick: int, actions: Floats) -> int:
    return min(max(tick, 0), len(actions) - 1)
