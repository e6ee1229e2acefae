"""The definition of a path signature, to be read and to be tested against; slow on purpose.

A signature up to `depth` is a list of levels, level n being an array of shape `(d,) * n` whose entry `[i1, ..., in]` is
the iterated integral of the path over that word. The constant 1 of level 0 is implied.
Source: Chen's identity for piecewise linear paths; TRACE (003) section 4.1 and appendix A.5.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

from .layout import check_layout, level_slices

Array = NDArray[np.float64]
Levels = list[Array]


def zero_levels(dim: int, depth: int) -> Levels:
    """Signature of a path that does not move: all levels zero."""
    check_layout(dim, depth)
    return [np.zeros((dim,) * n) for n in range(1, depth + 1)]


def tensor_exponential(step: Array, depth: int) -> Levels:
    """Signature of the straight segment `step` `(d,)`: level n is the n-fold outer power of `step` over n!."""
    step = np.asarray(step, dtype=np.float64)
    check_layout(step.size, depth)
    power, levels = step, [step]
    for n in range(2, depth + 1):
        power = np.multiply.outer(power, step)
        levels.append(power / math.factorial(n))
    return levels


def chen_product(first: Levels, second: Levels) -> Levels:
    """Signature of `first` followed by `second` (Chen's identity): level n sums all splits of a word into two parts."""
    product = []
    for n in range(1, len(first) + 1):
        level = first[n - 1] + second[n - 1]
        for head in range(1, n):
            level = level + np.multiply.outer(first[head - 1], second[n - head - 1])
        product.append(level)
    return product


def signature_levels(path: Array, depth: int) -> Levels:
    """Levels of the piecewise linear `path` `(T, d)`, basepoint at its first state."""
    path = np.asarray(path, dtype=np.float64)
    if path.ndim != 2 or len(path) == 0:
        raise ValueError(f"path of shape {path.shape}: expected (T, d) with T >= 1")
    levels = zero_levels(path.shape[1], depth)
    for step in np.diff(path, axis=0):
        levels = chen_product(levels, tensor_exponential(step, depth))
    return levels


def signature(path: Array, depth: int) -> Array:
    """Flat signature `(S,)` of `path` `(T, d)` in canonical order."""
    return flatten(signature_levels(path, depth))


def flatten(levels: Levels) -> Array:
    """Levels to a flat `(S,)` array in canonical order."""
    return np.concatenate([level.reshape(-1) for level in levels])


def unflatten(flat: Array, dim: int, depth: int) -> Levels:
    """The inverse of `flatten`."""
    return [flat[part].reshape((dim,) * n) for n, part in enumerate(level_slices(dim, depth), start=1)]
