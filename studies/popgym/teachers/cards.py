"""Teachers of the card tasks."""

from __future__ import annotations

from collections import Counter
from typing import Any

import numpy as np


class RepeatFirst:
    """Says the first suit."""

    def __init__(self, env: Any) -> None:
        self._first: int | None = None

    def begin(self, env: Any) -> None:
        self._first = None

    def act(self, observation: int) -> int:
        if self._first is None:
            self._first = int(observation)
        return self._first


class RepeatPrevious:
    """Says the suit of k cards ago, this one counted; 0 before there is one."""

    def __init__(self, env: Any) -> None:
        self._k = int(env.k)
        self._seen: list[int] = []

    def begin(self, env: Any) -> None:
        self._seen = []

    def act(self, observation: int) -> int:
        self._seen.append(int(observation))
        return self._seen[-self._k] if len(self._seen) >= self._k else 0


class Autoencode:
    """Says the suits that were shown from the last to the first; 0 while they are shown."""

    def __init__(self, env: Any) -> None:
        self._seen: list[int] = []
        self._watched = True

    def begin(self, env: Any) -> None:
        self._seen, self._watched = [], True

    def act(self, observation: tuple[int, int]) -> int:
        watching, suit = map(int, observation)
        # The last card is shown together with the word that it is time to play.
        if self._watched:
            self._seen.append(suit)
        self._watched = bool(watching)
        return 0 if watching else self._seen.pop()


class CountRecall:
    """Says how often the asked kind was dealt."""

    def __init__(self, env: Any) -> None:
        self._counts: Counter[int] = Counter()

    def begin(self, env: Any) -> None:
        self._counts = Counter()

    def act(self, observation: np.ndarray) -> int:
        dealt, asked = map(int, observation)
        self._counts[dealt] += 1
        return self._counts[asked]


class HigherLower:
    """Says whether more of the cards that are left are higher (0) or lower (1) than this one; at a tie, higher."""

    def __init__(self, env: Any) -> None:
        self._each = 4 * int(env.num_decks)
        self._left = np.zeros(0)

    def begin(self, env: Any) -> None:
        self._left = np.full(13, self._each)

    def act(self, observation: int) -> int:
        self._left[int(observation)] -= 1
        higher, lower = self._left[observation + 1 :].sum(), self._left[:observation].sum()
        return 0 if higher >= lower else 1
