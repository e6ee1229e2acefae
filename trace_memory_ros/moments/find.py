"""The moments of a set of episodes, and the same moments in episodes that were not among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.moments.groups import UNCLEAR, Ways, ways_of
from trace_memory_ros.moments.nearest import Library, Neighbours
from trace_memory_ros.moments.occurrences import (
    AGAIN_MS,
    GAP_MS,
    LEAST_MS,
    SLACK_MS,
    Stretch,
    alike,
    kinds,
    merged,
    stretches,
)
from trace_memory_ros.moments.recorded import Floats, Recorded, Space
from trace_memory_ros.moments.splits import mixed, rotated, split
from trace_memory_ros.moments.visible import Visibility, parted, visibility
from trace_memory_ros.observation.periods import ticks_in

FEWEST_EPISODES = 8
"""Fewer episodes cannot be compared."""
LEAST_SCORE = 4.0
"""Groups nearer to one another, in spreads within, are no ways to go on."""
LEAST_MIXED = 0.25
"""Where all of a group look more alike than the others, the present tells the groups apart."""
FAR = np.float32(1e4)
"""Where a present lies from which nothing is known to be done: never the nearest."""
LEAST_WAYS_SCORE = 2.5
"""The same of all occurrences of a kind, which do not lie at one place as those that one tick is compared with."""
ONCE_KNOWN = 0.6
"""Share of the threshold that is asked of an episode for a kind of moment that is known."""
TOLD = 0.9
"""Where a reading of the present tells so many ways right, no memory is needed."""
MOST_PASSING = 0.25
"""Where more episodes pass from one way to the other, it is no choice."""
AHEAD_MS, PARTING_MS = 300, 2_000
"""Over how long actions are seen to change, and how long before the end of a stretch they may begin to part."""
FEWEST_PER_WAY = 4
"""Fewer occurrences of a way show not whether the present tells it."""


@dataclass(frozen=True)
class Search:
    """What is asked of a search. alarm: share of episodes without moments that show one by chance.

    share: of the episodes that a kind of moment occurs in, at least. rotations: random sets without groups for each
    tick.
    """

    alarm: float = 0.01
    share: float = 0.2
    rotations: int = 10
    seed: int = 0


class _Scan(NamedTuple):
    nearest: Neighbours
    scores: Floats
    towards: Floats


class Occurrence(NamedTuple):
    """A moment in an episode. tick: at which the ways part. way: taken there, `UNCLEAR` where it cannot be told.

    kind: of moment, from 0. stretch: over which those that look alike go on differently.
    """

    tick: int
    kind: int
    way: int
    stretch: Stretch


@dataclass(frozen=True)
class Kind:
    """Places that look alike and from which episodes go on differently.

    occurrences: each stretch, and the way taken there. before: ticks before a stretch's end at which the actions begin
    to part. passing: share of episodes that are on two ways one after the other without leaving: something done that
    leaves no trace, not a choice. visibility: how far the present shows which way it will be; None where there are too
    few of a way to tell.
    """

    occurrences: tuple[tuple[Stretch, int], ...]
    ways: Ways
    before: int
    passing: float
    visibility: Visibility | None

    def tick_in(self, stretch: Stretch) -> int:
        """At which the actions begin to part."""
        return max(stretch.last - self.before, min(stretch.first, stretch.last))

    @property
    def is_choice(self) -> bool:
        """Whether episodes choose a way, and do not do one thing and then the other."""
        return self.passing < MOST_PASSING

    @property
    def needs_memory(self) -> bool:
        """Whether a way is chosen that the present does not show."""
        return self.visibility is not None and self.visibility.right < TOLD and self.is_choice


@dataclass(frozen=True)
class Found:
    """What a search found. kinds: by how often they occur. threshold: of the score; maxima `(E,)`: of each episode."""

    search: Search
    space: Space
    library: Library
    ways: Sequence[Floats]
    threshold: float
    maxima: NDArray[np.float32]
    kinds: tuple[Kind, ...]
    dropped: int

    def in_episode(self, episode: Recorded) -> list[Occurrence]:
        """The moments of an episode that was not looked at, by what those that were did where they looked alike."""
        own, known = self.space.ways(episode)
        scan = _scan(self.library, self.ways, self.space.presents(episode), known & episode.readable, None)
        found = []
        for number, group in self._by_kind(-1, scan, episode).items():
            kind = self.kinds[number]
            told = kind.ways.of(own[[stretch.last for stretch in group]]).tolist()
            found += [
                Occurrence(kind.tick_in(stretch), number, way, stretch)
                for stretch, way in zip(group, told, strict=True)
            ]
        return sorted(found)

    def _by_kind(self, index: int, scan: _Scan, episode: Recorded) -> dict[int, list[Stretch]]:
        """Stretches of an episode by the kind that most of their nearest presents are of.

        Where a kind is known, less is asked of an episode than of the first that show it.
        """
        by_kind: dict[int, list[Stretch]] = {}
        for stretch in _stretches(index, scan, max(LEAST_SCORE, ONCE_KNOWN * self.threshold), episode):
            number = self._kind_at(scan.nearest, stretch, episode.period_ms)
            if number is not None:
                by_kind.setdefault(number, []).append(stretch)
        again = ticks_in(AGAIN_MS, episode.period_ms)
        return {number: merged(group, again) for number, group in by_kind.items()}

    def of_episode(self, index: int) -> list[Occurrence]:
        """The moments of one of the episodes that were looked at."""
        return sorted(
            Occurrence(kind.tick_in(stretch), number, way, stretch)
            for number, kind in enumerate(self.kinds)
            for stretch, way in kind.occurrences
            if stretch.episode == index
        )

    def _kind_at(self, nearest: Neighbours, stretch: Stretch, period_ms: int) -> int | None:
        """The kind that most of the nearest presents are of."""
        slack = ticks_in(SLACK_MS, period_ms)
        near = dict(zip(nearest.episodes[stretch.last].tolist(), nearest.ticks[stretch.last].tolist(), strict=True))
        votes = Counter(
            number
            for number, kind in enumerate(self.kinds)
            for other, _ in kind.occurrences
            if other.first - slack <= near.get(other.episode, -slack - 1) <= other.last + slack
            and alike(stretch, other)
        )
        return votes.most_common(1)[0][0] if votes else None


def find(
    episodes: Sequence[Recorded],
    least_state: NDArray[np.float64],
    least_action: NDArray[np.float64],
    search: Search | None = None,
) -> Found:
    """Compare every tick of every episode with the nearest present of all others.

    Raises ValueError for fewer than `FEWEST_EPISODES`, or where no action changes.
    """
    search = search or Search()
    if len(episodes) < FEWEST_EPISODES:
        raise ValueError(
            f"{len(episodes)} episodes: moments are found by comparing at least {FEWEST_EPISODES}; record more"
        )
    rng = np.random.default_rng(search.seed)
    space = Space.fit(episodes, least_state, least_action)
    presents = [space.presents(episode) for episode in episodes]
    ways = [space.ways(episode)[0] for episode in episodes]
    known = [space.ways(episode)[1] & episode.readable for episode in episodes]
    library = Library([np.where(part[:, None], seen, FAR) for part, seen in zip(known, presents, strict=True)])
    scans, chance = [], []
    for index, present in enumerate(presents):
        scans.append(_scan(library, ways, present, known[index], index))
        sets = _sets(ways, scans[-1].nearest)[known[index]]
        chance += [split(rotated(sets, rng)).score.max(initial=0.0) for _ in range(search.rotations)]
    threshold = max(float(np.quantile(chance, 1.0 - search.alarm)), LEAST_SCORE)
    found = [_stretches(i, scan, threshold, episodes[i]) for i, scan in enumerate(scans)]
    slack = ticks_in(SLACK_MS, episodes[0].period_ms)
    least = max(FEWEST_EPISODES // 2, search.share * len(episodes))
    grouped = kinds(found, [scan.nearest for scan in scans], slack)
    kept = [group for group in grouped if len({stretch.episode for stretch in group}) >= least]
    again = ticks_in(AGAIN_MS, episodes[0].period_ms)
    made = [
        kind for group in kept if (kind := _new_kind(merged(group, again), episodes, ways, search, rng)) is not None
    ]
    maxima = np.array([scan.scores.max() for scan in scans])
    first = Found(search, space, library, ways, threshold, maxima, tuple(made), len(grouped) - len(made))
    more = [first._by_kind(i, scan, episodes[i]) for i, scan in enumerate(scans)]
    made = [
        _kind(
            _joined(kind, [s for by_kind in more for s in by_kind.get(number, ())], ways),
            kind.ways,
            episodes,
            ways,
            rng,
        )
        for number, kind in enumerate(made)
    ]
    return replace(first, kinds=tuple(made))


def _joined(kind: Kind, more: Sequence[Stretch], ways: Sequence[Floats]) -> list[Stretch]:
    """The stretches of a kind with those of `more` that lie elsewhere and whose way is clear."""
    known = [stretch for stretch, _ in kind.occurrences]
    others = [
        stretch
        for stretch in more
        if not any(k.episode == stretch.episode and k.first <= stretch.last and stretch.first <= k.last for k in known)
        and kind.ways.of(ways[stretch.episode][stretch.last][None])[0] != UNCLEAR
    ]
    return sorted([*known, *others])


def _new_kind(
    group: Sequence[Stretch],
    episodes: Sequence[Recorded],
    ways: Sequence[Floats],
    search: Search,
    rng: np.random.Generator,
) -> Kind | None:
    """A kind of stretches that look alike; None where there is but one way on."""
    taken = np.stack([ways[stretch.episode][stretch.last] for stretch in group])
    found = ways_of(taken, LEAST_WAYS_SCORE, 5 * search.rotations, rng)
    return None if found is None else _kind(group, found, episodes, ways, rng)


def _kind(
    group: Sequence[Stretch],
    found: Ways,
    episodes: Sequence[Recorded],
    ways: Sequence[Floats],
    rng: np.random.Generator,
) -> Kind:
    """Stretches with the ways taken there, when the actions part, and whether the present tells which."""
    taken = np.stack([ways[stretch.episode][stretch.last] for stretch in group])
    told = found.of(taken)
    clear = told != UNCLEAR
    occurrences = tuple(zip(group, told.tolist(), strict=True))
    passing = float(np.mean([_passes(found, ways[s.episode][s.first : s.last + 1]) for s in group]))
    if min(np.bincount(told[clear], minlength=len(found))) < FEWEST_PER_WAY:
        return Kind(occurrences, found, 0, passing, None)
    members = [stretch for stretch, yes in zip(group, clear, strict=True) if yes]
    named = np.array([stretch.episode for stretch in members])
    kind = Kind(occurrences, found, _before(members, episodes, told[clear], named, rng), passing, None)
    seen = np.stack([_whole_present(episodes[s.episode], kind.tick_in(s)) for s in members])
    return replace(kind, visibility=visibility(seen, told[clear], named, rng))


def _passes(ways: Ways, on: Floats) -> bool:
    """Whether a stretch's ways on `(n, k)` are of more than one way."""
    told = ways.of(on)
    return len(set(told[told != UNCLEAR].tolist())) > 1


