"""Other ways to have come the same way: transforms of the state path that signatures and the update clock follow.

Source: TRACE (003) appendix A.6. A history is the states of an episode's usable ticks up to and with its branch tick,
read as a curve: straight lines between states, with the tick's index as time. A transform gives every tick the points
that are appended to the path there; the last of them is where the tick stands. Contents stay with their ticks, so that
a tick goes on seeing what it saw at (nearly) the place where it saw it: what was sampled at curve time s is appended at
the first tick k >= s, and a tick without a new sample stands at the newest one, as a live tick holds it.

The branch tick is no history: it stands where it stood, whatever became of the path before.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.periods import ticks_in

States = NDArray[np.float64]
Path = tuple[States, ...]
"""Per tick the points `(n, d_s)`, n >= 1, that it appends."""
Transform = Callable[[States, States, np.random.Generator], Path]
"""From states `(T, d_s)`, the channels' spread `(d_s,)` and a source of chance to a path over the same T ticks."""


@dataclass(frozen=True)
class TransformStrength:
    """How strong the transforms are.

    resampling: the sampling rate is drawn between 1/this and this, log-uniformly, as a multiple of the recorded one.
    jitter: relative spread of the pace; jitter_ms: how long it keeps. offset: spread of the constant offset, in the
    channels' standard deviations. kept: share of samples that sparse sampling keeps.
    """

    resampling: float = 1.5
    jitter: float = 0.3
    jitter_ms: int = 1_000
    offset: float = 0.5
    kept: float = 0.5

    def __post_init__(self) -> None:
        if not (self.resampling >= 1 and 0 <= self.jitter < 1 and self.jitter_ms >= 1 and 0 < self.kept <= 1):
            raise ValueError(f"{self}: need resampling >= 1, 0 <= jitter < 1, jitter_ms >= 1 and 0 < kept <= 1")


def identity(states: States) -> Path:
    """Every tick stands where it stood."""
    return tuple(states[:, None])


def sampled(states: States, times: NDArray[np.float64]) -> Path:
    """The curve through `states` `(T, d_s)`, T >= 1, sampled at ascending `times` in 0..T-1 and at its two ends."""
    last = len(states) - 1
    inner = times[(times > 0) & (times < last)]
    times = np.concatenate([[0.0], inner, [float(last)]]) if last else np.zeros(1)
    points = curve(states, times)
    tick_of = np.ceil(times).astype(np.int64)
    ends = np.searchsorted(tick_of, np.arange(len(states)), side="right")
    starts = np.concatenate([[0], ends[:-1]])
    return tuple(
        points[start:end] if end > start else points[end - 1 : end] for start, end in zip(starts, ends, strict=True)
    )


def curve(states: States, times: NDArray[np.float64]) -> States:
    """Points `(n, d_s)` of the piecewise linear curve at `times` `(n,)`; at whole times the very states."""
    before = np.clip(np.floor(times).astype(np.int64), 0, len(states) - 1)
    after = np.minimum(before + 1, len(states) - 1)
    share = (times - before)[:, None]
    return np.where(share == 0, states[before], (1 - share) * states[before] + share * states[after])


def pace_times(
    length: float, strength: TransformStrength, period_ms: int, rng: np.random.Generator
) -> NDArray[np.float64]:
    """Curve times in 0..length of samples taken tick by tick of an arm whose pace wanders around 1."""
    count, keeps = int(length / (1 - strength.jitter)) + 2, ticks_in(strength.jitter_ms, period_ms)
    knots = rng.uniform(-1, 1, count // keeps + 2)
    wander = np.interp(np.arange(count) / keeps, np.arange(len(knots)), knots)
    times = np.concatenate([[0.0], np.cumsum(1 + strength.jitter * wander)])
    return times[times <= length]


def transforms(period_ms: int, strength: TransformStrength | None = None) -> Mapping[str, Transform]:
    """Every transform by name for ticks `period_ms` apart, in the order of TRACE's table 3.

    The last is the negative control.
    """
    by = strength or TransformStrength()

    def time_resampling(states: States, spread: States, rng: np.random.Generator) -> Path:
        rate = by.resampling ** rng.uniform(-1, 1)
        return sampled(states, np.arange(0, len(states), 1 / rate))

    def speed_jitter(states: States, spread: States, rng: np.random.Generator) -> Path:
        return sampled(states, pace_times(len(states) - 1, by, period_ms, rng))

    def state_offset(states: States, spread: States, rng: np.random.Generator) -> Path:
        return identity(states + by.offset * spread * rng.standard_normal(states.shape[1]))

    def sparse_sampling(states: States, spread: States, rng: np.random.Generator) -> Path:
        return sampled(states, np.flatnonzero(rng.random(len(states)) < by.kept).astype(np.float64))

    def order_reversal(states: States, spread: States, rng: np.random.Generator) -> Path:
        return identity(np.concatenate([states[:-1][::-1], states[-1:]]))

    return {f.__name__: f for f in (time_resampling, speed_jitter, state_offset, sparse_sampling, order_reversal)}


ORDER_PRESERVING = ("time_resampling", "speed_jitter", "state_offset", "sparse_sampling")
NEGATIVE_CONTROL = "order_reversal"
