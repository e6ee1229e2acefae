"""Batch builders over episodes without twins, for any robot; and the update clock that suits them."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.learning.bags.data import BagDemonstration
from trace_memory_ros.learning.batches import START_TICKS, BatchBuilder, Data
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.dataset import (
    ACTION_STD_FLOOR,
    Episode,
    after_onset,
    fit_statistics,
    known_actions,
    pauses,
    signatures,
)
from trace_memory_ros.learning.unpaired import UnpairedSet, fit_references, partings
from trace_memory_ros.observation.image import thumbnails
from trace_memory_ros.runtime.clock import PathLength, UpdateClock
from trace_memory_ros.signature.normalise import Standardiser

WRITES = 30
"""Writes per episode at which the delays of the arm tasks are learned."""
STANDING = 0.005
"""Share of an action's spread; moving less per tick is standing."""
APART = 0.2
"""Share of an action's spread by which answers must differ to be told apart by what is done."""
FEW = 3
_ROUNDS = 40


def choose_clock(states: Sequence[NDArray[np.float32]], writes: int = WRITES) -> PathLength:
    """The path length at which the median of standardised episodes `(T, d_s)` writes about `writes` times.

    The dead band is as long, so that an arm that stands or shivers writes nothing. Raises ValueError where nothing
    moves.
    """
    reach = max(float(np.ptp(state, axis=0).max()) for state in states)
    if not reach:
        raise ValueError("the state never changes in any episode: check the joint topics, or give --clock every:N")
    low, high = math.log(reach * 1e-4), math.log(reach * 10.0)
    for _ in range(_ROUNDS):
        middle = 0.5 * (low + high)
        clock = UpdateClock(PathLength(math.exp(middle), math.exp(middle)))
        if float(np.median([clock.write_mask(state).sum() for state in states])) > writes:
            low = middle
        else:
            high = middle
    threshold = float(f"{math.exp(high):.3g}")
    return PathLength(threshold, threshold)


def prepare_unpaired(
    design: Design,
    state: Standardiser,
    training: Sequence[BagDemonstration],
    held_out: Sequence[BagDemonstration],
) -> Data:
    """Batch builders over the splits, both with the train split's statistics and branch references."""
    spread = np.maximum(known_actions(training).std(axis=0), ACTION_STD_FLOOR).astype(np.float32)
    apart = _apart(training, APART * spread)
    train_set = UnpairedSet([_episode(demo, design, state, apart, spread) for demo in training])
    held_set = UnpairedSet([_episode(demo, design, state, apart, spread) for demo in held_out])
    clock = UpdateClock(design.clock)
    builder = BatchBuilder(train_set, fit_statistics(train_set, state, clock), clock, design.chunk)
    builder = replace(builder, references=fit_references(builder, action_channels(design)))
    return Data(builder, replace(builder, data=held_set))


def action_channels(design: Design) -> list[int]:
    """State channel that each action moves, found by name; -1 for none."""
    names = design.observation.state_names
    return [names.index(name) if name in names else -1 for name in design.action_names]


def _episode(
    demo: BagDemonstration,
    design: Design,
    state: Standardiser,
    apart: NDArray[np.int64],
    spread: NDArray[np.float32],
) -> Episode:
    normal = state.apply(demo.state)
    xi = signatures(normal, design.depth, design.window)
    own = apart if demo.answers else apart[:0]
    small = thumbnails(demo.images, design.observation.thumbnail_px)
    return Episode(demo, own[own < demo.ticks], pauses(demo, STANDING * spread), small, normal, xi)


def _apart(demos: Sequence[BagDemonstration], least: NDArray[np.float32]) -> NDArray[np.int64]:
    """The ticks, early in an episode, at which those of unlike answers begin to act differently; often none."""
    groups: dict[tuple[int, ...], list[NDArray[np.float32]]] = {}
    reach = min([START_TICKS, *(demo.decision_ticks[0] for demo in demos if demo.decision_ticks)])
    for demo in demos:
        start = demo.actions[:reach]
        if demo.answers and len(start) == reach and np.isfinite(start).all():
            groups.setdefault(demo.answers, []).append(start)
    enough = [np.stack(group) for group in groups.values() if len(group) >= FEW]
    return after_onset(partings(enough, least)) if len(enough) > 1 and reach else np.zeros(0, dtype=np.int64)
