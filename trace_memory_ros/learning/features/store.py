"""A file of features: float16, memory-mapped, filled row by row, with a checksum beside every row."""

from __future__ import annotations

import os
import tempfile
import warnings
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

Half = NDArray[np.float16]
Compute = Callable[[NDArray[np.int64]], NDArray[np.float32]]
"""Features `(n, ...)` of the rows `(n,)`."""
ABSENT = 0
"""In place of a row's checksum: it was never computed."""
AT_ONCE = 32


class FeatureFile:
    """Features `(N, ...)` of N images in `path`; each is computed when it is first asked for.

    A checksum per row, written after the row, says which are there: what a crash left half-written is computed again,
    and processes that share the file disturb each other at worst by doing the same work. A file that is damaged or of
    other sizes is named in a warning and begun anew.
    """

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path = path
        self._values = _mapped(path, shape, np.dtype(np.float16))
        self._sums = _mapped(path.with_suffix(".crc.npy"), shape[:1], np.dtype(np.uint32))
        self._checked = np.zeros(shape[0], dtype=bool)

    @property
    def present(self) -> int:
        """Rows that are there."""
        return int(np.count_nonzero(self._sums))

    def rows(self, rows: NDArray[np.int64], compute: Compute) -> Half:
        """Features `(n, ...)` of the rows `(n,)`, those that are missing by `compute`.

        Raises ValueError where that gives what half precision cannot hold.
        """
        wanted = np.unique(rows)
        self._drop_damaged(wanted[~self._checked[wanted]])
        missing = wanted[self._sums[wanted] == ABSENT]
        for first in range(0, len(missing), AT_ONCE):
            some = missing[first : first + AT_ONCE]
            self._put(some, compute(some))
        self._checked[wanted] = True
        found: Half = self._values[rows]
        return found

    def _put(self, rows: NDArray[np.int64], values: NDArray[np.float32]) -> None:
        with np.errstate(over="ignore"):
            half = values.astype(np.float16)
        if not np.isfinite(half).all():
            worst = float(np.abs(values).max())
            raise ValueError(
                f"features for {self.path} reach {worst:g}, which half precision cannot hold: train without kept "
                "features, or choose another backbone"
            )
        self._values[rows] = half
        self._values.flush()
        self._sums[rows] = [_checksum(row) for row in half]
        self._sums.flush()

    def _drop_damaged(self, rows: NDArray[np.int64]) -> None:
        there = rows[self._sums[rows] != ABSENT]
        bad = [row for row in there if _checksum(self._values[row]) != self._sums[row]]
        if bad:
            warnings.warn(f"{self.path}: {len(bad)} of its rows are damaged and computed again", stacklevel=2)
            self._sums[bad] = ABSENT


def _checksum(row: Half) -> int:
    return zlib.crc32(np.ascontiguousarray(row).tobytes()) or 1


def _mapped(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> np.memmap[Any, Any]:
    """The array in `path`, begun with zeros where there is none that fits."""
    if path.exists():
        try:
            found = np.load(path, mmap_mode="r+", allow_pickle=False)
            if found.shape == shape and found.dtype == dtype:
                return found  # type: ignore[no-any-return]
            reason = f"it holds {found.dtype} of {found.shape}, not {dtype} of {shape}"
        except (OSError, ValueError, EOFError) as error:
            reason = str(error)
        warnings.warn(f"{path} is no file of these features ({reason}): begun anew", stacklevel=2)
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    os.close(handle)
    try:
        np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape).flush()
        # Of processes that begin at once one wins, and the others take its file.
        os.link(partial, path)
    except FileExistsError:
        pass
    finally:
        Path(partial).unlink()
    return np.load(path, mmap_mode="r+", allow_pickle=False)  # type: ignore[no-any-return]
