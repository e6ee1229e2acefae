"""The compiled update behind `StreamingSignature`: S <- S * exp(z) in place, by Horner's scheme (Chen's identity).

For level n:  B_1 = S_1 + z/n,  B_m = S_m + B_(m-1) z/(n-m+1),  S_n += B_(n-1) z, from the top level down, since a level
needs the old values of those below. Words are stored reversed (newest letter slowest), so appending a letter fills a
contiguous run of `d**m` numbers: the inner loops are plain vector multiply-adds. Sizes are constants of the compiled
code, one build per (dim, depth), and the runs of the top level start on cache lines: each is worth about 10 %.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

import numba
import numpy as np
from numpy.typing import NDArray

from .compiled import compiled
from .layout import reversed_word_order, signature_size

Array = NDArray[np.float64]
Kernel = Callable[[Array, Array], int]

OK, WRONG_WIDTH, NOT_FINITE = 0, 1, 2
_MOVED = 3

_LINE = 8  # float64 numbers in a cache line of 64 bytes
# "contract" allows fused multiply-add alone: NaN checks keep their meaning and sums their order.
_OPTIONS: dict[str, Any] = {"fastmath": {"contract"}, "error_model": "numpy", "boundscheck": False}
_SIGNATURE = "int64(float64[::1], float64[::1])"


def _aligned(count: int) -> int:
    return (count + _LINE - 1) // _LINE * _LINE


@dataclass(frozen=True)
class BufferPlan:
    """Where things lie in the work buffer of one (dim, depth).

    Levels below the top one; the last state; the step; Horner products, as the levels; the top level in `dim` runs
    padded to cache lines. At depth 1 the level is kept with the lower ones and the top is empty.
    """

    dim: int
    depth: int

    @property
    def last(self) -> int:
        """Start of the last state; the step follows it."""
        return signature_size(self.dim, max(self.depth - 1, 1))

    @property
    def products(self) -> int:
        """Start of the Horner products B_1, B_2, ..."""
        return self.last + 2 * self.dim

    @property
    def top(self) -> int:
        """Start of the top level."""
        return _aligned(self.products + self.last)

    @property
    def stride(self) -> int:
        """Distance of two runs of the top level."""
        return _aligned(self.dim ** (self.depth - 1)) if self.depth > 1 else 0

    def allocate(self) -> Array:
        """A zeroed buffer that starts on a cache line."""
        length = self.top + self.dim * self.stride
        raw = np.zeros(length + _LINE)
        skip = -raw.ctypes.data // raw.itemsize % _LINE
        return raw[skip : skip + length]

    def positions(self) -> NDArray[np.intp]:
        """Where each coefficient of the canonical order `(S,)` lies in the buffer."""
        where = reversed_word_order(self.dim, self.depth).copy()
        if self.depth > 1:
            run, letter = self.dim ** (self.depth - 1), np.arange(self.dim)
            top = self.top + letter[:, None] * self.stride + np.arange(run)
            where[self.last :] = top.reshape(-1)[where[self.last :] - self.last]
        return where


def _read_step(last: Array, step: Array, state: Array) -> int:
    finite = True
    for i in range(last.size):
        finite &= np.isfinite(state[i])
    if not finite:
        return NOT_FINITE
    if np.isnan(last[0]):
        for i in range(last.size):
            last[i] = state[i]
        return OK
    for i in range(last.size):
        step[i] = state[i] - last[i]
        last[i] = state[i]
    return _MOVED


read_step = numba.njit(**_OPTIONS)(_read_step)


# Written out, for shared helpers would cost a tenth of the speed.
def _update_for(plan: BufferPlan) -> Kernel:  # noqa: C901
    dim, depth = plan.dim, plan.depth
    n1, n2, n3 = dim, dim**2, dim**3
    last0, product0 = plan.last, plan.products
    start2 = plan.top if depth == 2 else n1
    start3 = plan.top if depth == 3 else n1 + n2
    start4 = plan.top
    run1 = plan.stride if depth == 2 else n1
    run2 = plan.stride if depth == 3 else n2
    run3 = plan.stride

    def update(buffer: Array, state: Array) -> int:  # noqa: C901
        if state.size != dim:
            return WRONG_WIDTH
        z = buffer[last0 + dim : product0]
        code: int = read_step(buffer[last0 : last0 + dim], z, state)
        if code != _MOVED:
            return code
        s1, s2, s3, s4 = buffer[:n1], buffer[start2:], buffer[start3:], buffer[start4:]
        b1, b2, b3 = buffer[product0:], buffer[product0 + n1 :], buffer[product0 + n1 + n2 :]
        if depth >= 4:
            for i in range(n1):
                b1[i] = s1[i] + z[i] / 4.0
            for k in range(dim):
                a = z[k] / 3.0
                for i in range(n1):
                    b2[k * n1 + i] = s2[k * n1 + i] + a * b1[i]
            for k in range(dim):
                a = z[k] / 2.0
                for i in range(n2):
                    b3[k * n2 + i] = s3[k * n2 + i] + a * b2[i]
            for k in range(dim):
                a = z[k]
                for i in range(n3):
                    s4[k * run3 + i] += a * b3[i]
        if depth >= 3:
            for i in range(n1):
                b1[i] = s1[i] + z[i] / 3.0
            for k in range(dim):
                a = z[k] / 2.0
                for i in range(n1):
                    b2[k * n1 + i] = s2[k * n1 + i] + a * b1[i]
            for k in range(dim):
                a = z[k]
                for i in range(n2):
                    s3[k * run2 + i] += a * b2[i]
        if depth >= 2:
            for i in range(n1):
                b1[i] = s1[i] + z[i] / 2.0
            for k in range(dim):
                a = z[k]
                for i in range(n1):
                    s2[k * run1 + i] += a * b1[i]
        for i in range(n1):
            s1[i] += z[i]
        return OK

    # numba names machine code after its function, and compiled callers take cached kernels of one name for one another.
    update.__name__ = f"update_{dim}_{depth}"
    update.__qualname__ = f"{_update_for.__name__}.{update.__name__}"
    return update


@cache
def walk_kernel(dim: int, depth: int) -> Callable[..., int]:
    """`(buffer, states (T, dim), wanted (n,), where (S,), out (n, S)) -> code`: updates by every state in turn.

    After the ticks in `wanted`, which rises, the signature is copied into the rows of `out`. Threads go on meanwhile.
    Compiled anew in each process, in a few seconds: what calls a compiled function is not found in numba's cache.
    """
    update = update_kernel(dim, depth)

    def walk(buffer: Array, states: Array, wanted: Array, where: Array, out: Array) -> int:
        row = 0
        for tick in range(states.shape[0]):
            code = update(buffer, states[tick])
            if code != OK:
                return code
            if row < wanted.size and wanted[row] == tick:
                for i in range(where.size):
                    out[row, i] = buffer[where[i]]
                row += 1
        return OK

    walk.__name__ = f"walk_{dim}_{depth}"
    kernel: Callable[..., int] = numba.njit(nogil=True, **_OPTIONS)(walk)
    return kernel


@cache
def update_kernel(dim: int, depth: int) -> Kernel:
    """`(buffer, state) -> OK | WRONG_WIDTH | NOT_FINITE`, compiled at the first call (about 1 s), then cached on disk.

    A NaN in the last state of `buffer` makes the next state the basepoint. A refused state leaves `buffer` as it is.
    """
    kernel: Kernel = compiled(_update_for(BufferPlan(dim, depth)), _SIGNATURE, _OPTIONS)
    return kernel
