"""Episodes that nobody demonstrated: the way of one, with what was seen and then done in another.

Demonstrations are few, and the way travelled until a decision is unlike in each: a memory that is addressed by it can
tell the answer by heart. Where every way leads to every answer, only what was seen tells it. Of twins, the other is
one of the same scene whose way is another.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import islice, pairwise

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import (
    Episode,
    EpisodeSet,
    StatePath,
    TrainingSet,
    UnpairedSet,
    held_in_memory,
)
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.moments.visible import visibility
from trace_memory_ros.observation.frames import at

MOST = 1_000
"""Exchanged episodes at most, and ways that are read: among more a way is no name of an episode any more."""
FEWEST = 8
APART = 0.1
"""Standard deviations of the state by which twins go unlike ways."""
STRETCHES = 16
"""Of a way, whose mean states a linear reading looks at."""
TOLD, CHANCE = 0.75, 0.01
"""A way tells the answers where so many are read from it, and so rarely from answers dealt at random."""


def with_exchanges(builder: BatchBuilder, partners: int) -> BatchBuilder:
    """A builder whose episodes also go each one's way with the sights of up to `partners` others.

    As it is for 0 partners, and where there is an `obstacle`.
    """
    if not partners or obstacle(builder):
        return builder
    data = builder.data
    assert isinstance(data, TrainingSet | UnpairedSet) and data.path is not None
    pairs = list(islice(_pairs(data, partners), MOST // data.twins * data.twins))
    # Signatures of the exchanged are held in memory only where all together find room there.
    every = [episode.demo for episode in (*data.episodes, *(way for way, _ in pairs))]
    path = replace(data.path, kept=data.path.kept and held_in_memory(every, data.episodes[0].xi.shape[1]))
    more = [exchanged(way, sight, path, builder.moved, builder.brief(sight)) for way, sight in pairs]
    return replace(builder, data=data.with_more(more))


def obstacle(builder: BatchBuilder) -> str | None:
    """Why sights are not exchanged among these episodes; None where they are."""
    data, decided = builder.data, _decided(builder.data)
    if not isinstance(data, TrainingSet | UnpairedSet) or data.path is None:
        return "it is not known how they were made"
    if len(decided) < FEWEST:
        return f"{len(decided)} episodes have a decision, and fewer than {FEWEST} tell nothing"
    return None if isinstance(data, UnpairedSet) or _unlike_scenes(data) else "their twins go the same way"


def _decided(data: EpisodeSet) -> list[Episode]:
    return [one for one in data.episodes if _decides(one)]


def _decides(episode: Episode) -> bool:
    """Whether there is a way until a first decision."""
    return bool(episode.demo.decision_ticks) and episode.demo.decision_ticks[0] > 0


def _pairs(data: TrainingSet | UnpairedSet, partners: int) -> Iterator[tuple[Episode, Episode]]:
    """Each way with the sights of some others; twins come as whole scenes, in which sights keep their places."""
    if isinstance(data, TrainingSet):
        scenes = _unlike_scenes(data)
        for shift in range(1, min(partners + 1, data.twins)):
            for twins in scenes:
                yield from ((twins[(k + shift) % data.twins], sight) for k, sight in enumerate(twins))
        return
    ways = _decided(data)
    rng = np.random.default_rng([0, len(ways)])
    for place, way in enumerate(ways):
        others = np.delete(np.arange(len(ways)), place)
        chosen = rng.choice(others, min(partners, len(others)), replace=False)
        yield from ((way, ways[other]) for other in chosen)


def _unlike_scenes(data: TrainingSet) -> list[list[Episode]]:
    """Twins of every scene in which all decide, and do not go one and the same way until then."""
    scenes = ([data.episodes[i] for i in data.scene(number)] for number in range(data.pairs))
    return [twins for twins in scenes if all(map(_decides, twins)) and _unlike(twins)]


def _unlike(twins: Sequence[Episode]) -> bool:
    """Whether standardised states until the first decision are further apart than `APART`, or unlike in number."""
    ways = [one.state[: one.demo.decision_ticks[0]] for one in twins]
    return len({len(way) for way in ways}) > 1 or bool(np.ptp(np.stack(ways), axis=0).max(initial=0.0) > APART)


def exchanged(
    way: Episode, sight: Episode, path: StatePath, moved: Sequence[int], shown: NDArray[np.bool_] | None
) -> Episode:
    """Until the first decision the states of `way`, with the images of `sight` at the same share of the time; from
    there on all of `sight`, as it moves on from where `way` has come to.

    moved `(A,)`: state channel that an action moves, -1 for none. shown: as of `Demonstration`, of `sight`.
    """
    ours, theirs = way.demo, sight.demo
    here, there = ours.decision_ticks[0], theirs.decision_ticks[0]
    seen = np.concatenate([np.round(np.arange(here) * (there / here)).astype(np.int64), np.arange(there, theirs.ticks)])
    moves = ours.state[here] - theirs.state[there]
    offset = np.where(np.array(moved) < 0, 0.0, moves[np.maximum(moved, 0)])
    usable = np.concatenate([ours.usable_mask[:here], np.ones(theirs.ticks - there, bool)]) & theirs.usable_mask[seen]
    demo = Demonstration(
        name=f"{ours.name}, sights of {theirs.name}",
        scene=theirs.scene,
        stamps_ns=ours.stamps_ns[0] + np.arange(len(seen)) * (path.period_ms * 1_000_000),
        images=at(theirs.images, seen),
        state=np.concatenate([ours.state[:here], theirs.state[there:] + moves]),
        actions=np.concatenate([ours.actions[:here], theirs.actions[there:] + offset]).astype(np.float32),
        decision_ticks=tuple(here + tick - there for tick in theirs.decision_ticks),
        answers=theirs.answers,
        usable=None if usable.all() else usable,
        shown=None if shown is None else shown[seen],
    )
    pauses = np.concatenate([way.pauses[way.pauses < here], sight.pauses[sight.pauses >= there] - there + here])
    return path.episode(demo, at(sight.thumbnails, seen), way.apart[way.apart < here], pauses)


def way_tells(builder: BatchBuilder) -> bool:
    """Whether states until the first decision tell its answer (a part that was picked here or there), by a linear
    reading that is cross-validated. If nothing that is seen tells it too, exchanged sights contradict them.
    """
    episodes = _decided(builder.data)[:MOST]
    if len(episodes) < FEWEST:
        return False
    answers = np.unique([episode.demo.answers[0] for episode in episodes], return_inverse=True)[1]
    if answers.max() == 0:
        return False
    ways = np.stack([_stretches(episode.state[: episode.demo.decision_ticks[0] + 1]) for episode in episodes])
    found = visibility(ways, answers, np.arange(len(ways)), np.random.default_rng(0))
    return found.right >= TOLD and found.p <= CHANCE


def _stretches(state: NDArray[np.float32]) -> NDArray[np.float32]:
    """Mean states `(STRETCHES * d_s)` of equal stretches of `(T, d_s)`."""
    edges = np.linspace(0, len(state), STRETCHES + 1).astype(np.int64)
    parts = [state[min(a, len(state) - 1) : max(b, a + 1)].mean(axis=0) for a, b in pairwise(edges.tolist())]
    return np.concatenate(parts)
