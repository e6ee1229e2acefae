"""Arrays in files that are read row by row, so that any number of them may be at hand and none takes memory."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

AT_ONCE = 64
"""Rows of a whole array that are worked on together."""


class StoredArray:
    """The array in an `.npy` file, of one dimension or more; its rows are read when they are asked for.

    The file is open only meanwhile: a mapping that stays open takes a file descriptor and keeps in memory what was ever
    touched. Raises OSError where the file cannot be read, ValueError naming one that holds no such array.
    """

    __slots__ = ("_begin", "dtype", "path", "shape")

    def __init__(self, path: Path) -> None:
        self.path = path
        with path.open("rb") as file:
            try:
                version = np.lib.format.read_magic(file)
                read = np.lib.format.read_array_header_1_0 if version[0] == 1 else np.lib.format.read_array_header_2_0
                self.shape, fortran, self.dtype = read(file)
            except ValueError as error:
                raise ValueError(f"{path} is no array of numpy ({error}): delete it, it is made anew") from error
            self._begin = file.tell()
        if fortran or not self.shape or self.dtype.hasobject:
            raise ValueError(f"{path}: shape {self.shape}, type {self.dtype} is not an array of rows; delete it")
        missing = self._begin + math.prod(self.shape) * self.dtype.itemsize - path.stat().st_size
        if missing > 0:
            raise ValueError(f"{path} lacks its last {missing} bytes: delete it, it is made anew")

    @property
    def ndim(self) -> int:
        """Dimensions, rows among them."""
        return len(self.shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all rows."""
        return math.prod(self.shape) * self.dtype.itemsize

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, rows: Any) -> NDArray[Any]:
        """Rows by a number, a slice or an array, as an array of memory."""
        chosen = np.arange(len(self))[rows]
        out = np.empty((*chosen.shape, *self.shape[1:]), self.dtype)
        numbers = math.prod(self.shape[1:])
        flat, size = out.reshape(chosen.size, numbers), numbers * self.dtype.itemsize
        file = os.open(self.path, os.O_RDONLY)
        try:
            for target, row in zip(flat, chosen.reshape(-1).tolist(), strict=True):
                self._read(file, target.data.cast("B"), self._begin + row * size)
        finally:
            os.close(file)
        return out

    def write(self, rows: NDArray[np.int64], values: NDArray[Any]) -> None:
        """Put `values` `(n, ...)` into rows `(n,)`, on the disk before this returns. Raises OSError."""
        kept = np.ascontiguousarray(values, dtype=self.dtype)
        size = math.prod(self.shape[1:]) * self.dtype.itemsize
        file = os.open(self.path, os.O_WRONLY)
        try:
            for row, value in zip(rows.tolist(), kept.reshape(len(rows), -1), strict=True):
                os.pwrite(file, value.tobytes(), self._begin + row * size)
            os.fsync(file)
        finally:
            os.close(file)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        whole = self[:]
        return whole if dtype is None else whole.astype(dtype, copy=False)

    def _read(self, file: int, target: memoryview, at: int) -> None:
        done = 0
        while done < len(target):
            count = os.preadv(file, [target[done:]], at + done)
            if not count:
                raise ValueError(f"{self.path} was cut short while it was read: delete it, it is made anew")
            done += count
