"""What every recall task hands to a trainer: a batch of symbol streams with the answers that are asked for."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]


class SymbolStream(NamedTuple):
    """symbols `(B, T, F)`: F fields per step. answers `(B, T)`: class where `asked` `(B, T)` holds, else 0.

    kind `(B, T)` names what a step is, as an index into the task's `kinds`; memories never see it but through symbols.
    """

    symbols: Integers
    answers: Integers
    asked: Flags
    kind: Integers


class SymbolTask(Protocol):
    """A generator of streams. fields: vocabulary size per symbol field. classes: size of the answer alphabet."""

    @property
    def fields(self) -> tuple[int, ...]: ...

    @property
    def classes(self) -> int: ...

    @property
    def kinds(self) -> tuple[str, ...]: ...

    def sample(self, rng: np.random.Generator, batch: int) -> SymbolStream:
        """`batch` fresh streams, decided by `rng` alone."""
        ...
