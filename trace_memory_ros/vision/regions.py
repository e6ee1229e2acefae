"""Regions of one colour in a picture, and the outlines of those that are small enough to be things."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numba import njit
from numpy.typing import NDArray

Floats = NDArray[np.float32]
COLOURS, OUTLINE = 3, 10
WIDTH = COLOURS + OUTLINE
COLOURED = 0.2
"""Least difference, of 0..1, between the brightest and the darkest colour of a pixel that has a hue; less is grey."""
SAME_HUE = 0.25
"""By how much the middle colour of two such pixels may differ, as a share of that difference. A thing's faces are lit
unlike and have one hue."""
ALIKE = 0.1
"""By how much two grey pixels may differ in each colour."""


@njit
def belong(one: Floats, other: Floats) -> bool:
    """Whether two neighbouring pixels `(3,)` are of one region; never a grey one and one that has a hue, or blurred
    edges would join a thing to what it lies on.
    """
    # Number by number, since this is asked twice for every pixel.
    low, lower = min(one[0], one[1], one[2]), min(other[0], other[1], other[2])
    much, more = max(one[0], one[1], one[2]) - low, max(other[0], other[1], other[2]) - lower
    if (much < COLOURED) != (more < COLOURED):
        return False
    if much < COLOURED:
        return max(abs(one[0] - other[0]), abs(one[1] - other[1]), abs(one[2] - other[2])) <= ALIKE
    turned = 0.0
    for k in range(COLOURS):
        turned = max(turned, abs((one[k] - low) / much - (other[k] - lower) / more))
    return turned <= SAME_HUE


@njit
def _root(parents: NDArray[np.int64], at: int) -> int:
    while parents[at] != at:
        parents[at] = parents[parents[at]]
        at = parents[at]
    return at


@njit
def labels(image: Floats) -> NDArray[np.int64]:
    """Of each pixel of `(h, w, 3)` the first pixel of its region `(h * w,)`; neighbours are beside or above."""
    rows, columns, _ = image.shape
    parents = np.arange(rows * columns)
    for y in range(rows):
        for x in range(columns):
            at = y * columns + x
            for before, there in ((at - 1, x > 0), (at - columns, y > 0)):
                if there and belong(image[y, x], image[before // columns, before % columns]):
                    one, other = _root(parents, at), _root(parents, before)
                    parents[max(one, other)] = min(one, other)
    for at in range(rows * columns):
        parents[at] = _root(parents, at)
    return parents


class Things(NamedTuple):
    """Of a picture `(h, w, 3)`, the largest first. middles `(n, 2)`: down and right, in pixels. looks `(n, WIDTH)`.
    of `(h, w)`: which of them each pixel is of, -1 for none.
    """

    middles: NDArray[np.float64]
    looks: Floats
    of: NDArray[np.int64]


def things(image: Floats, least: int, most: int, colourful: float) -> Things:
    """Regions of `(h, w, 3)` of `least` pixels or more, at most `most` wide and tall; none of the ground's hue, which
    is seen through a ring too.

    colourful: by how much the brightest of a thing's three colours is above the darkest; less is grey.
    """
    columns = image.shape[1]
    region = labels(image)
    sizes = np.bincount(region)
    small = np.flatnonzero((sizes >= least) & (sizes <= most * most))
    small = small[np.argsort(-sizes[small], kind="stable")]
    number = np.full(len(sizes), -1)
    number[small] = np.arange(len(small))
    pixels = np.flatnonzero(number[region] >= 0)
    of, count = number[region[pixels]], sizes[small]
    where = np.stack([pixels // columns, pixels % columns], axis=1)
    sides = np.stack([_extent(of, axis, len(small)) for axis in where.T], axis=1)
    middles = _sums(of, where, len(small)) / count[:, None]
    colours = _sums(of, image.reshape(-1, COLOURS)[pixels], len(small)) / count[:, None]
    outlines = _outlines(of, where - middles[of], count, sides.prod(axis=1)) / np.array([most] + [1] * (OUTLINE - 1))
    kept = (sides.max(axis=1, initial=0) <= most) & (np.ptp(colours, axis=1) >= colourful)
    ground = _ground(image, region == sizes.argmax(), most)
    if ground is not None:
        kept &= np.array([not belong(colour, ground) for colour in colours.astype(np.float32)], dtype=bool)
    looks = np.concatenate([colours, outlines], axis=1)[kept].astype(np.float32)
    number[small] = np.where(kept, np.cumsum(kept) - 1, -1)
    return Things(middles[kept], looks, number[region].reshape(image.shape[:2]))


def _ground(image: Floats, largest: NDArray[np.bool_], most: int) -> Floats | None:
    """The mean colour of a picture's largest region `(h * w,)`, on which things lie; None where that may be a thing."""
    rows, columns = np.divmod(np.flatnonzero(largest), image.shape[1])
    return None if max(np.ptp(rows), np.ptp(columns)) < most else image[rows, columns].mean(axis=0)


def _sums(of: NDArray[np.int64], values: NDArray[Any], count: int) -> NDArray[np.float64]:
    """Sums `(count, d)` of the rows of `(n, d)` by the number that each is of."""
    return np.stack([np.bincount(of, column, count) for column in values.T], axis=1)


def _extent(of: NDArray[np.int64], where: NDArray[np.int64], count: int) -> NDArray[np.int64]:
    first, last = np.full(count, np.iinfo(np.int64).max), np.full(count, -1)
    np.minimum.at(first, of, where)
    np.maximum.at(last, of, where)
    return last - first + 1


def _outlines(
    of: NDArray[np.int64], away: NDArray[np.float64], count: NDArray[np.int64], boxes: NDArray[np.int64]
) -> NDArray[np.float64]:
    """Root of the size, share of the box that is filled, and central moments (Hu 1962), which no size changes.

    away `(n, 2)`: of each pixel from its region's middle, down and right.
    """
    side = np.sqrt(count)
    down, right = (away / side[of, None]).T

    def moment(i: int, j: int) -> NDArray[np.float64]:
        mean: NDArray[np.float64] = np.bincount(of, down**i * right**j, len(count)) / count
        return mean

    spread = (np.sqrt(moment(2, 0)), np.sqrt(moment(0, 2)), moment(1, 1))
    skew = (moment(3, 0), moment(2, 1), moment(1, 2), moment(0, 3))
    radial = moment(4, 0) + 2.0 * moment(2, 2) + moment(0, 4)
    return np.stack([side, count / boxes, *spread, *skew, radial], axis=1)
