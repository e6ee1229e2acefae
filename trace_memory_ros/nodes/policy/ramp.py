"""From where the arm is to where the policy wants it, in a given time."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Values = NDArray[np.float64]


class Ramp:
    """Blends from the place at `begin`'s next command to the policy's targets, by stamps. duration_ns: 0 for none."""

    def __init__(self, duration_ns: int) -> None:
        self._duration_ns = duration_ns
        self._from: Values | None = None
        self._begin_ns = 0

    def begin(self, place: Values, stamp_ns: int) -> None:
        """The arm stands at `place` `(A,)`, 0 for velocities, NaN for what has no place and is not blended."""
        self._from, self._begin_ns = place.copy(), stamp_ns

    def apply(self, targets: Values, stamp_ns: int) -> Values:
        """What to command at a tick."""
        since_ns = stamp_ns - self._begin_ns
        if self._from is None or since_ns >= self._duration_ns:
            self._from = None
            return targets
        blended = self._from + max(since_ns, 0) / self._duration_ns * (targets - self._from)
        return np.where(np.isfinite(self._from), blended, targets)
