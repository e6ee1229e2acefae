"""Decisions that nobody annotated: found in training episodes, and told in held-out ones by the same rule."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.moments import words
from trace_memory_ros.moments.find import FEWEST_EPISODES, Found, Search, find
from trace_memory_ros.moments.groups import UNCLEAR
from trace_memory_ros.moments.kinds import Occurrence
from trace_memory_ros.moments.recorded import Recorded
from trace_memory_ros.observation.frames import Frames
from trace_memory_ros.vision.base import VisualBackbone

PICTURE_PX = 16
"""Side of the pictures that episodes are compared by, where no backbone looks at them."""
TOGETHER = 64
"""Pictures that a backbone looks at at a time."""
MOST_EPISODES = 200
"""Compared with one another; what they show is then looked for in the others."""


@dataclass(frozen=True)
class Decisions:
    """Episodes with the decisions that were found, none where there are none.

    sides: as they were given, the first one searched. labels: of the answers, in words. moments: None where nothing was
    searched, episodes being too few, or not to be.
    """

    sides: list[list[Demonstration]]
    labels: tuple[str, ...] = ()
    moments: Found | None = None


def recorded(demo: Demonstration, period_ms: int, eyes: VisualBackbone | None = None) -> Recorded:
    """What is compared of a demonstration: its cameras' pixels, or what a backbone makes of them."""
    seen = [_flat(frames) if eyes is None else _pooled(frames, eyes) for frames in demo.images.values()]
    pictures = np.concatenate(seen, axis=1)
    return Recorded(demo.name, period_ms, pictures, demo.state, demo.actions, demo.usable_mask)


def _flat(frames: Frames) -> NDArray[np.uint8]:
    """Pictures `(T, 3 P P)` of a camera, each shrunk once, whatever its size."""
    small = frames.shrunk(min(PICTURE_PX, frames.px))
    return np.asarray(small[:].reshape(len(frames), 3 * small.px**2))


@torch.no_grad()
def _pooled(frames: Frames, eyes: VisualBackbone) -> NDArray[np.float32]:
    """What a backbone makes of a camera's pictures `(T, d)`, each looked at once."""
    starts = range(0, len(frames.pixels), TOGETHER)
    parts = [torch.from_numpy(np.array(frames.pixels[i : i + TOGETHER])).permute(0, 3, 1, 2) for i in starts]
    found = torch.cat([eyes(part).pooled for part in parts])
    return np.asarray(found.float().numpy()[frames.index])


def find_decisions(
    sides: Sequence[Sequence[Demonstration]],
    period_ms: int,
    least_state: NDArray[np.float64],
    least_action: NDArray[np.float64],
    action_names: Sequence[str],
    search: Search | None = None,
) -> Decisions:
    """The demonstrations with the decisions that only the past tells, without what was annotated.

    sides: training, and others that play no part in what is found: each of their episodes is told by the training
    episodes that look like it.
    """
    search, bare = search or Search(), without_decisions(sides)
    training = bare.sides[0]
    if len(training) < FEWEST_EPISODES:
        return bare
    order = np.random.default_rng(search.seed).permutation(len(training))[:MOST_EPISODES]
    compared = {int(index): place for place, index in enumerate(sorted(order.tolist()))}
    moments = find([recorded(training[i], period_ms) for i in compared], least_state, least_action, search)
    numbers = answer_numbers(moments)
    if not numbers:
        return replace(bare, moments=moments)

    def told(demo: Demonstration, place: int | None) -> Demonstration:
        seen = moments.in_episode(recorded(demo, period_ms)) if place is None else moments.of_episode(place)
        return with_decisions(demo, seen, numbers)

    done = [
        [told(demo, None if side else compared.get(i)) for i, demo in enumerate(demos)]
        for side, demos in enumerate(bare.sides)
    ]
    return Decisions(done, answer_labels(moments, numbers, action_names), moments)


def without_decisions(sides: Sequence[Sequence[Demonstration]]) -> Decisions:
    """The demonstrations without any."""
    return Decisions([[replace(demo, decision_ticks=(), answers=()) for demo in demos] for demos in sides])


def answer_labels(
    moments: Found, numbers: Mapping[tuple[int, int], int], action_names: Sequence[str]
) -> tuple[str, ...]:
    """The answers in words, by their numbers: the moment, and the way taken there."""
    return tuple(
        f"{kind + 1}{words.way_names(moments, moments.kinds[kind], action_names)[way]}" for kind, way in numbers
    )


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
    readable = demo.readable
    decisions: dict[int, int] = {}
    for one in occurrences:
        next_ = readable[np.searchsorted(readable, one.tick) :][:1]
        if one.way != UNCLEAR and (one.kind, one.way) in numbers and next_.size:
            decisions.setdefault(int(next_[0]), numbers[one.kind, one.way])
    ticks = tuple(sorted(decisions))
    return replace(demo, decision_ticks=ticks, answers=tuple(decisions[tick] for tick in ticks))
