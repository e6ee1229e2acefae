"""The compiled update behind `StreamingSignature`: S <- S * exp(z) in place, by Horner's scheme (Chen's identity).

For level n:  B_1 = S_1 + z/n,  B_m = S_m + B_(m-1) z/(n-m+1),  S_n += B_(n-1) z, from the top level down, since a level
needs the old values of those below. Words are stored reversed (newest letter slowest), so appending a letter k fills a
contiguous run of `d**m` numbers: the inner loops are plain vector multiply-adds.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from .layout import signature_size

Array = NDArray[np.float64]
Kernel = Callable[[Array, Array, int, int], int]

OK, WRONG_WIDTH, NOT_FINITE = 0, 1, 2

# "contract" allows fused multiply-add alone: NaN checks keep their meaning and sums their order.
_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "boundscheck": False}
_SIGNATURE = "int64(float64[::1], float64[::1], int64, int64)"


def buffer_size(dim: int, depth: int) -> int:
    """Length of the work buffer: signature S, last state d, step d, Horner products (a signature of one level less)."""
    return signature_size(dim, depth) + 2 * dim + (signature_size(dim, depth - 1) if depth > 1 else 0)


def _raise_level(values: Array, step: Array, product: Array, level: int, dim: int) -> None:
    for i in range(dim):
        product[i] = values[i] + step[i] / level
    start, width = 0, dim
    for m in range(2, level):
        factor = 1.0 / (level - m + 1)
        below = product[start : start + width]
        for k in range(dim):
            scale = step[k] * factor
            run = start + width + k * width
            old, new = values[run : run + width], product[run : run + width]
            for q in range(width):
                new[q] = old[q] + scale * below[q]
        start += width
        width *= dim
    below = product[start : start + width]
    for k in range(dim):
        scale = step[k]
        run = start + width + k * width
        target = values[run : run + width]
        for q in range(width):
            target[q] += scale * below[q]


def _update(buffer: Array, state: Array, dim: int, depth: int) -> int:
    if state.shape[0] != dim:
        return WRONG_WIDTH
    finite = True
    for i in range(dim):
        finite &= np.isfinite(state[i])
    if not finite:
        return NOT_FINITE
    size, width = 0, 1
    for _ in range(depth):
        width *= dim
        size += width
    last = buffer[size : size + dim]
    if np.isnan(last[0]):
        for i in range(dim):
            last[i] = state[i]
        return OK
    step = buffer[size + dim : size + 2 * dim]
    for i in range(dim):
        step[i] = state[i] - last[i]
        last[i] = state[i]
    for level in range(depth, 1, -1):
        raise_level(buffer, step, buffer[size + 2 * dim :], level, dim)
    for i in range(dim):
        buffer[i] += step[i]
    return OK


raise_level = numba.njit(**_OPTIONS)(_raise_level)


@cache
def update_kernel() -> Kernel:
    """`(buffer, state, dim, depth) -> OK | WRONG_WIDTH | NOT_FINITE`, compiled at the first call, then cached on disk.

    A NaN in the last state of `buffer` makes the next state the basepoint. A refused state leaves `buffer` as it is.
    """
    try:
        kernel: Kernel = numba.njit(_SIGNATURE, cache=True, **_OPTIONS)(_update)
    except (RuntimeError, OSError):  # nowhere to write the cache: a read-only install, no home folder, a full disk
        kernel = numba.njit(_SIGNATURE, **_OPTIONS)(_update)
    return kernel
