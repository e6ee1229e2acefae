"""Where a coefficient of a truncated signature lives in a flat array.

Canonical order, that of iisignature: levels 1..depth one after the other, the scalar term left out, words of a level
in lexicographic order, so the newest letter (the last of a word) runs fastest. The streaming update keeps each level
with its words reversed instead, the newest letter slowest: see `reversed_word_order`.
"""

from __future__ import annotations

from functools import cache

import numpy as np
from numpy.typing import NDArray

MAX_DEPTH = 4


def check_layout(dim: int, depth: int) -> None:
    """Raise ValueError unless `dim >= 1` and `1 <= depth <= 4`."""
    if dim < 1:
        raise ValueError(f"signature dim = {dim}: a path needs at least 1 channel")
    if not 1 <= depth <= MAX_DEPTH:
        raise ValueError(f"signature depth = {depth}: choose 1 to {MAX_DEPTH}")


def level_sizes(dim: int, depth: int) -> list[int]:
    """Number of words per level, `dim**n` for n = 1..depth."""
    check_layout(dim, depth)
    return [dim**n for n in range(1, depth + 1)]


def signature_size(dim: int, depth: int) -> int:
    """Length S of a signature without its scalar term; 5,219 for dim 17 and depth 3."""
    return sum(level_sizes(dim, depth))


def level_slices(dim: int, depth: int) -> list[slice]:
    """Where each level lies in a flat signature, level 1 first."""
    ends = np.cumsum(level_sizes(dim, depth)).tolist()
    return [slice(start, end) for start, end in zip([0, *ends[:-1]], ends, strict=True)]


@cache
def reversed_word_order(dim: int, depth: int) -> NDArray[np.intp]:
    """Permutation `(S,)` with `canonical = streaming[order]`; read-only, its own inverse."""
    order = np.empty(signature_size(dim, depth), dtype=np.intp)
    for level, part in enumerate(level_slices(dim, depth), start=1):
        words = np.arange(part.start, part.stop, dtype=np.intp).reshape((dim,) * level)
        order[part] = words.transpose().reshape(-1)
    order.setflags(write=False)
    return order
