"""Whether a set of ways on falls in two groups, far apart against the spread within."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

FLOOR = 0.1
"""Standard deviations of action: a spread within groups that is smaller counts as this."""
LEAST_SHARE = 0.15
"""Of the set, and three at least: fewer are no group."""
_ROUNDS = 8


class Split(NamedTuple):
    """Of each set: how far apart its two groups are against the spread within `(T,)`, who is in the second `(T, K)`, and
    where that lies as seen from the first, of unit length `(T, k)`."""

    score: Floats
    second: NDArray[np.bool_]
    towards: Floats


def split(sets: Floats) -> Split:
    """The best two groups along the main axis of each set `(T, K, k)`."""
    count = sets.shape[1]
    centred = sets - sets.mean(axis=1, keepdims=True)
    along = np.matmul(centred, _main_axis(centred)[..., None])[..., 0]
    order = along.argsort(axis=1)
    sums = np.cumsum(np.take_along_axis(along, order, 1), axis=1)[:, :-1]
    first = np.arange(1, count)
    between = sums**2 / first + sums**2 / (count - first)
    least = least_group(count)
    between[:, (first < least) | (count - first < least)] = 0.0
    best = between.argmax(axis=1)
    rows = np.arange(len(sets))
    apart = np.abs(sums[rows, best]) * (1.0 / (best + 1) + 1.0 / (count - best - 1))
    within = ((centred**2).sum(axis=(1, 2)) - between[rows, best]) / count
    second = np.zeros(along.shape, bool)
    np.put_along_axis(second, order, np.arange(count) > best[:, None], 1)
    inner = np.matmul((second / second.sum(axis=1, keepdims=True))[:, None].astype(np.float32), centred)[:, 0]
    towards = inner / np.maximum(np.linalg.norm(inner, axis=1, keepdims=True), 1e-12)
    return Split((apart / np.sqrt(np.maximum(within, 0.0) + FLOOR**2)).astype(np.float32), second, towards)


def mixed(second: NDArray[np.bool_]) -> Floats:
    """How evenly two groups `(T, K)` lie among members that are sorted by how much they look alike, `(T,)`.

    1: one group is as near as the other, 0: all of one are nearer than any of the other, the present tells them apart.
    """
    count = second.shape[1]
    size = second.sum(axis=1)
    ranks = (second * np.arange(count)).sum(axis=1) - size * (size - 1) / 2
    return np.asarray(1.0 - np.abs(2.0 * ranks / np.maximum(size * (count - size), 1) - 1.0), np.float32)


def least_group(count: int) -> int:
    """Members that a group of a set of `count` has at least."""
    return max(3, int(np.ceil(LEAST_SHARE * count)))


def rotated(sets: Floats, rng: np.random.Generator) -> Floats:
    """Sets `(T, K, k)` of the same means and covariances without any groups: members mixed by one random rotation.

    Source: Langsrud, "Rotation tests", Statistics and Computing 15, 2005.
    """
    mean = sets.mean(axis=1, keepdims=True)
    return np.asarray(mean + np.matmul(_rotation(sets.shape[1], rng).astype(np.float32), sets - mean))


def _rotation(count: int, rng: np.random.Generator) -> NDArray[np.float64]:
    """A random rotation of `count` members that keeps their mean."""
    basis = np.linalg.qr(np.column_stack([np.ones(count), rng.normal(size=(count, count - 1))]))[0][:, 1:]
    turned, upper = np.linalg.qr(rng.normal(size=(count - 1, count - 1)))
    return np.asarray(basis @ (turned * np.sign(np.diag(upper))) @ basis.T)


def _main_axis(centred: Floats) -> Floats:
    """The first principal axis `(T, k)` of each set, by repeated multiplication."""
    scatter = np.matmul(centred.transpose(0, 2, 1), centred)
    axis = np.take_along_axis(scatter, np.einsum("tkk->tk", scatter).argmax(axis=1)[:, None, None], 2)[..., 0]
    for _ in range(_ROUNDS):
        axis = np.matmul(scatter, axis[..., None])[..., 0]
        axis /= np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-12)
    return np.asarray(axis)
