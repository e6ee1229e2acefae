"""Numbers that tell how slots are used (TRACE, eq. 21-23), for the runtime and for evaluation.

A route is `(K,)` and sums to 1; its main slot is the first of its largest entries. With no slot every number is 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

FloatArray = NDArray[np.floating]


def write_entropy(routes: FloatArray) -> float:
    """Mean entropy of one route `(K,)` or several `(T, K)` over log K, 0..1 (eq. 22); 0 for a single slot."""
    slots = routes.shape[-1]
    if slots < 2 or routes.size == 0:
        return 0.0
    rows = routes.reshape(-1, slots).astype(np.float64)
    logs = np.log(rows, out=np.zeros_like(rows), where=rows > 0)
    return max(0.0, float(-(rows * logs).sum(axis=1).mean() / np.log(slots)))


def slot_churn(routes: FloatArray) -> float:
    """Share of consecutive writes `(T, K)` whose main slot differs, 0..1 (eq. 21); 0 before the second write."""
    if routes.shape[0] < 2 or routes.shape[1] == 0:
        return 0.0
    main = routes.argmax(axis=1)
    return float((main[1:] != main[:-1]).mean())


def slot_occupancy(routes: FloatArray) -> float:
    """Share of slots that were the main slot of some write `(T, K)`, 0..1 (eq. 23)."""
    if routes.size == 0:
        return 0.0
    return int(np.unique(routes.argmax(axis=1)).size) / int(routes.shape[1])


def slot_norms(tokens: FloatArray) -> NDArray[np.float32]:
    """Root-mean-square of each slot's content, `(K,)` from `(K, d)`."""
    mean_square: NDArray[np.float64] = np.square(tokens.astype(np.float64)).mean(axis=-1)
    return np.sqrt(mean_square).astype(np.float32)


@dataclass(frozen=True)
class SlotUsage:
    """Churn and occupancy of all writes so far, in constant space: `usage = usage.after(route)` once per write.

    writes: writes so far. changes: writes whose main slot was not the previous one's. main: the last write's main slot.
    occupied: slots that were ever the main slot.
    """

    writes: int = 0
    changes: int = 0
    main: int = -1
    occupied: frozenset[int] = frozenset()
    slots: int = 0

    def after(self, route: FloatArray) -> SlotUsage:
        """The usage once a write with this route `(K,)` is counted."""
        if route.size == 0:
            return SlotUsage(writes=self.writes + 1)
        main = int(route.argmax())
        changed = self.writes > 0 and main != self.main
        return SlotUsage(self.writes + 1, self.changes + changed, main, self.occupied | {main}, route.size)

    @property
    def churn(self) -> float:
        """As `slot_churn` of all routes."""
        return self.changes / (self.writes - 1) if self.writes > 1 else 0.0

    @property
    def occupancy(self) -> float:
        """As `slot_occupancy` of all routes."""
        return len(self.occupied) / self.slots if self.slots else 0.0