def _before(
    members: Sequence[Stretch],
    episodes: Sequence[Recorded],
    told: NDArray[np.intp],
    named: NDArray[np.intp],
    rng: np.random.Generator,
) -> int:
    """How many ticks before the ends of stretches the actions begin to part."""
    period_ms = episodes[0].period_ms
    ahead, reach = ticks_in(AHEAD_MS, period_ms), ticks_in(PARTING_MS, period_ms)
    step = ticks_in(100, period_ms)
    actions = {episode: episodes[episode].held_actions() for episode in set(named.tolist())}

    def change(before: int) -> Floats:
        ends = [(actions[s.episode], max(s.last - before, 0)) for s in members]
        return np.stack([of[min(tick + ahead, len(of) - 1)] - of[tick] for of, tick in ends])

    offsets = range(reach - reach % step, -1, -step)
    return offsets[parted([change(before) for before in offsets], told, named, rng)]


def _whole_present(episode: Recorded, tick: int) -> Floats:
    return np.concatenate([episode.seen(tick), episode.state[tick].astype(np.float32)])


def _scan(
    library: Library, ways: Sequence[Floats], presents: Floats, known: NDArray[np.bool_], left_out: int | None
) -> _Scan:
    nearest = library.nearest(presents, left_out)
    found = split(_sets(ways, nearest))
    scores = np.where(known & (mixed(found.labels) >= LEAST_MIXED), found.score, np.float32(0.0))
    return _Scan(nearest, scores, found.towards)


def _sets(ways: Sequence[Floats], nearest: Neighbours) -> Floats:
    """The ways on `(T, K, k)` of the nearest presents."""
    starts = np.cumsum([0, *(len(part) for part in ways)])
    return np.asarray(np.concatenate(ways)[starts[nearest.episodes] + nearest.ticks])


def _stretches(index: int, scan: _Scan, threshold: float, episode: Recorded) -> list[Stretch]:
    gap, least = (ticks_in(ms, episode.period_ms) for ms in (GAP_MS, LEAST_MS))
    return stretches(index, scan.scores, scan.towards, threshold, gap, least)
