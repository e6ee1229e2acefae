"""Whether a set of ways on falls in groups that lie far apart against the spread within them."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]
Labels = NDArray[np.intp]

MOST_GROUPS = 6
FLOOR = 0.1
"""Standard deviations of action: a spread within groups that is smaller counts as this."""
LEAST_SHARE = 0.15
"""Of the set, and three at least: fewer are no group, they are strays."""
COVERED = 0.7
"""Share of the set that lies in groups, at least."""
DIRECTIONS = 2
STRAY = -1
_ROUNDS = 8


class Split(NamedTuple):
    """Of each set: how far its nearest two groups are apart against the spread within `(T,)`, the group of each member
    `(T, K)`, `STRAY` for those that are in none, the directions in which groups lie apart, of unit length or 0,
    `(T, 2, k)`, and the middle of the groups' centres `(T, k)`."""

    score: Floats
    labels: Labels
    towards: Floats
    middle: Floats


def split(sets: Floats, most: int = MOST_GROUPS) -> Split:
    """The best two or more groups of each set `(T, K, k)`: the widest of up to `most` is halved again and again.

    What falls off in so small parts that it is no group counts neither as a group nor to the spread of one.
    """
    mean = sets.mean(axis=1, keepdims=True)
    sets = np.asarray(sets - mean, np.float32)
    parts = np.zeros(sets.shape[:2], np.intp)
    best = Split(
        np.zeros(len(sets), np.float32),
        parts,
        np.zeros((len(sets), DIRECTIONS, sets.shape[2]), np.float32),
        np.asarray(mean[:, 0], np.float32),
    )
    found = _groups(sets, parts, 1)
    for count in range(2, most + 1):
        second = _halved(sets, parts == found.scatter.argmax(axis=1)[:, None])
        parts = np.where(second, count - 1, parts)
        found = _groups(sets, parts, count)
        kept = found.size >= least_group(sets.shape[1])
        score = np.where(second.any(axis=1), _apart(found, kept, sets.shape[1]), 0.0)
        better = score > best.score
        middle = (found.centres * kept[..., None]).sum(axis=1) / np.maximum(kept.sum(axis=1, keepdims=True), 1)
        best = Split(
            np.where(better, score, best.score).astype(np.float32),
            np.where(better[:, None], np.where(np.take_along_axis(kept, parts, 1), parts, STRAY), best.labels),
            np.where(better[:, None, None], _directions(found.centres, kept), best.towards),
            np.where(better[:, None], middle + mean[:, 0], best.middle).astype(np.float32),
        )
    return best


def mixed(labels: Labels) -> Floats:
    """How evenly the first member's group lies among members that are sorted by how much they look alike, `(T,)`.

    1: other groups are as near as its own, 0: all of its own are nearer, the present tells it from the others. Strays
    play no part.
    """
    grouped = labels != STRAY
    first = np.take_along_axis(labels, grouped.argmax(axis=1)[:, None], 1)
    own = grouped & (labels == first)
    count, size = grouped.sum(axis=1), own.sum(axis=1)
    ranks = (own * (grouped.cumsum(axis=1) - 1)).sum(axis=1) - size * (size - 1) / 2
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


def _halved(sets: Floats, members: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """The second of the best two halves of `members` `(T, K)` along their main axis; empty where there is but one."""
    count = members.sum(axis=1, keepdims=True)
    mean = (sets * members[..., None]).sum(axis=1) / np.maximum(count, 1)
    centred = (sets - mean[:, None]) * members[..., None]
    along = np.where(members, np.matmul(centred, _main_axis(centred)[..., None])[..., 0], np.inf)
    order = along.argsort(axis=1)
    sums = np.cumsum(np.where(members, along, 0.0)[np.arange(len(sets))[:, None], order], axis=1)[:, :-1]
    first = np.arange(1, members.shape[1])
    between = sums**2 / first + sums**2 / np.maximum(count - first, 1)
    between[count - first < 1] = -1.0
    best = between.argmax(axis=1)
    found = between[np.arange(len(sets)), best] >= 0
    second = np.zeros(members.shape, bool)
    np.put_along_axis(second, order, np.arange(members.shape[1]) > best[:, None], 1)
    return second & members & found[:, None]


class _Groups(NamedTuple):
    """Centres `(T, count, k)`, summed squares around them `(T, count)`, members `(T, count)`."""

    centres: Floats
    scatter: Floats
    size: Floats


def _groups(sets: Floats, parts: Labels, count: int) -> _Groups:
    member = (parts[:, None] == np.arange(count)[:, None]).astype(np.float32)
    size = member.sum(axis=2)
    centres = np.matmul(member, sets) / np.maximum(size, 1.0)[..., None]
    squares = np.matmul(member, (sets**2).sum(axis=2, keepdims=True))[..., 0]
    return _Groups(centres, np.maximum(squares - size * (centres**2).sum(axis=2), 0.0), size)


def _apart(found: _Groups, kept: NDArray[np.bool_], members: int) -> Floats:
    """Distance of the nearest two of the groups `kept` against the spread within; 0 where they are too few."""
    centres = found.centres
    between = np.sqrt(((centres[:, :, None] - centres[:, None]) ** 2).sum(axis=-1))
    between[:, np.arange(centres.shape[1]), np.arange(centres.shape[1])] = np.inf
    between[~(kept[:, :, None] & kept[:, None])] = np.inf
    inside = np.maximum((found.size * kept).sum(axis=1), 1.0)
    score = between.min(axis=(1, 2)) / np.sqrt((found.scatter * kept).sum(axis=1) / inside + FLOOR**2)
    return np.where((kept.sum(axis=1) > 1) & (inside >= COVERED * members), score, 0.0)


def _directions(centres: Floats, kept: NDArray[np.bool_]) -> Floats:
    """The main directions `(T, 2, k)` in which the groups `kept` lie apart."""
    share = kept / np.maximum(kept.sum(axis=1, keepdims=True), 1)
    around = (centres - (centres * share[..., None]).sum(axis=1, keepdims=True)) * kept[..., None]
    first = _main_axis(around)
    left = around - np.matmul(around, first[..., None]) * first[:, None]
    second = _main_axis(left) * (np.abs(left).max(axis=(1, 2)) > 1e-4)[:, None]
    return np.stack([first, second], axis=1)


def _main_axis(centred: Floats) -> Floats:
    """The first principal axis `(T, k)` of each set, by repeated multiplication."""
    scatter = np.matmul(centred.transpose(0, 2, 1), centred)
    axis = np.take_along_axis(scatter, np.einsum("tkk->tk", scatter).argmax(axis=1)[:, None, None], 2)[..., 0]
    for _ in range(_ROUNDS):
        axis = axis / np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-12)
        axis = np.matmul(scatter, axis[..., None])[..., 0]
    return np.asarray(axis / np.maximum(np.linalg.norm(axis, axis=1, keepdims=True), 1e-12))
