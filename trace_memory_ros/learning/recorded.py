"""What an episode must hold to be learned from, wherever it was recorded."""

from __future__ import annotations

from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Recorded(Protocol):
    """One episode of T ticks.

    images `(T, C, P, P, 3)` uint8, state `(T, d_s)` in SI units, actions `(T, A)`, NaN where there is none.
    decision_ticks: at which only earlier evidence tells what to do, in order; may be empty. answers: what was right at
    each, as a number. shown: `(T,)` bool, ticks of a show too brief for a coarse clock; None for no such tick. usable:
    `(T,)` bool, ticks whose observation was whole; None for all. At the others images and state repeat the tick before.
    """

    @property
    def images(self) -> NDArray[np.uint8]: ...

    @property
    def state(self) -> NDArray[np.float64]: ...

    @property
    def actions(self) -> NDArray[np.float32]: ...

    @property
    def decision_ticks(self) -> tuple[int, ...]: ...

    @property
    def answers(self) -> tuple[int, ...]: ...

    @property
    def shown(self) -> NDArray[np.bool_] | None: ...

    @property
    def usable(self) -> NDArray[np.bool_] | None: ...

    @property
    def ticks(self) -> int: ...
