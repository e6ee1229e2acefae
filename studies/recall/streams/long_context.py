"""long_context: few relevant ticks among look-alikes, asked for at the end of a stream that mostly needs no memory.

A stand-in for the distractor-heavy manipulation tasks of PRISM (section 4), which need a kitchen simulator. What it
takes from them: the right action of most ticks is in view, so whatever memory adds there is in the way; a few ticks
ask for something seen long ago; and what is asked for is surrounded by ticks that differ from it in one token only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from studies.recall.streams.stream import SymbolStream

FILLER, DISTRACTOR, RELEVANT, QUERY = range(4)
NOTHING, TARGET, DECOY = range(3)
"""Marks: filler ticks carry NOTHING, relevant ones TARGET, distractors DECOY and above, queries the last mark."""


@dataclass(frozen=True)
class LongContext:
    """A tick shows four symbols: (mark, key, value, scene), each of them a local token of its own.

    Every key has one relevant tick, which binds it to a value. Of the other ticks a share `distractors` binds a random
    key to a random value under another mark. The last ticks ask once for every key, in random order; the answer is the
    value its relevant tick showed. At every other tick the answer is the scene symbol in view.
    """

    keys: int = 4
    values: int = 8
    decoy_marks: int = 3
    distractors: float = 0.75
    steps: int = 64

    kinds: ClassVar[tuple[str, ...]] = ("filler", "distractor", "relevant", "query")

    def __post_init__(self) -> None:
        for name, least in (("keys", 1), ("values", 2), ("decoy_marks", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"{name} = {getattr(self, name)}: must be at least {least}")
        if not 0 <= self.distractors <= 1:
            raise ValueError(f"distractors = {self.distractors}: a share lies between 0 and 1")
        if self.steps < 2 * self.keys:
            raise ValueError(
                f"steps = {self.steps}: {self.keys} relevant ticks and as many queries need {2 * self.keys}"
            )

    @property
    def fields(self) -> tuple[int, ...]:
        """Marks; keys and values, with 0 for none; scenes."""
        return (DECOY + self.decoy_marks + 1, self.keys + 1, self.values + 1, self.values)

    @property
    def classes(self) -> int:
        """Values, and scenes by the same numbers."""
        return self.values

    def sample(self, rng: np.random.Generator, batch: int) -> SymbolStream:
        """`batch` fresh streams; every tick is asked."""
        shape, early = (batch, self.steps), self.steps - self.keys
        kind = np.where(rng.random(shape) < self.distractors, DISTRACTOR, FILLER)
        key, value = rng.integers(1, self.keys + 1, shape), rng.integers(1, self.values + 1, shape)
        mark = rng.integers(DECOY, DECOY + self.decoy_marks, shape)
        scene = rng.integers(0, self.values, shape)
        rows = np.arange(batch)[:, None]
        shown = rng.permuted(np.tile(np.arange(early), (batch, 1)), axis=1)[:, : self.keys]
        kind[rows, shown], key[rows, shown], mark[rows, shown] = RELEVANT, np.arange(1, self.keys + 1), TARGET
        wanted = rng.permuted(np.tile(np.arange(1, self.keys + 1), (batch, 1)), axis=1)
        kind[:, early:], key[:, early:], mark[:, early:] = QUERY, wanted, DECOY + self.decoy_marks
        answers = scene.copy()
        answers[:, early:] = value[rows, shown][rows, wanted - 1] - 1
        blank = kind == FILLER
        mark[blank], key[blank], value[blank], value[:, early:] = NOTHING, 0, 0, 0
        symbols = np.stack((mark, key, value, scene), axis=-1)
        return SymbolStream(symbols, answers, np.ones(shape, dtype=bool), kind)
