"""What both sides of a world's process agree on; imported under either Python, hence nothing but the standard library.

A request and its answer are a line of JSON each. Requests, by their `do`: `describe` a task; `teach`: the teacher plays
the episodes of some seeds, whose observations and actions go into a file; `begin` episodes side by side, and `act` in
all of them.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Interface:
    """What a task shows and takes.

    observation: numbers it shows per step (symbols as one-hot). choices: options of each part of a discrete action;
    empty where an action is `numbers` numbers, each between low and high. previous_action: whether the world's authors
    say that an observation has to hold the action before it. teacher: what it does, in
    words. path: channels of the observation that a trajectory is made of; empty for all.
    """

    observation: int
    choices: tuple[int, ...]
    numbers: int
    low: float
    high: float
    previous_action: bool
    teacher: str
    path: tuple[int, ...] = ()
