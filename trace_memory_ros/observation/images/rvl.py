"""RVL, a lossless code for depth (Wilson, Fast Lossless Depth Image Compression, 2017).

Pixels are runs: so many zeros, so many others, and so on. Every number is cut into groups of three bits, the lowest
first, each in a nibble whose highest bit says that more follow; the others are differences to the one before, folded
to positive ones. Nibbles fill 32-bit words of little endian from the top.
"""

from __future__ import annotations

import numpy as np
from numba import njit
from numpy.typing import NDArray

_MOST_NIBBLES = 9
"""Of a number: a run may be as long as the largest picture that is taken, of 2^26 pixels."""


def decode(code: bytes, pixels: int) -> NDArray[np.uint16] | None:
    """`(pixels,)`; None where the code ends before, or holds what no encoder writes."""
    words = np.frombuffer(code[: len(code) // 4 * 4], "<u4")
    nibbles = (words[:, None] >> np.arange(28, -4, -4, dtype=np.uint32)) & 0xF
    out = np.zeros(pixels, np.uint16)
    return out if _runs(nibbles.astype(np.uint8).reshape(-1), out) else None


@njit
def _number(nibbles: NDArray[np.uint8], at: int) -> tuple[int, int]:
    """The number that begins at a nibble, and where the next one does; -1 where there is none."""
    value = 0
    for k in range(_MOST_NIBBLES):
        if at + k >= len(nibbles):
            return -1, at
        value |= (nibbles[at + k] & 7) << (3 * k)
        if not nibbles[at + k] & 8:
            return value, at + k + 1
    return -1, at


@njit
def _runs(nibbles: NDArray[np.uint8], out: NDArray[np.uint16]) -> bool:
    at, done, last, zeros = 0, 0, 0, True
    while done < len(out):
        run, at = _number(nibbles, at)
        if run < 0 or run > len(out) - done:
            return False
        if not zeros:
            for k in range(run):
                folded, at = _number(nibbles, at)
                if folded < 0:
                    return False
                last += (folded >> 1) ^ -(folded & 1)
                out[done + k] = last & 0xFFFF
        done += run
        zeros = not zeros
    return True
