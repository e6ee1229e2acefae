"""The trajectory's address: standardised signature and its increment since the last write, tick by tick."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.runtime.window import PathWindow, path_signature
from trace_memory_ros.signature.normalise import Standardiser

Array = NDArray[np.float64]


class AddressStream:
    """xi_t and delta_t of a standardised state path; float64 up to the standardisers (TRACE appendix A.4, A.5).

    delta_t is measured from the signature at the last write rather than from the last tick: what happened between two
    writes is then never lost to the address.
    """

    def __init__(
        self, dim: int, depth: int, xi: Standardiser, delta: Standardiser, window: PathWindow | None = None
    ) -> None:
        self._signature = path_signature(dim, depth, window)
        self._xi = xi
        self._delta = delta
        self._at_write: Array = np.zeros(self._signature.size)
        self._now: Array = np.zeros(self._signature.size)

    def reset(self) -> None:
        """The next state becomes the basepoint."""
        self._signature.reset()
        self._at_write = np.zeros_like(self._at_write)
        self._now = np.zeros_like(self._now)

    def walk(self, states_std: NDArray[np.float32]) -> None:
        """Append standardised states `(n, d_s)` that no tick reads."""
        for state_std in states_std:
            self._signature.update(state_std.astype(np.float64))

    def advance(self, state_std: NDArray[np.float32]) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Append a standardised state `(d_s,)`; returns standardised xi_t and delta_t `(S,)`."""
        self._signature.update(state_std.astype(np.float64))
        self._now = self._signature.value()
        return self._xi.apply(self._now), self._delta.apply(self._now - self._at_write)

    def mark_write(self) -> None:
        """The tick just advanced to has written: measure delta from here on."""
        self._at_write = self._now

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `restore` accepts."""
        return {**self._signature.snapshot(), "at_write": self._at_write.copy()}

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Stand where `snapshot` was taken. Raises ValueError for other sizes or damage."""
        self._signature.restore({name: arrays[name] for name in self._signature.snapshot()})
        self._now = arrays["signature"].copy()
        self._at_write = arrays["at_write"].copy()
