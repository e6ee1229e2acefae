"""Where in an episode the ways on part, and which of these places are of one kind."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.nearest import Neighbours

GAP_MS = 300
"""Shorter gaps within a stretch are bridged."""
LEAST_MS = 200
"""A stretch is as long at least."""
ALIGNED = 0.4
"""Cosine between the directions in which two ticks' ways on part, from which on it is the same parting."""
SLACK_MS = 200
"""How far from a stretch a nearest present may lie and still be of its kind."""

AGAIN = 1.0
"""Deviations of action: stretches between which a robot goes no further are one."""


class Stretch(NamedTuple):
    """Ticks `first` to `last` of an episode at which those that look alike go on differently.

    score: the greatest in it, at `peak`, towards: the directions in which they part there, two of k numbers. After
    `last` the present shows which way was taken.
    """

    episode: int
    first: int
    last: int
    peak: int
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

    Another stretch begins where what parts is something else, by its directions `towards` `(T, 2, k)`.
    """
    hits = np.flatnonzero(scores > threshold)
    if not hits.size:
        return []
    turned = ~aligned(towards[hits[1:]], towards[hits[:-1]])
    breaks = np.flatnonzero((np.diff(hits) > gap + 1) | turned) + 1
    found = (part for part in np.split(hits, breaks) if len(part) >= least)
    peaks = [(part, part[scores[part].argmax()]) for part in found]
    return [
        Stretch(
            episode, int(part[0]), int(part[-1]), int(peak), float(scores[peak]), tuple(towards[peak].ravel().tolist())
        )
        for part, peak in peaks
    ]


def places(found: Sequence[Sequence[Stretch]], neighbours: Sequence[Neighbours], slack: int) -> list[list[Stretch]]:
    """Stretches of all episodes by place: those that are nearest presents of one another, directly or by others."""
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
                if candidate.first - slack <= tick <= candidate.last + slack and alike(stretch, candidate):
                    parent[root(place[candidate])] = root(place[stretch])
    groups: dict[int, list[Stretch]] = {}
    for index, stretch in enumerate(flat):
        groups.setdefault(root(index), []).append(stretch)
    return sorted(groups.values(), key=len, reverse=True)


def merged(
    group: Sequence[Stretch], actions: Mapping[int, NDArray[np.float32]] | Sequence[NDArray[np.float32]]
) -> list[Stretch]:
    """Stretches of one place or kind, as one those of an episode between which its actions `(T, A)` go nowhere."""
    done: list[Stretch] = []
    for stretch in sorted(group):
        before = done[-1] if done else None
        if (
            before is not None
            and before.episode == stretch.episode
            and not _left(actions[stretch.episode], before, stretch)
        ):
            best = max(before, stretch, key=lambda one: one.score)
            done[-1] = best._replace(first=before.first, last=max(before.last, stretch.last))
        else:
            done.append(stretch)
    return done


def _left(actions: NDArray[np.float32], before: Stretch, after: Stretch) -> bool:
    """Whether a robot has gone on between the end of a stretch and the begin of another."""
    between = actions[before.last : after.first + 1]
    return bool(len(between)) and float(np.linalg.norm(between - between[0], axis=1).max()) >= AGAIN


def aligned(some: NDArray[np.float32], others: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Whether directions `(N, 2, k)` in which ways part have one in common."""
    return np.asarray(np.linalg.norm(some @ others.transpose(0, 2, 1), ord=2, axis=(1, 2)) >= ALIGNED)


def alike(one: Stretch, other: Stretch) -> bool:
    """Whether ways part in a common direction."""
    directions = [np.array(stretch.towards, np.float32).reshape(1, 2, -1) for stretch in (one, other)]
    return bool(aligned(*directions)[0])
