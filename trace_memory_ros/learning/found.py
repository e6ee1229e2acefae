"""Decisions that nobody annotated: found in training episodes, and told in held-out ones by the same rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.learning.demonstration import Demonstration
from trace_memory_ros.moments.find import FEWEST_EPISODES, Found, Occurrence, Search, find
from trace_memory_ros.moments.groups import UNCLEAR
from trace_memory_ros.moments.recorded import Recorded
from trace_memory_ros.observation.frames import Frames

PICTURE_PX = 16
"""Side of the pictures that episodes are compared by, where no backbone looks at them."""
MOST_EPISODES = 200
"""Compared with one another; what they show is then looked for in the others."""
ACCURACY, FOUND_ACCURACY = "branch_accuracy", "found_branch_accuracy"


@dataclass(frozen=True)
class Decisions:
    """What was found. training, held_out: the episodes with it. moments: None where they are too few to compare.

    ways: number of answers of all kinds of moments.
    """

    training: list[Demonstration]
    held_out: list[Demonstration]
    moments: Found | None
    answers: int

    @property
    def any(self) -> bool:
        """Whether there is a moment that needs a memory."""
        return self.answers > 0


def recorded(demo: Demonstration, period_ms: int) -> Recorded:
    """What is compared of a demonstration."""
    pictures = np.concatenate([_flat(frames) for frames in demo.images.values()], axis=1)
    usable = np.ones(demo.ticks, bool) if demo.usable is None else demo.usable
    return Recorded(demo.name, period_ms, pictures, demo.state, demo.actions, usable)


def _flat(frames: Frames) -> NDArray[np.uint8]:
    """Pictures `(T, 3 P P)` of a camera, each shrunk once, whatever its size."""
    small = frames.shrunk(min(PICTURE_PX, frames.px))
    return np.asarray(small[:].reshape(len(frames), -1))


def find_decisions(
    training: Sequence[Demonstration],
    held_out: Sequence[Demonstration],
    period_ms: int,
    least_state: NDArray[np.float64],
    least_action: NDArray[np.float64],
    search: Search | None = None,
) -> Decisions:
    """The demonstrations with the decisions that only the past tells, without what was annotated.

    Held-out episodes play no part in what is found: each is told by the training episodes that look like it.
    """
    search = search or Search()
    bare = without_decisions(training, held_out)
    if len(training) < FEWEST_EPISODES:
        return bare
    order = np.random.default_rng(search.seed).permutation(len(training))[:MOST_EPISODES]
    compared = {int(index): place for place, index in enumerate(sorted(order.tolist()))}
    moments = find([recorded(training[i], period_ms) for i in compared], least_state, least_action, search)
    numbers = answer_numbers(moments)
    if not numbers:
        return replace(bare, moments=moments)
    told = [
        with_decisions(
            demo,
            moments.of_episode(compared[i]) if i in compared else moments.in_episode(recorded(demo, period_ms)),
            numbers,
        )
        for i, demo in enumerate(bare.training)
    ]
    held = [with_decisions(demo, moments.in_episode(recorded(demo, period_ms)), numbers) for demo in bare.held_out]
    return Decisions(told, held, moments, len(numbers))


def without_decisions(training: Sequence[Demonstration], held_out: Sequence[Demonstration]) -> Decisions:
    """The demonstrations without any."""
    sides = ([replace(demo, decision_ticks=(), answers=()) for demo in demos] for demos in (training, held_out))
    return Decisions(*sides, None, 0)


def answer_numbers(moments: Found) -> dict[tuple[int, int], int]:
    """The number of each way of each kind of moment that needs a memory, by kind and way."""
    pairs = [
        (number, way) for number, kind in enumerate(moments.kinds) if kind.needs_memory for way in range(len(kind.ways))
    ]
    return {pair: number for number, pair in enumerate(pairs)}


def with_decisions(
    demo: Demonstration, occurrences: Sequence[Occurrence], numbers: Mapping[tuple[int, int], int]
) -> Demonstration:
    """The demonstration with those of its moments that need a memory and whose way is clear, at readable ticks."""
    known = np.isfinite(demo.actions).all(axis=1)
    readable = np.flatnonzero(known if demo.usable is None else known & demo.usable)
    decisions: dict[int, int] = {}
    for one in occurrences:
        next_ = readable[np.searchsorted(readable, one.tick) :][:1]
        if one.way != UNCLEAR and (one.kind, one.way) in numbers and next_.size:
            decisions.setdefault(int(next_[0]), numbers[one.kind, one.way])
    ticks = tuple(sorted(decisions))
    return replace(demo, decision_ticks=ticks, answers=tuple(decisions[tick] for tick in ticks), found=True)


def named(figures: Mapping[str, Any], found: bool) -> dict[str, Any]:
    """Figures whose accuracies say that their decisions were found, where they were."""
    return {key.replace(ACCURACY, FOUND_ACCURACY) if found else key: value for key, value in figures.items()}
