"""noisy_long_recall: hold many key-value bindings, the newest value wins, through a stream full of look-alikes.

Source: Chen, "AURA", 2026, section 5.1, which gives the sizes; what a step looks like is our choice.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from studies.recall.streams.stream import Flags, Integers, SymbolStream

BLANK, BINDING, QUERY, DISTRACTOR = range(4)


@dataclass(frozen=True)
class NoisyLongRecall:
    """One step shows (kind, key, value): a binding, a query (a key alone), a distractor, or nothing.

    Each of `bindings` keys is bound once and, with chance `overwrite`, once more to another value; then `queries` of
    them are asked, no key twice. A step between is a distractor with chance `distractor`: any key and value, of another
    kind. The defaults are the paper's hard configuration.
    """

    keys: int = 16
    values: int = 8
    bindings: int = 16
    queries: int = 8
    distractor: float = 0.5
    overwrite: float = 0.4
    steps: int = 128

    kinds: ClassVar[tuple[str, ...]] = ("blank", "binding", "query", "distractor")

    def __post_init__(self) -> None:
        if not 1 <= self.queries <= self.bindings <= self.keys:
            raise ValueError(f"{self}: need 1 <= queries <= bindings <= keys")
        if self.values < 2:
            raise ValueError(f"values = {self.values}: at least 2, or there is nothing to remember")
        for name in ("distractor", "overwrite"):
            if not 0 <= getattr(self, name) <= 1:
                raise ValueError(f"{name} = {getattr(self, name)}: a chance lies between 0 and 1")
        if self.steps < 2 * self.bindings + self.queries:
            raise ValueError(f"steps = {self.steps}: {2 * self.bindings + self.queries} events have to fit")

    @property
    def fields(self) -> tuple[int, ...]:
        """Kind, key, value; 0 stands for no key and no value."""
        return (len(self.kinds), self.keys + 1, self.values + 1)

    @property
    def classes(self) -> int:
        """The values."""
        return self.values

    @property
    def needed_write_rate(self) -> float:
        """Share of steps that a memory which cannot foresee the queries has to write, in the mean: every binding."""
        return self.bindings * (1 + self.overwrite) / self.steps

    def sample(self, rng: np.random.Generator, batch: int) -> SymbolStream:
        """`batch` fresh streams."""
        events, count = self._events(rng, batch)
        happens = rng.random((batch, self.steps)).argsort(axis=1).argsort(axis=1) < count[:, None]
        event = np.clip(happens.cumsum(axis=1) - 1, 0, None)
        between = self._between(rng, batch)
        symbols = np.where(happens[..., None], np.take_along_axis(events, event[..., None], axis=1), between)
        kind = symbols[..., 0]
        return SymbolStream(symbols, self._answers(symbols), kind == QUERY, kind)

    def _events(self, rng: np.random.Generator, batch: int) -> tuple[Integers, Integers]:
        """Bindings in random order, then queries: `(B, 2 * bindings + queries, 3)`, and how many `(B,)` take place."""
        bound = rng.permuted(np.tile(np.arange(self.keys), (batch, 1)), axis=1)[:, : self.bindings]
        value = rng.integers(0, self.values, bound.shape)
        other = (value + rng.integers(1, self.values, bound.shape)) % self.values
        asked = bound[:, : self.queries]
        key = 1 + np.concatenate((bound, bound, asked), axis=1)
        shown = np.concatenate((1 + value, 1 + other, np.zeros_like(asked)), axis=1)
        kind = np.where(np.arange(key.shape[1]) < 2 * self.bindings, BINDING, QUERY)
        left_out = np.zeros(key.shape, dtype=bool)
        left_out[:, self.bindings : 2 * self.bindings] = rng.random(bound.shape) >= self.overwrite
        turn = rng.random(key.shape) + (kind == QUERY) + 2 * left_out
        events = np.stack((np.broadcast_to(kind, key.shape), key, shown), axis=-1)
        return np.take_along_axis(events, turn.argsort(axis=1)[..., None], axis=1), (~left_out).sum(axis=1)

    def _between(self, rng: np.random.Generator, batch: int) -> Integers:
        """Distractors and blanks `(B, T, 3)`."""
        shape = (batch, self.steps)
        looks = (
            np.full(shape, DISTRACTOR),
            rng.integers(1, self.keys + 1, shape),
            rng.integers(1, self.values + 1, shape),
        )
        distracts: Flags = rng.random(shape) < self.distractor
        return np.where(distracts[..., None], np.stack(looks, axis=-1), BLANK)

    def _answers(self, symbols: Integers) -> Integers:
        """Value that each query's key is bound to at its step `(B, T)`, 0 elsewhere."""
        kind, key, value = np.moveaxis(symbols, -1, 0)
        rows = np.arange(len(symbols))
        held, answers = np.zeros((len(symbols), self.keys + 1), dtype=np.int64), np.zeros_like(kind)
        for t in range(self.steps):
            held[rows, key[:, t]] = np.where(kind[:, t] == BINDING, value[:, t] - 1, held[rows, key[:, t]])
            answers[:, t] = np.where(kind[:, t] == QUERY, held[rows, key[:, t]], 0)
        return answers


HARD = NoisyLongRecall()
# The paper's main table has a floor of 0.254 and a write ratio of 9.19: four values and about ten bindings in 96 steps,
# not the eight values of its caption.
MAIN = NoisyLongRecall(values=4, bindings=8, overwrite=0.3, steps=96)
