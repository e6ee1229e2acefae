"""Where in an episode the ways on part, and which of these places are of one kind."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.nearest import Neighbours

GAP_MS = 300
"""Shorter gaps within a stretch are bridged."""
LEAST_MS = 200
"""A stretch is as long at least."""
ALIGNED = 0.5
"""Cosine between the directions in which two ticks' ways on part, from which on it is the same parting."""
SLACK_MS = 200
"""How far from a stretch a nearest present may lie and still be of its kind."""

AGAIN_MS = 1_500
"""Stretches of one kind that are no further apart in an episode are one."""


class Stretch(NamedTuple):
    """Ticks `first` to `last` of an episode at which those that look alike go on differently.

    score: the greatest in it, towards: the direction in which they part there. After `last` the present shows which way
    was taken.
    """

    episode: int
    first: int
    last: int
    score: float
    towards: tuple[float, ...]


def stretches(
    episode: int,
    scores: NDArray[np.float32],
    towards: NDArray[np.float32],
    threshold: float,
    gap: int,
    least: int,
) -> list[Stretch]:
    """The stretches of scores `(T,)` above `threshold` of at least so many ticks, gaps of up to `gap` bridged.

    Another stretch begins where what parts is something else, by its direction `towards` `(T, k)`.
    """
    hits = np.flatnonzero(scores > threshold)
    if not hits.size:
        return []
    turned = np.abs((towards[hits[1:]] * towards[hits[:-1]]).sum(axis=1)) < ALIGNED
    breaks = np.flatnonzero((np.diff(hits) > gap + 1) | turned) + 1
    found = (part for part in np.split(hits, breaks) if len(part) >= least)
    peaks = [(part, part[scores[part].argmax()]) for part in found]
    return [
        Stretch(episode, int(part[0]), int(part[-1]), float(scores[peak]), tuple(towards[peak].tolist()))
        for part, peak in peaks
    ]


def kinds(
    found: Sequence[Sequence[Stretch]], neighbours: Sequence[Neighbours], slack: int
) -> list[list[Stretch]]:
    """Stretches of all episodes by kind: those that are nearest presents of one another, directly or by others."""
    flat = [stretch for of_episode in found for stretch in of_episode]
    place = {stretch: index for index, stretch in enumerate(flat)}
    parent = list(range(len(flat)))

    def root(index: int) -> int:
        while parent[index] != index:
            parent[index] = parent[parent[index]]
            index = parent[index]
        return index

    for stretch in flat:
        nearest = neighbours[stretch.episode]
        for other, tick in zip(nearest.episodes[stretch.last], nearest.ticks[stretch.last], strict=True):
            for candidate in found[other]:
                if candidate.first - slack <= tick <= candidate.last + slack and aligned(stretch, candidate):
                    parent[root(place[candidate])] = root(place[stretch])
    groups: dict[int, list[Stretch]] = {}
    for index, stretch in enumerate(flat):
        groups.setdefault(root(index), []).append(stretch)
    return sorted(groups.values(), key=len, reverse=True)


def merged(group: Sequence[Stretch], again: int) -> list[Stretch]:
    """Stretches of one kind, those no more than `again` ticks apart in an episode as one."""
    done: list[Stretch] = []
    for stretch in sorted(group):
        before = done[-1] if done else None
        if before is not None and before.episode == stretch.episode and stretch.first - before.last <= again:
            best = max(before, stretch, key=lambda one: one.score)
            done[-1] = best._replace(first=before.first, last=stretch.last)
        else:
            done.append(stretch)
    return done


def aligned(one: Stretch, other: Stretch) -> bool:
    return abs(float(np.dot(one.towards, other.towards))) >= ALIGNED
