"""A file of features: float16, filled row by row, with a checksum beside every row."""

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

from trace_memory_ros.files.stored import StoredArray

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
    other sizes is named in a warning and begun anew. Files are open only while rows are read or written.
    """

    def __init__(self, path: Path, shape: tuple[int, ...]) -> None:
        self.path = path
        self._values = _stored(path, shape, np.dtype(np.float16))
        self._kept = _stored(path.with_suffix(".crc.npy"), (shape[0], 1), np.dtype(np.uint32))
        self._sums = self._kept[:][:, 0]

    @property
    def present(self) -> int:
        """Rows that are there."""
        return int(np.count_nonzero(self._sums))

    def rows(self, rows: NDArray[np.int64], compute: Compute) -> Half:
        """Features `(n, ...)` of the rows `(n,)`, those that are missing by `compute`.

        Raises ValueError where that gives what half precision cannot hold.
        """
        wanted, places = np.unique(rows, return_inverse=True)
        if (self._sums[wanted] == ABSENT).any():
            # Another process may have been here.
            self._sums = self._kept[:][:, 0]
        found: Half = self._values[wanted]
        there = self._sums[wanted] != ABSENT
        damaged = [k for k in np.flatnonzero(there) if _checksum(found[k]) != self._sums[wanted[k]]]
        if damaged:
            warnings.warn(f"{self.path}: {len(damaged)} of its rows are damaged and computed again", stacklevel=2)
            there[damaged] = False
        missing = np.flatnonzero(~there)
        for first in range(0, len(missing), AT_ONCE):
            some = missing[first : first + AT_ONCE]
            found[some] = self._put(wanted[some], compute(wanted[some]))
        return found[places]

    def _put(self, rows: NDArray[np.int64], values: NDArray[np.float32]) -> Half:
        with np.errstate(over="ignore"):
            half = values.astype(np.float16)
        if not np.isfinite(half).all():
            worst = float(np.abs(values).max())
            raise ValueError(
                f"features for {self.path} reach {worst:g}, which half precision cannot hold: train without kept "
                "features, or choose another backbone"
            )
        self._values.write(rows, half)
        self._sums[rows] = [_checksum(row) for row in half]
        self._kept.write(rows, self._sums[rows, None])
        return half


def _checksum(row: Half) -> int:
    return zlib.crc32(np.ascontiguousarray(row).tobytes()) or 1


def _stored(path: Path, shape: tuple[int, ...], dtype: np.dtype[Any]) -> StoredArray:
    """The array in `path`, begun with zeros where there is none that fits."""
    if path.exists():
        try:
            found = StoredArray(path)
            if found.shape == shape and found.dtype == dtype:
                return found
            reason = f"it holds {found.dtype} of {found.shape}, not {dtype} of {shape}"
        except (OSError, ValueError) as error:
            reason = str(error)
        warnings.warn(f"{path} is no file of these features ({reason}): begun anew", stacklevel=2)
        path.unlink()
    path.parent.mkdir(parents=True, exist_ok=True)
    handle, partial = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    os.close(handle)
    try:
        np.lib.format.open_memmap(partial, mode="w+", dtype=dtype, shape=shape).flush()
        _put_in_place(Path(partial), path)
    finally:
        Path(partial).unlink(missing_ok=True)
    return StoredArray(path)


def _put_in_place(partial: Path, path: Path) -> None:
    """Of processes that begin at once one wins, and the others take its file."""
    try:
        os.link(partial, path)
    except FileExistsError:
        pass
    except OSError:
        # Memory cards and network shares may know no links: there the last one wins, and rows are computed again.
        partial.replace(path)
