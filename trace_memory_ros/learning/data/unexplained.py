"""When pictures show what the robot's own state does not explain: a lamp, a hand, a part that comes or goes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.observation.frames import resized, stacked
from trace_memory_ros.observation.periods import ticks_in
from trace_memory_ros.signature.normalise import Standardiser

FloatArray = NDArray[np.floating[Any]]

PX = 16
"""Side of the pictures that are compared; small ones average the cameras' noise away."""
FEATURES, REACH = 400, 1.6
"""Random features of the state, and how fast they change with it: radians per standard deviation of all channels."""
FITTED_TICKS = 6_000
PLACES = 4
"""Of a camera's picture, those that are explained worst: what is shown may be small."""
LEAST = 0.02
"""Of the range of a pixel: less is noise."""
USUAL, BRIEF = 0.9, 0.15
"""Quantile that cameras are made comparable by, and the share of training ticks that count as unexplained."""
AROUND_MS = 400
"""What is shown is written just before and after as well."""
LEAST_MS = 300
"""What is unexplained for less is not counted as shown."""


@dataclass(frozen=True)
class Shows:
    """Which ticks of an episode show what its state does not explain.

    Pictures are predicted from the standardised state by ridge regression on random Fourier features (Rahimi and Recht,
    2007), fitted to training episodes: the arm's own motion through the picture is explained, what others do is not.

    state: standardises. directions `(d_s, F)`, phases `(F,)`, weights `(F + d_s + 1, C * P * P * 3)`: the regression.
    usual `(C, P * P)`: error of each place. cameras `(C,)`: usual score of each. level: above it a tick is unexplained.
    """

    state: Standardiser
    period_ms: int
    directions: FloatArray
    phases: FloatArray
    weights: FloatArray
    usual: FloatArray
    cameras: FloatArray
    level: float
    _unexplained: dict[str, NDArray[np.bool_]] = field(default_factory=dict, repr=False, compare=False)

    @classmethod
    def fit(cls, demos: Sequence[Demonstration], state: Standardiser, period_ms: int, seed: int = 0) -> Shows | None:
        """From training episodes, `period_ms` a tick; None where there are no pictures."""
        rng = np.random.default_rng(seed)
        picked = [(demo, ticks) for demo, ticks in _picked(demos, rng) if len(ticks) and demo.images]
        if not picked:
            return None
        states = np.concatenate([state.apply(demo.state[ticks]) for demo, ticks in picked]).astype(np.float64)
        seen = np.concatenate([_pictures(demo, ticks) for demo, ticks in picked])
        directions = rng.normal(size=(states.shape[1], FEATURES)) * (REACH / np.sqrt(states.shape[1]))
        phases = rng.uniform(0.0, 2.0 * np.pi, FEATURES)
        known = _features(states, directions, phases)
        weights = np.linalg.solve(known.T @ known + np.eye(known.shape[1]), known.T @ seen.reshape(len(seen), -1))
        places = _places(seen, known @ weights)
        usual = 1.5 * np.median(places, axis=0) + LEAST
        scores = _worst(places / usual)
        cameras = np.quantile(scores, USUAL, axis=0)
        level = float(np.quantile((scores / cameras).max(axis=1), 1.0 - BRIEF))
        return cls(state, period_ms, directions, phases, weights.astype(np.float32), usual, cameras, level)

    def of(self, demo: Demonstration) -> NDArray[np.bool_]:
        """Ticks `(T,)` of an episode that are unexplained, or that lie within `AROUND_MS` of one."""
        around = ticks_in(AROUND_MS, self.period_ms)
        return np.convolve(self._high(demo), np.ones(2 * around + 1))[around:-around] > 0

    def runs(self, demo: Demonstration) -> list[tuple[int, int]]:
        """First tick and the one after the last of each stretch that is unexplained for `LEAST_MS` or longer."""
        edges = np.flatnonzero(np.diff(self._high(demo).astype(np.int8), prepend=0, append=0)).reshape(-1, 2)
        return [(begin, end) for begin, end in edges.tolist() if (end - begin) * self.period_ms >= LEAST_MS]

    def written(self, demos: Sequence[Demonstration], masks: Iterable[NDArray[np.bool_]]) -> float | None:
        """Share of the `runs` of episodes in which their write ticks `(T,)` fall at least once; None without any."""
        found = [
            mask[begin:end].any() for demo, mask in zip(demos, masks, strict=True) for begin, end in self.runs(demo)
        ]
        return float(np.mean(found)) if found else None

    def _high(self, demo: Demonstration) -> NDArray[np.bool_]:
        if demo.name not in self._unexplained:
            self._unexplained[demo.name] = self.scores(demo, np.arange(demo.ticks)) > self.level
        return self._unexplained[demo.name]

    def scores(self, demo: Demonstration, ticks: NDArray[np.int64]) -> FloatArray:
        """How little the state explains of the pictures at ticks `(N,)`; a camera exceeds 1 rarely."""
        seen = _pictures(demo, ticks)
        known = _features(self.state.apply(demo.state[ticks]).astype(np.float64), self.directions, self.phases)
        scores: FloatArray = (_worst(_places(seen, known @ self.weights) / self.usual) / self.cameras).max(axis=1)
        return scores


def _picked(
    demos: Sequence[Demonstration], rng: np.random.Generator
) -> Iterator[tuple[Demonstration, NDArray[np.int64]]]:
    """As many usable ticks of each episode, about `FITTED_TICKS` in all."""
    share = max(1, FITTED_TICKS // max(len(demos), 1))
    for demo in demos[:FITTED_TICKS]:
        usable = np.flatnonzero(demo.usable_mask)
        yield demo, np.sort(rng.choice(usable, min(share, len(usable)), replace=False))


def _pictures(demo: Demonstration, ticks: NDArray[np.int64]) -> NDArray[np.float32]:
    """Pictures `(N, C, P, P, 3)` in 0..1."""
    return stacked(resized(demo.images, PX), ticks).astype(np.float32) / 255.0


def _features(state: FloatArray, directions: FloatArray, phases: FloatArray) -> FloatArray:
    """Random Fourier features of states `(N, d_s)`, the states and a one, `(N, F + d_s + 1)`."""
    return np.concatenate([np.cos(state @ directions + phases), state, np.ones((len(state), 1))], axis=1)


def _places(seen: NDArray[np.float32], predicted: FloatArray) -> FloatArray:
    """Error of each place of pictures, in its worst colour, `(N, C, P * P)`."""
    size, cameras = seen.shape[:2]
    error = np.abs(seen - predicted.reshape(seen.shape).astype(np.float32))
    worst: FloatArray = error.reshape(size, cameras, -1, 3).max(axis=-1)
    return worst


def _worst(places: FloatArray) -> FloatArray:
    """Mean of the `PLACES` greatest errors of each camera, `(N, C)`."""
    greatest: FloatArray = np.sort(places, axis=2)[:, :, -PLACES:].mean(axis=2)
    return greatest
