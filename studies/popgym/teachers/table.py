"""The teachers by kind of environment."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from studies.popgym.teachers import cards
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
}
"""By what `names.kind` gives."""
