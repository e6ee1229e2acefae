"""The nearest present of every other episode, and how those went on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float32]

SHARE, FEWEST, MOST = 1 / 3, 12, 32
"""Of the other episodes, those whose present is most alike are looked at: so many."""


class Neighbours(NamedTuple):
    """For each of T ticks K episodes, nearest first: which `(T, K)`, at which of their ticks `(T, K)`, how far."""

    episodes: NDArray[np.intp]
    ticks: NDArray[np.intp]
    distances: Floats


@dataclass(frozen=True)
class Library:
    """Presents `(T_i, d)` of episodes that others are compared with."""

    presents: Sequence[Floats]

    @property
    def looked_at(self) -> int:
        """K."""
        others = len(self.presents) - 1
        return min(others, int(np.clip(round(SHARE * others), FEWEST, MOST)))

    def nearest(self, presents: Floats, left_out: int | None = None) -> Neighbours:
        """Neighbours of presents `(T, d)` among all episodes but `left_out`."""
        others = [i for i in range(len(self.presents)) if i != left_out]
        ticks = np.empty((len(presents), len(others)), np.intp)
        distances = np.empty(ticks.shape, np.float32)
        rows = np.arange(len(presents))
        for column, index in enumerate(others):
            other = self.presents[index]
            apart = (other**2).sum(axis=1) - 2.0 * (presents @ other.T)
            ticks[:, column] = apart.argmin(axis=1)
            distances[:, column] = apart[rows, ticks[:, column]]
        distances += (presents**2).sum(axis=1, keepdims=True)
        chosen = distances.argsort(axis=1)[:, : self.looked_at]
        nearest = np.take_along_axis(distances, chosen, 1)
        which = np.array(others, dtype=np.intp)[chosen]
        return Neighbours(which, np.take_along_axis(ticks, chosen, 1), np.sqrt(np.maximum(nearest, 0.0)))
