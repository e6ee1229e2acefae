"""The teacher of the mazes."""

from __future__ import annotations

from typing import Any

import numpy as np

FREE, START, GOAL = 0, 2, 3
"""Cells of what is seen of a maze; 1 is a wall."""
LEFT, RIGHT, UP, DOWN, NONE = range(5)
STEPS = {LEFT: (0, -1), RIGHT: (0, 1), UP: (-1, 0), DOWN: (1, 0)}
"""Rows and columns that an action moves by."""
RIGHT_OF = {UP: RIGHT, RIGHT: DOWN, DOWN: LEFT, LEFT: UP}


class Labyrinth:
    """Keeps its right hand on the wall, and goes into the exit where it sees one beside it.

    A maze without loops is thereby gone through as a whole. All that it goes by is in the newest observation: the nine
    cells around, and the last action.
    """

    def __init__(self, env: Any) -> None:
        self.begin(env)

    def begin(self, env: Any) -> None:
        """Nothing is kept."""

    def act(self, observation: np.ndarray) -> int:
        around, last = np.asarray(observation[:9]).reshape(3, 3), int(observation[9])
        if last == NONE:
            # It begins on the border, where what is seen is not centred on it: where the start lies, it is.
            row, column = (int(place) for place in np.argwhere(around == START)[0])
            turns = list(STEPS)
        else:
            row = column = 1
            right = RIGHT_OF[last]
            turns = [right, last, RIGHT_OF[RIGHT_OF[right]], RIGHT_OF[right]]
        beside = {turn: _cell(around, row + STEPS[turn][0], column + STEPS[turn][1]) for turn in turns}
        return next((turn for kind in (GOAL, FREE) for turn in turns if beside[turn] == kind), turns[-1])


def _cell(around: np.ndarray, row: int, column: int) -> int | None:
    """What is seen there; None beyond what is seen."""
    return int(around[row, column]) if 0 <= row < 3 and 0 <= column < 3 else None
