"""Approximate-information-state readouts of a memory (AURA-Mem, sections 4.2-4.4 and A.2).

Diagnostics on the visited distribution, never a guarantee: the theorem wants suprema over all reachable histories, and
these are means and quantiles over some of them. With the paper's own figures the bound is vacuous: it exceeds what
bounded rewards alone say.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class Spread:
    """Mean, 95 % quantile and maximum of an error over the visited steps."""

    mean: float
    q95: float
    largest: float

    @classmethod
    def of(cls, errors: FloatArray) -> Spread:
        """Of `(n,)` errors. Raises ValueError without any."""
        if errors.size == 0:
            raise ValueError("no steps were visited: give errors of at least one query step")
        return cls(float(errors.mean()), float(np.quantile(errors, 0.95)), float(errors.max()))


def total_variation(p: FloatArray, q: FloatArray) -> FloatArray:
    """Half the L1 distance of distributions `(n, A)`, 0..1 each. Raises ValueError naming what is no distribution."""
    _check(p, q)
    return np.asarray(0.5 * np.abs(p - q).sum(axis=1))


def wasserstein(p: FloatArray, q: FloatArray, places: FloatArray | None = None) -> FloatArray:
    """Wasserstein-1 distance of distributions `(n, A)` on a line, at ascending `places` `(A,)`; default 0, 1, ..."""
    _check(p, q)
    gaps = np.diff(np.arange(p.shape[1], dtype=np.float64) if places is None else places)
    if gaps.size and gaps.min() < 0:
        raise ValueError("places must ascend: sort the actions, and the distributions with them")
    return np.asarray((np.abs(np.cumsum(p - q, axis=1))[:, :-1] * gaps).sum(axis=1))


def epsilon(predicted: FloatArray, oracle: FloatArray) -> Spread:
    """Proxy of AP1: total variation between the actions predicted from the memory and the oracle's, both `(n, A)`."""
    return Spread.of(total_variation(predicted, oracle))


def delta(predicted: FloatArray, teacher: FloatArray, metric: str = "tv") -> Spread:
    """Proxy of AP2: distance of the policy's from its slow teacher's distributions `(n, A)`; metric `tv` or `w1`."""
    if metric not in ("tv", "w1"):
        raise ValueError(f"metric {metric!r} is unknown: take 'tv' or 'w1'")
    return Spread.of(total_variation(predicted, teacher) if metric == "tv" else wasserstein(predicted, teacher))


def value_residual(reached: FloatArray, predicted: FloatArray) -> Spread:
    """Delta*: one-step residual |V(z') - E V(z')| of a value head, `(n,)` each (remark 4.4)."""
    return Spread.of(np.abs(reached - predicted))


def value_constant(values: FloatArray) -> float:
    """L_V under total variation: half the span of the value head `(n,)` on the visited steps."""
    return float(0.5 * (values.max() - values.min()))


def trivial_span(lowest_reward: float, highest_reward: float, discount: float) -> float:
    """What two policies' values can differ by, from bounded rewards alone."""
    return (highest_reward - lowest_reward) / (1 - _discount(discount))


def value_loss_bound(epsilon: float, transition: float, discount: float) -> float:
    """2 (epsilon + gamma transition) / (1 - gamma), where transition is L_V delta or Delta* (theorem 4.3 ii)."""
    return 2 * (epsilon + _discount(discount) * transition) / (1 - discount)


@dataclass(frozen=True)
class ValueLoss:
    """The bound in both forms beside the span that it has to beat; `vacuous` says that neither does."""

    by_constant: float
    by_residual: float
    trivial: float

    @property
    def vacuous(self) -> bool:
        """Whether the bound says nothing that bounded rewards do not say already."""
        return min(self.by_constant, self.by_residual) >= self.trivial


def value_loss(
    epsilon: Spread, delta: Spread, residual: Spread, discount: float, rewards: tuple[float, float] = (0.0, 1.0)
) -> ValueLoss:
    """Both forms from the 95 % quantiles and the worst-case L_V, half the trivial span.

    delta is the mean, as in the paper, which therefore bounds nothing in the strict sense.
    """
    span = trivial_span(*rewards, discount)
    return ValueLoss(
        by_constant=value_loss_bound(epsilon.q95, 0.5 * span * delta.mean, discount),
        by_residual=value_loss_bound(epsilon.q95, residual.q95, discount),
        trivial=span,
    )


def _discount(discount: float) -> float:
    if not 0 <= discount < 1:
        raise ValueError(f"discount {discount}: must lie in 0..1, 1 excluded")
    return discount


def _check(*distributions: FloatArray) -> None:
    if distributions[0].shape != distributions[1].shape:
        raise ValueError(
            f"distributions of shapes {distributions[0].shape} and {distributions[1].shape}: must be alike"
        )
    for p in distributions:
        if p.ndim != 2 or p.min(initial=0) < 0 or not np.allclose(p.sum(axis=-1), 1, atol=1e-4):
            raise ValueError("each row (n, A) must be a distribution: not negative, with sum 1; give softmax outputs")
