"""Teachers of the games with a board or with machines."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np


class Bandit:
    """Plays the machine whose upper confidence bound is highest, from the payouts of its own plays (UCB1, tuned down).

    Source: Auer, Cesa-Bianchi and Fischer, "Finite-time analysis of the multiarmed bandit problem", 2002; a tenth of
    its exploration, since episodes have about twenty plays a machine.
    """

    def __init__(self, env: Any) -> None:
        self._machines = int(env.num_bandits)
        self.begin(env)

    def begin(self, env: Any) -> None:
        self._paid, self._played = np.zeros(self._machines), np.zeros(self._machines)
        self._last: int | None = None

    def act(self, observation: int) -> int:
        if self._last is not None:
            self._played[self._last] += 1
            self._paid[self._last] += int(observation)
        mean = (self._paid + 1) / (self._played + 2)
        bound = mean + np.sqrt(0.2 * math.log(self._played.sum() + 2) / (self._played + 2))
        self._last = int(bound.argmax())
        return self._last


class Concentration:
    """Turns a known partner of the open card, or a card of a known pair, or else the first card not seen yet."""

    def __init__(self, env: Any) -> None:
        self.begin(env)

    def begin(self, env: Any) -> None:
        self._known: dict[int, int] = {}
        self._matched: set[int] = set()
        self._open: int | None = None
        self._last: int | None = None

    def act(self, observation: np.ndarray) -> int:
        if self._last is not None:
            self._known[self._last] = int(observation[self._last])
            self._turned(self._last)
        self._last = self._choose(len(observation))
        return self._last

    def _turned(self, card: int) -> None:
        """A turn ends with its second card, which stays open together with the first where they match."""
        if self._open is None:
            self._open = card
            return
        if self._known[self._open] == self._known[card]:
            self._matched |= {self._open, card}
        self._open = None

    def _choose(self, count: int) -> int:
        known = [card for card in self._known if card not in self._matched and card != self._open]
        unseen = [card for card in range(count) if card not in self._known]
        if self._open is not None:
            partners = [card for card in known if self._known[card] == self._known[self._open]]
            return next(iter((*partners, *unseen, *known)), self._open)
        pairs = (one for one, other in itertools.combinations(known, 2) if self._known[one] == self._known[other])
        return next(itertools.chain(pairs, unseen, known), 0)


class Battleship:
    """Shoots where most placements of a ship that fit the hits and misses lie, more so where they cover hits."""

    def __init__(self, env: Any) -> None:
        self._side, ships = int(env.board_size), [int(size) for size in env.ship_sizes]
        self._cover = np.array([self._cells(*spot) for size in ships for spot in self._spots(size)])
        self.begin(env)

    def begin(self, env: Any) -> None:
        self._hit, self._tried = np.zeros(self._side**2), np.zeros(self._side**2, bool)
        self._last: int | None = None

    def act(self, observation: int) -> np.ndarray:
        if self._last is not None:
            self._tried[self._last] = True
            self._hit[self._last] = int(observation)
        missed = self._tried & (self._hit == 0)
        fits = ~self._cover[:, missed].any(axis=1)
        weight = fits * 20.0 ** (self._cover @ self._hit)
        score = np.where(self._tried, -1.0, weight @ self._cover)
        self._last = int(score.argmax())
        return np.array(divmod(self._last, self._side))

    def _spots(self, size: int) -> list[tuple[int, int, int, bool]]:
        inside = range(self._side - size + 1)
        across = [(row, column, size, False) for row in range(self._side) for column in inside]
        return across + [(column, row, size, True) for row, column, _, _ in across] if size > 1 else across

    def _cells(self, row: int, column: int, size: int, down: bool) -> np.ndarray:
        board = np.zeros((self._side, self._side))
        if down:
            board[row : row + size, column] = 1
        else:
            board[row, column : column + size] = 1
        return board.ravel()


class MineSweeper:
    """Opens a field that the numbers prove safe, else one of least probability of a mine near the opened ones.

    Probabilities are relaxed: all numbers scale their unopened neighbours together, by the mean of their logarithms.
    """

    ROUNDS = 20

    def __init__(self, env: Any) -> None:
        self._dims, self._mines = tuple(map(int, env.dims)), int(env.num_mines)
        fields = list(np.ndindex(*self._dims))
        near = [[max(abs(a - c), abs(b - d)) == 1 for c, d in fields] for a, b in fields]
        self._near = np.array(near)
        self.begin(env)

    def begin(self, env: Any) -> None:
        self._numbers: dict[int, int] = {}
        self._last: int | None = None

    def act(self, observation: int) -> np.ndarray:
        if self._last is not None:
            self._numbers[self._last] = int(observation)
        closed = np.ones(len(self._near), bool)
        closed[list(self._numbers)] = False
        chance = self._chances(closed)
        self._last = int(np.where(closed, chance, 2.0).argmin())
        return np.array(np.unravel_index(self._last, self._dims))

    def _chances(self, closed: np.ndarray) -> np.ndarray:
        chance = np.where(closed, self._mines / closed.sum(), 0.0)
        if not self._numbers:
            return chance
        around = self._near[list(self._numbers)] & closed
        numbers = np.array(list(self._numbers.values()), dtype=float)
        safe, mined = (around[rows].any(axis=0) for rows in (numbers == 0, numbers == around.sum(axis=1)))
        told = np.maximum(around.sum(axis=0), 1)
        for _ in range(self.ROUNDS):
            ratio = np.log(np.maximum(numbers, 1e-9) / np.maximum(around @ chance, 1e-9))
            chance = np.minimum(chance * np.exp(ratio @ around / told), 1.0)
            chance[mined], chance[safe] = 1.0, 0.0
        return chance
