"""Whether the present itself shows which way it goes: where it does, no memory is needed."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

FOLDS = 10
RIDGE = (1e-2, 1e-1, 1.0, 10.0)
"""Shares of the mean diagonal of the kernel; the best of them is taken, for permuted ways too."""
PERMUTATIONS = 200


FEW_RIDGES = RIDGE[1:3]
SHOWN = 0.75
"""Where so many ways are told right from how the actions change, they have parted."""


class Visibility(NamedTuple):
    """How well a linear reading of the present tells the way.

    right: share of held-out members whose way is told, each way counting alike. chance: 95th percentile of that where
    ways are dealt at random. p: share of random deals that do as well.
    """

    right: float
    chance: float
    p: float


def visibility(
    presents: NDArray[np.float32], ways: NDArray[np.intp], groups: NDArray[np.intp], rng: np.random.Generator
) -> Visibility:
    """Cross-validated over `groups` `(N,)` (episodes), from presents `(N, F)` to ways `(N,)` of 0, 1, ..."""
    kernel = _kernel(presents)
    folds = _folds(groups, rng)
    smoothers = [_smoother(kernel, folds, ridge) for ridge in RIDGE]
    deals = [ways, *(rng.permutation(ways) for _ in range(PERMUTATIONS))]
    right = np.array([max(_right(smoother, deal) for smoother in smoothers) for deal in deals])
    return Visibility(float(right[0]), float(np.quantile(right[1:], 0.95)), float(np.mean(right[1:] >= right[0])))


def parted(
    changes: Sequence[NDArray[np.float32]], ways: NDArray[np.intp], groups: NDArray[np.intp], rng: np.random.Generator
) -> int:
    """The first of several ticks from which on the change of the actions `(N, A)` tells the way; the last if none."""
    folds = _folds(groups, rng)
    told = [
        max(_right(_smoother(_kernel(change), folds, ridge), ways) for ridge in FEW_RIDGES) >= SHOWN
        for change in changes
    ]
    late = [place for place, yes in enumerate(told) if not yes]
    return min(late[-1] + 1 if late else 0, len(changes) - 1)


def _folds(groups: NDArray[np.intp], rng: np.random.Generator) -> NDArray[np.intp]:
    """Folds `(N,)` of whole groups: several wherever there are several groups."""
    folds = rng.permutation(groups.max() + 1)[groups] % FOLDS
    if len(np.unique(folds)) > 1:
        return np.asarray(folds)
    # A few of many groups may all have been dealt one fold, and nothing would be left to read them by.
    return np.asarray(np.unique(groups, return_inverse=True)[1] % FOLDS)


def _kernel(presents: NDArray[np.float32]) -> NDArray[np.float64]:
    spread = presents.std(axis=0)
    scaled = (presents - presents.mean(axis=0)) / np.where(spread > 1e-6, np.maximum(spread, 0.01), np.inf)
    return np.asarray(scaled.astype(np.float64) @ scaled.T.astype(np.float64))


def _smoother(kernel: NDArray[np.float64], folds: NDArray[np.intp], ridge: float) -> NDArray[np.float64]:
    """`(N, N)`: times targets `(N, G)` it is the prediction of each member by those of other folds."""
    out = np.zeros_like(kernel)
    penalty = ridge * max(float(np.trace(kernel)) / len(kernel), 1e-6)
    for fold in np.unique(folds):
        held, kept = folds == fold, folds != fold
        inverse = np.linalg.inv(kernel[np.ix_(kept, kept)] + penalty * np.eye(int(kept.sum())))
        centre = np.eye(int(kept.sum())) - 1.0 / kept.sum()
        out[np.ix_(held, kept)] = kernel[np.ix_(held, kept)] @ inverse @ centre + 1.0 / kept.sum()
    return out


def _right(smoother: NDArray[np.float64], ways: NDArray[np.intp]) -> float:
    """Balanced share of members told right."""
    targets = np.eye(ways.max() + 1)[ways]
    told = (smoother @ targets / targets.mean(axis=0)).argmax(axis=1)
    return float(np.mean([np.mean(told[ways == way] == way) for way in np.unique(ways)]))
