"""Multi-query associative recall (MQAR): pairs are shown once, then every key is asked for.

A sequence is k_1 v_1 ... k_n v_n SEP k_s(1) ... k_s(n), with s a permutation; the answer to a queried key is its value.
Source: Arora et al., "Zoology", 2023; VLA, section 5.2.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

VOCABULARY = 128
KEYS = 64
"""Tokens 0..63 are keys, 64..126 values."""
SEPARATOR = VOCABULARY - 1
MOST_PAIRS = KEYS

Tokens = NDArray[np.int64]


class Mqar(NamedTuple):
    """A batch: tokens `(B, 3n + 1)`; answers `(B, n)` to the last n tokens, value tokens."""

    tokens: Tokens
    answers: Tokens


def draw(rng: np.random.Generator, batch: int, pairs: int) -> Mqar:
    """A batch with `pairs` pairs: keys all different, values drawn freely. Raises ValueError for too many pairs."""
    if not 1 <= pairs <= MOST_PAIRS:
        raise ValueError(f"pairs = {pairs}: must be 1 to {MOST_PAIRS}, the number of key tokens")
    keys = rng.random((batch, KEYS)).argsort(axis=1)[:, :pairs]
    values = rng.integers(KEYS, SEPARATOR, (batch, pairs))
    order = rng.random((batch, pairs)).argsort(axis=1)
    context = np.stack((keys, values), axis=2).reshape(batch, 2 * pairs)
    separator = np.full((batch, 1), SEPARATOR)
    asked = np.take_along_axis(keys, order, axis=1)
    return Mqar(np.concatenate((context, separator, asked), axis=1), np.take_along_axis(values, order, axis=1))
