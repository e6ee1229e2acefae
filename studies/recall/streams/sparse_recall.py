"""sparse_recall: the newest of a few rare events is asked for again and again, among redundant filler.

Source: Chen, "AURA", 2026, section 5.1, which gives the sizes; what a step looks like is our choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from studies.recall.streams.stream import SymbolStream

FILLER, EVENT, QUERY = range(3)


@dataclass(frozen=True)
class SparseRecall:
    """One step shows (kind, symbol): an event, a query (no symbol), or filler, which shows any symbol of another kind.

    The first step is an event, so that every query has an answer; a later one is an event with chance `event`, and
    otherwise a query with chance `query`.
    """

    symbols: int = 4
    event: float = 0.10
    query: float = 0.4
    steps: int = 40

    kinds: ClassVar[tuple[str, ...]] = ("filler", "event", "query")

    def __post_init__(self) -> None:
        if self.symbols < 2:
            raise ValueError(f"symbols = {self.symbols}: at least 2, or there is nothing to remember")
        for name in ("event", "query"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} = {getattr(self, name)}: a chance lies between 0 and 1")
        if self.steps < 2:
            raise ValueError(f"steps = {self.steps}: at least an event and a query have to fit")

    @property
    def fields(self) -> tuple[int, ...]:
        """Kind and symbol; 0 stands for no symbol."""
        return (len(self.kinds), self.symbols + 1)

    @property
    def classes(self) -> int:
        """The symbols."""
        return self.symbols

    @property
    def needed_write_rate(self) -> float:
        """Share of steps that have to be written, in the mean: the events that show another symbol than the last."""
        return (1 + (self.steps - 1) * self.event * (1 - 1 / self.symbols)) / self.steps

    def sample(self, rng: np.random.Generator, batch: int) -> SymbolStream:
        """`batch` fresh streams."""
        shape = (batch, self.steps)
        kind = np.where(rng.random(shape) < self.query, QUERY, FILLER)
        kind[rng.random(shape) < self.event] = EVENT
        kind[:, 0] = EVENT
        shown = np.where(kind == QUERY, 0, rng.integers(1, self.symbols + 1, shape))
        last_event = np.maximum.accumulate(np.where(kind == EVENT, np.arange(self.steps), 0), axis=1)
        newest = np.take_along_axis(shown, last_event, axis=1) - 1
        asked = kind == QUERY
        return SymbolStream(np.stack((kind, shown), axis=-1), np.where(asked, newest, 0), asked, kind)
