"""Sequences nobody demonstrated, spliced from the two twins of a demonstrated one."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.observation.frames import of_stack, stacked

Twins = tuple[Demonstration, Demonstration]


def recombine(twins: Twins, rng: np.random.Generator) -> Twins:
    """Twins with the cues of `twins` in a new order of left and right, every cue again the other way in the second.

    Until the first decision the twins differ in nothing but the cues' pixels, so each show is taken from either; each
    visit is taken from the one that answered so. Without this, one cue and the scene tell all other cues of an episode,
    and that is what is learned. Raises ValueError where the twins differ otherwise.
    """
    one, other = twins
    shows = _shows(one, other)
    sources = rng.integers(2, size=len(shows))
    return _spliced(twins, shows, sources, 0), _spliced(twins, shows, 1 - sources, 1)


def _shows(one: Demonstration, other: Demonstration) -> list[tuple[int, int]]:
    """First tick and the one after the last of each cue shown, in order."""
    decided, answers = one.decision_ticks[0], len(one.answers)
    alike = other.decision_ticks[0] == decided and np.array_equal(one.state[:decided], other.state[:decided])
    if not alike or len(other.answers) != answers:
        raise ValueError(f"demonstrations of {one.scene}: the twins' paths differ before the first decision")
    before = slice(decided)
    differs = (stacked(one.images, before) != stacked(other.images, before)).any(axis=(1, 2, 3, 4))
    edges = np.flatnonzero(np.diff(differs.astype(np.int8), prepend=0, append=0)).reshape(-1, 2).tolist()
    if len(edges) not in (answers, 2 * answers):
        raise ValueError(
            f"demonstrations of {one.scene}: {len(edges)} shows for {answers} decisions; "
            "there must be one for each, and as many more where they are overwritten"
        )
    return [(begin, end) for begin, end in edges]


def _spliced(twins: Twins, shows: list[tuple[int, int]], sources: NDArray[np.int64], place: int) -> Demonstration:
    one = twins[0]
    # The newest cues are the ones that count.
    visits = [twins[source] for source in sources[-len(one.answers) :]]
    legs = [_leg(one, 0, one.decision_ticks[0])]
    for k, demo in enumerate(visits):
        legs.append(_leg(demo, demo.decision_ticks[k], (*demo.decision_ticks, demo.ticks)[k + 1]))
    images, state, actions, shown = (np.concatenate(parts) for parts in zip(*legs, strict=True))
    for (begin, end), source in zip(shows, sources, strict=True):
        images[begin:end] = stacked(twins[source].images, slice(begin, end))
    starts = np.cumsum([len(leg[1]) for leg in legs[:-1]])
    period_ns = int(one.stamps_ns[1] - one.stamps_ns[0])
    stamps_ns = one.stamps_ns[0] + np.arange(len(images)) * period_ns
    return Demonstration(
        twins[place].name,
        one.scene,
        stamps_ns,
        of_stack(tuple(one.images), images),
        state,
        actions,
        tuple(starts.tolist()),
        tuple(demo.answers[k] for k, demo in enumerate(visits)),
        shown=shown,
    )


def _leg(demo: Demonstration, begin: int, end: int) -> tuple[NDArray[Any], ...]:
    """Images, state, actions and shows of a stretch."""
    shown = np.zeros(demo.ticks, dtype=bool) if demo.shown is None else demo.shown
    return stacked(demo.images, slice(begin, end)), demo.state[begin:end], demo.actions[begin:end], shown[begin:end]
