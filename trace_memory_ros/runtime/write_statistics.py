"""Where an episode's writes went (TRACE eq. 21-23)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray


def route_entropies(routes: NDArray[Any]) -> NDArray[np.float64]:
    """Entropy `(W,)` of routes `(W, N)` in nats; a slot that a route leaves out adds nothing."""
    shares = routes.astype(np.float64)
    nats: NDArray[np.float64] = -(shares * np.log(np.where(shares > 0, shares, 1.0))).sum(axis=1)
    return nats


class WriteStatistics:
    """Running statistics of the write routes `(N,)` since reset; N may be 0. changes: of the main slot."""

    @classmethod
    def of(cls, routes: NDArray[Any]) -> WriteStatistics:
        """Of an episode's routes `(W, N)`."""
        statistics = cls(routes.shape[1])
        for route in routes:
            statistics.add(route)
        return statistics

    def __init__(self, slots: int) -> None:
        self._slots = slots
        self.reset()

    def reset(self) -> None:
        """Before an episode's first write."""
        self.count = 0
        self.changes = 0
        self._main = -1
        self._seen = np.zeros(self._slots, dtype=bool)
        self.entropy = 0.0

    def add(self, route: NDArray[Any]) -> None:
        """Take in one write's route."""
        self.count += 1
        if self._slots == 0:
            return
        main = int(route.argmax())
        self.changes += self.count > 1 and main != self._main
        self._main = main
        # A write that goes to several alike, as to one slot of each layer, uses all of them.
        self._seen |= route == route[main]
        if self._slots > 1:
            self.entropy = float(route_entropies(route[None])[0] / np.log(self._slots))

    @property
    def churn(self) -> float:
        """Share of the writes after the first whose main slot is another than the write's before, 0..1."""
        return self.changes / (self.count - 1) if self.count > 1 else 0.0

    @property
    def occupancy(self) -> float:
        """Share of the slots that were ever the main slot, 0..1."""
        return float(self._seen.mean()) if self._slots else 0.0

    def snapshot(self) -> dict[str, NDArray[Any]]:
        """Named arrays that `restore` accepts."""
        return {
            "counts": np.array([self.count, self.changes, self._main], dtype=np.int64),
            "seen": self._seen.copy(),
            "entropy": np.array([self.entropy], dtype=np.float64),
        }

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Stand where `snapshot` was taken."""
        self.count, self.changes, self._main = (int(value) for value in arrays["counts"])
        self._seen = arrays["seen"].copy()
        self.entropy = float(arrays["entropy"][0])
