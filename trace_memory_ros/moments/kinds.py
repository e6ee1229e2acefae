"""Kinds of moments: places where episodes part in the same ways, and what can be said of them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from trace_memory_ros.moments.groups import UNCLEAR, Ways, ways_of
from trace_memory_ros.moments.occurrences import Stretch
from trace_memory_ros.moments.parting import Parting
from trace_memory_ros.moments.recorded import Floats, Recorded
from trace_memory_ros.moments.scan import Scan
from trace_memory_ros.moments.visible import Visibility, visibility

LEAST_WAYS_SCORE = 2.5
"""Of all occurrences of a kind, which do not lie at one place as those that one tick is compared with."""
TOLD = 0.9
"""Where a reading of the present tells so many ways right, no memory is needed."""
MOST_PASSING = 0.25
"""Where more episodes pass from one way to the other, it is no choice."""
HALF = 0.5
FEWEST_PER_WAY = 4
"""Fewer occurrences of a way show not whether the present tells it."""


class Occurrence(NamedTuple):
    """A moment in an episode. tick: at which the ways part. kind: of moment, from 0. way: taken there, `UNCLEAR` where
    it cannot be told.

    stretch: over which those that look alike go on differently.
    """

    tick: int
    kind: int
    way: int
    stretch: Stretch


@dataclass(frozen=True)
class Compared:
    """Episodes, how each of their ticks compares with the others, their ways on `(T, k)` and actions `(T, A)`."""

    episodes: Sequence[Recorded]
    scans: Sequence[Scan]
    ways: Sequence[Floats]
    actions: Sequence[Floats]

    def of(self, index: int) -> tuple[Floats, Scan]:
        """An episode's actions, and how it compares."""
        return self.actions[index], self.scans[index]

    def relative(self, group: Sequence[Stretch]) -> Floats:
        """The ways on of some stretches `(N, k)`, against the middle of those that look alike."""
        return np.stack([self.ways[one.episode][one.peak] - self.scans[one.episode].middle[one.peak] for one in group])

    def on(self, stretch: Stretch) -> Floats:
        """The ways on around its peak `(n, k)`, against the same middle, while they part half as far as there."""
        low = np.flatnonzero(self.scans[stretch.episode].scores < HALF * stretch.score)
        first = int(low[low < stretch.peak].max(initial=stretch.first - 1)) + 1
        last = int(low[low > stretch.peak].min(initial=stretch.last + 1)) - 1
        part = slice(max(first, stretch.first), min(last, stretch.last) + 1)
        return self.ways[stretch.episode][part] - self.scans[stretch.episode].middle[stretch.peak]


@dataclass(frozen=True)
class Kind:
    """Places that look alike and from which episodes go on differently.

    passing: share of episodes that are on two ways one after the other without leaving: something done that leaves no
    trace, not a choice. parting: when, visibility: how far the present shows which way it will be; None where there
    are too few of a way to tell.
    """

    occurrences: tuple[Occurrence, ...]
    ways: Ways
    passing: float
    parting: Parting | None
    visibility: Visibility | None

    @property
    def clear(self) -> list[Occurrence]:
        """Those whose way can be told."""
        return [one for one in self.occurrences if one.way != UNCLEAR]

    @property
    def episodes(self) -> int:
        """In which it occurs."""
        return len({one.stretch.episode for one in self.occurrences})

    @property
    def is_choice(self) -> bool:
        """Whether episodes choose a way, and do not do one thing and then the other."""
        return self.passing < MOST_PASSING

    @property
    def needs_memory(self) -> bool:
        """Whether a way is chosen that the present does not show."""
        return self.visibility is not None and self.visibility.right < TOLD and self.is_choice

    def timed(self, one: Occurrence, actions: Floats, scan: Scan) -> Occurrence | None:
        """An occurrence at the tick at which its episode's actions `(T, A)` part.

        None where they do not, or where those that look alike then all go on alike.
        """
        if self.parting is None or one.way == UNCLEAR:
            return one
        tick = self.parting.tick(actions, one.stretch.first, one.stretch.last, one.way)
        if tick is None or scan.scores[max(tick - 1, 0) : tick + self.parting.ahead].max() < HALF * one.stretch.score:
            return None
        return one._replace(tick=tick)


def kind_of(group: Sequence[Stretch], compared: Compared, rotations: int, rng: np.random.Generator) -> Kind | None:
    """A kind of stretches that look alike; None where there is but one way on."""
    found = ways_of(compared.relative(group), LEAST_WAYS_SCORE, rotations, rng)
    return None if found is None else judged(group, found, compared, rng)


def judged(group: Sequence[Stretch], ways: Ways, compared: Compared, rng: np.random.Generator, number: int = 0) -> Kind:
    """Stretches with the ways taken there, when the actions part, and whether the present tells which."""
    told = ways.of(compared.relative(group))
    passing = float(np.mean([_passes(ways, compared.on(stretch)) for stretch in group]))
    clear = np.flatnonzero(told != UNCLEAR).tolist()
    plain = tuple(Occurrence(s.last, number, way, s) for s, way in zip(group, told.tolist(), strict=True))
    kind = Kind(plain, ways, passing, None, None)
    if min(np.bincount(told[clear], minlength=len(ways))) < FEWEST_PER_WAY:
        return kind
    members, period_ms = [group[i] for i in clear], compared.episodes[0].period_ms
    named, firsts, ends = np.array([(s.episode, s.first, s.last) for s in members]).T
    actions = [compared.actions[s.episode] for s in members]
    parted = replace(kind, parting=Parting.fit(actions, firsts, ends, told[clear], named, period_ms, rng))
    timed = [parted.timed(one, *compared.of(one.stretch.episode)) for one in plain]
    parted = replace(parted, occurrences=tuple(one for one in timed if one is not None))
    often = np.bincount([one.way for one in parted.clear], minlength=len(ways)) >= FEWEST_PER_WAY
    if not often.all():
        return judged(group, Ways(ways.centres[often]), compared, rng, number) if 2 <= often.sum() else kind
    return replace(parted, visibility=_seen(parted.clear, compared, rng))


def _seen(clear: Sequence[Occurrence], compared: Compared, rng: np.random.Generator) -> Visibility:
    """How far the present tells ways that are clear."""
    seen = np.stack([_whole_present(compared.episodes[one.stretch.episode], one.tick) for one in clear])
    told, named = np.array([(one.way, one.stretch.episode) for one in clear]).T
    return visibility(seen, told, named, rng)


def joined(kinds: Sequence[Kind], compared: Compared, rng: np.random.Generator) -> list[Kind]:
    """Kinds that need a memory, or of which too little is known, as one where their ways are the same."""
    done: list[Kind] = []
    for kind in sorted(kinds, key=lambda one: -len(one.occurrences)):
        for place, other in enumerate(done):
            order = other.ways.matched(kind.ways)
            if order is not None and _may_join(kind) and _may_join(other):
                group = sorted(one.stretch for one in (*other.occurrences, *kind.occurrences))
                done[place] = judged(group, other.ways, compared, rng)
                break
        else:
            done.append(kind)
    return sorted(done, key=lambda one: -len(one.occurrences))


def _may_join(kind: Kind) -> bool:
    return kind.needs_memory or (kind.visibility is None and kind.is_choice)


def _passes(ways: Ways, on: Floats) -> bool:
    """Whether a stretch's ways on `(n, k)` are of more than one way."""
    told = ways.of(on)
    return len(set(told[told != UNCLEAR].tolist())) > 1


def _whole_present(episode: Recorded, tick: int) -> Floats:
    return np.concatenate([episode.seen(tick), episode.state[tick].astype(np.float32)])
