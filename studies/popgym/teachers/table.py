"""The teachers by kind of environment."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from studies.popgym.teachers import cards, control, games, mazes
from studies.worlds.server import Teacher


class Entry(NamedTuple):
    """make: from an environment, of which sizes are read; words: what the teacher does."""

    make: Callable[[Any], Teacher]
    words: str


TEACHERS: dict[str, Entry] = {
    "RepeatFirst": Entry(cards.RepeatFirst, "remembers the first suit"),
    "RepeatPrevious": Entry(cards.RepeatPrevious, "remembers all suits"),
    "Autoencode": Entry(cards.Autoencode, "remembers all suits"),
    "CountRecall": Entry(cards.CountRecall, "counts"),
    "HigherLower": Entry(cards.HigherLower, "counts the cards that are left"),
    "MultiarmedBandit": Entry(games.Bandit, "upper confidence bounds"),
    "Concentration": Entry(games.Concentration, "remembers all cards"),
    "Battleship": Entry(games.Battleship, "counts the ships that fit"),
    "MineSweeper": Entry(games.MineSweeper, "weighs the numbers"),
    "LabyrinthEscape": Entry(mazes.Labyrinth, "keeps a hand on the wall"),
    "LabyrinthExplore": Entry(mazes.Labyrinth, "keeps a hand on the wall"),
    "PositionOnlyCartPole": Entry(partial(control.Cart, shown=(0, 2)), "Kalman filter, linear feedback"),
    "VelocityOnlyCartPole": Entry(partial(control.Cart, shown=(1, 3)), "Kalman filter, linear feedback"),
    "NoisyPositionOnlyCartPole": Entry(partial(control.Cart, shown=(0, 2)), "Kalman filter, linear feedback"),
    "PositionOnlyPendulum": Entry(control.Pendulum, "Kalman filter, swing-up by energy, feedback"),
    "NoisyPositionOnlyPendulum": Entry(control.Pendulum, "Kalman filter, swing-up by energy, feedback"),
}
"""By what `names.kind` gives."""
