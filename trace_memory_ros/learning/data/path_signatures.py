"""Signatures of a path at chosen ticks, computed when they are asked for."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.runtime.window import PathWindow, path_signature
from trace_memory_ros.signature.layout import signature_size
from trace_memory_ros.signature.streaming import walk


def signatures(path: NDArray[np.float32], depth: int, window: PathWindow | None = None) -> NDArray[np.float64]:
    """The signature `(T, S)` at every tick of a standardised path `(T, d_p)`, by the update that live ticks use.

    Without a depth S is 0. In float64, since an increment is a small difference of large numbers.
    """
    return _streamed(path, np.arange(len(path)), depth, window) if depth else np.zeros((len(path), 0))


class PathSignatures:
    """What `signatures` gives, at those ticks that are asked for: at depth 3 of a two-armed robot a tick has 41 kB."""

    def __init__(self, path: NDArray[np.float32], depth: int, window: PathWindow | None = None) -> None:
        self._path, self._depth, self._window = path, depth, window
        self.shape = (len(path), signature_size(path.shape[1], depth) if depth else 0)

    def __len__(self) -> int:
        return len(self._path)

    def __getitem__(self, ticks: Any) -> NDArray[np.float64]:
        """Signatures `(..., S)` at ticks, by a slice or an array; the path is walked once."""
        chosen = np.arange(len(self))[ticks]
        wanted, back = np.unique(chosen, return_inverse=True)
        return self._at(wanted)[back.reshape(-1)].reshape(*chosen.shape, self.shape[1])

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[np.float64]:
        return self._at(np.arange(len(self)))

    def _at(self, wanted: NDArray[np.int64]) -> NDArray[np.float64]:
        if not self._depth or not wanted.size:
            return np.zeros((wanted.size, self.shape[1]))
        if self._window is None:
            return walk(self._path[: int(wanted[-1]) + 1].astype(np.float64), wanted, self._depth)
        return _streamed(self._path, wanted, self._depth, self._window)


def _streamed(
    path: NDArray[np.float32], wanted: NDArray[np.int64], depth: int, window: PathWindow | None
) -> NDArray[np.float64]:
    """Signatures `(n, S)` after the ticks `wanted`, which rise."""
    stream = path_signature(path.shape[1], depth, window)
    out = np.empty((len(wanted), stream.size))
    done = 0
    for row, tick in zip(out, wanted.tolist(), strict=True):
        for now in path[done : tick + 1]:
            stream.update(now.astype(np.float64))
        done = tick + 1
        row[:] = stream.value()
    return out
