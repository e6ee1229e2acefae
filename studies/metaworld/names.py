"""Meta-World's tasks whose goal is drawn anew and told by three numbers alone; imported under either Python."""

from __future__ import annotations

from typing import NamedTuple, Self

TASKS = (
    "reach",
    "reach-wall",
    "push",
    "push-wall",
    "pick-place",
    "pick-place-wall",
    "hand-insert",
    "soccer",
    "sweep",
    "stick-push",
    "pick-out-of-hole",
)
MOVES = 200
"""Moves of the arm after which an episode ends without success."""


class Cue(NamedTuple):
    """The goal is shown for `shown` ticks from the episode's first; the arm is held for `least` to `most` ticks."""

    shown: int
    least: int
    most: int

    def of(self, task: str) -> str:
        """A task with this cue, as `parse` reads it."""
        return f"{task}:{self.shown}:{self.least}:{self.most}"

    @classmethod
    def parse(cls, name: str) -> tuple[str, Self]:
        """Task and cue. Raises ValueError where the name is none."""
        task, *numbers = name.split(":")
        if task not in TASKS or len(numbers) != 3:
            raise ValueError(f"{name!r}: expected TASK:SHOWN:LEAST:MOST with a task of {', '.join(TASKS)}")
        return task, cls(*map(int, numbers))
