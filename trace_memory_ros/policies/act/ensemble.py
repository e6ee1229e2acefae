"""Temporal ensembling of overlapping action chunks (ACT, section IV)."""

from __future__ import annotations

from collections import deque

import numpy as np
from numpy.typing import NDArray


class TemporalEnsemble:
    """Average what the live chunks say about this tick, weighing them by `exp(-decay * i)`, i = 0 for the oldest."""

    def __init__(self, chunk: int, decay: float) -> None:
        if chunk < 1:
            raise ValueError(f"chunk = {chunk}: an action chunk has at least one tick")
        self.chunk = chunk
        self.decay = decay
        self._chunks: deque[NDArray[np.float32]] = deque(maxlen=chunk)

    def reset(self) -> None:
        self._chunks.clear()

    def push(self, chunk: NDArray[np.float32]) -> NDArray[np.float32]:
        """Add the chunk `(H, A)` predicted at this tick and return this tick's action `(A,)`."""
        if chunk.shape[0] != self.chunk:
            raise ValueError(f"chunk of {chunk.shape[0]} ticks given to an ensemble of {self.chunk}")
        self._chunks.append(chunk)
        count = len(self._chunks)
        votes = np.stack([past[count - 1 - i] for i, past in enumerate(self._chunks)])
        weights = np.exp(-self.decay * np.arange(count, dtype=np.float64))
        action: NDArray[np.float32] = (weights[:, None] * votes).sum(axis=0) / weights.sum()
        return action.astype(np.float32)
