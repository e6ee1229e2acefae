"""How sure a figure is: intervals for proportions and for anything that can be resampled, and percentiles."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist
from typing import Any, NamedTuple

import mpmath
import numpy as np
from numpy.typing import ArrayLike, NDArray

FloatArray = NDArray[np.float64]
Statistic = Callable[[FloatArray], FloatArray]
"""Maps `(R, n)` resamples to `(R,)` values."""

RESAMPLES = 10_000
_CHUNK_NUMBERS = 4_000_000


class Interval(NamedTuple):
    """A two-sided confidence interval, in the unit of the figure."""

    low: float
    high: float


def wilson_interval(successes: float, trials: float, confidence: float = 0.95) -> Interval:
    """Wilson score interval of a proportion; counts may be effective ones, which are not whole.

    Unlike a bootstrap it keeps its width at 0 % and 100 %: 20 of 20 gives 0.839 to 1, where resampling gives 1 to 1.
    Raises ValueError for counts that are no proportion. Source: Wilson, "Probable inference", JASA 22, 1927.
    """
    if not 0 <= successes <= trials or trials == 0:
        raise ValueError(f"{successes} successes in {trials} trials: need 0 <= successes <= trials and a trial")
    z = NormalDist().inv_cdf(0.5 + _checked(confidence) / 2)
    share = successes / trials
    centre = share + z * z / (2 * trials)
    half = z * math.sqrt(share * (1 - share) / trials + (z / (2 * trials)) ** 2)
    scale = 1 + z * z / trials
    # At the ends the formula is exact in real arithmetic only.
    low = 0.0 if successes == 0 else (centre - half) / scale
    high = 1.0 if successes == trials else (centre + half) / scale
    return Interval(low, high)


def bootstrap_interval(
    values: ArrayLike,
    statistic: Statistic | None = None,
    *,
    confidence: float = 0.95,
    resamples: int = RESAMPLES,
    seed: int = 0,
) -> Interval:
    """Percentile bootstrap interval of `statistic` (default: the mean) of `(n,)` values; a seed gives one interval.

    For a proportion use `wilson_interval`. Raises ValueError for no values, or values that are not finite.
    Source: Efron, "Bootstrap methods", Ann. Statist. 7, 1979.
    """
    sample = _sample(values)
    if resamples < 1:
        raise ValueError(f"resamples = {resamples}: must be at least 1")
    tail = (1 - _checked(confidence)) / 2
    take = statistic or _mean
    random = np.random.default_rng(seed)
    rows = max(1, min(resamples, _CHUNK_NUMBERS // sample.size))
    parts = []
    for start in range(0, resamples, rows):
        picks = random.integers(0, sample.size, (min(rows, resamples - start), sample.size))
        parts.append(take(sample[picks]))
    low, high = np.quantile(np.concatenate(parts), (tail, 1 - tail))
    return Interval(float(low), float(high))


def t_interval(values: ArrayLike) -> Interval:
    """95 % Student interval of the mean of `(n,)` values, for the few seeds that a bootstrap cannot resample.

    Raises ValueError for fewer than two values, or values that are not finite.
    Source: "Student", "The probable error of a mean", Biometrika 6, 1908.
    """
    sample = _sample(values)
    if sample.size < 2:
        raise ValueError("an interval needs at least two values: run more seeds")
    half = _student_quantile(sample.size - 1) * float(sample.std(ddof=1)) / math.sqrt(sample.size)
    return Interval(float(sample.mean()) - half, float(sample.mean()) + half)


def sign_test(ups: int, downs: int) -> float:
    """Chance of counts that are at least so uneven, either way, where up is as likely as down; 1 for none at all.

    Source: Dixon and Mood, "The statistical sign test", JASA 41, 1946.
    """
    count = ups + downs
    rarer = sum(math.comb(count, k) for k in range(min(ups, downs) + 1))
    chance: float = 2 * rarer / 2**count
    return min(1.0, chance)


def percentiles(values: ArrayLike, percents: Sequence[float]) -> tuple[float, ...]:
    """Percentiles (0..100) of `(n,)` values, linear between neighbours. Raises ValueError as `bootstrap_interval`."""
    outside = [percent for percent in percents if not 0 <= percent <= 100]
    if outside:
        raise ValueError(f"percentile {outside[0]}: must be 0..100")
    return tuple(float(value) for value in np.percentile(_sample(values), list(percents)))


@lru_cache
def _student_quantile(freedom: int) -> float:
    """Of a variable by Student's distribution, 95 % lie within +-t: I_x(n/2, 1/2) = 0.05 at x = n / (n + t^2)."""

    def beyond(t: Any) -> Any:
        return mpmath.betainc(freedom / 2, 0.5, 0, freedom / (freedom + t * t), regularized=True) - 0.05

    return float(mpmath.findroot(beyond, (1.9, 13.0), solver="ridder"))


def _mean(resampled: FloatArray) -> FloatArray:
    return np.asarray(resampled.mean(axis=1), dtype=np.float64)


def _checked(confidence: float) -> float:
    if not 0 < confidence < 1:
        raise ValueError(f"confidence = {confidence}: must lie between 0 and 1, for example 0.95")
    return confidence


def _sample(values: ArrayLike) -> FloatArray:
    sample = np.asarray(values, dtype=np.float64)
    if sample.ndim != 1 or sample.size == 0:
        raise ValueError(f"values of shape {sample.shape}: need a flat list with at least one number")
    if not np.isfinite(sample).all():
        raise ValueError(f"values hold {int((~np.isfinite(sample)).sum())} numbers that are not finite: leave them out")
    return sample
