"""One control tick's view of the robot."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class Observation:
    """Every stream's newest sample with header stamp <= the tick's.

    images: camera name -> `(P, P, 3)` uint8 RGB at the configured size. state: `(d_s,)` float64 in configured order
    and SI units, masked channels 0. input_stamps_ns: stream -> held stamp. faults: per unusable stream, what is wrong,
    where it came from and the remedy; empty when the observation can be used. A stream with a fault may be absent from
    `images`. newest_arrival_ns: when the newest held sample arrived, on the caller's wall clock; -1 if none is held.
    """

    tick: int
    stamp_ns: int
    images: Mapping[str, NDArray[np.uint8]]
    state: NDArray[np.float64] | None
    input_stamps_ns: Mapping[str, int]
    faults: Mapping[str, str]
    newest_arrival_ns: int = -1

    @property
    def usable(self) -> bool:
        """Whether memory may be written and the policy may act on this observation."""
        return not self.faults and self.state is not None
