"""The moments of a set of episodes, and the same moments in episodes that were not among them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError, require_int
from trace_memory_ros.moments.groups import UNCLEAR
from trace_memory_ros.moments.kinds import Compared, Kind, Occurrence, joined, judged, kind_of
from trace_memory_ros.moments.nearest import Library
from trace_memory_ros.moments.occurrences import SLACK_MS, Stretch, alike, merged, places
from trace_memory_ros.moments.recorded import Floats, Recorded, Space
from trace_memory_ros.moments.scan import Scan, chance, scan, sets_of
from trace_memory_ros.observation.periods import ticks_in

FEWEST_EPISODES = 8
"""Fewer episodes cannot be compared."""
LEAST_SCORE = 4.0
"""Groups nearer to one another, in spreads within, are no ways to go on."""
FAR = np.float32(1e4)
"""Where a present lies from which nothing is known to be done: never the nearest."""
ONCE_KNOWN = 0.6
"""Share of the threshold that is asked of an episode for a kind of moment that is known."""
EVERY_MS = 200
"""Ticks nearer to one another have nearly the same neighbours: sets without groups are made for one of them."""


@dataclass(frozen=True)
class Search:
    """What is asked of a search. alarm: share of episodes that pass the threshold when their look-alikes are
    rotated at random, which leaves no groups.

    share: of the episodes that a kind of moment occurs in, at least. rotations: random sets without groups for each
    tick. Raises ConfigError.
    """

    alarm: float = 0.01
    share: float = 0.2
    rotations: int = 10
    seed: int = 0

    def __post_init__(self) -> None:
        for name in ("alarm", "share"):
            value = getattr(self, name)
            if not 0.0 <= value <= 1.0:
                raise ConfigError(f"{name} = {value}: must be a share, 0 to 1")
        require_int(self.rotations, "rotations", 1)
        require_int(self.seed, "seed", 0)


@dataclass(frozen=True)
class Found:
    """What a search found. kinds: by how often they occur. threshold: of the score; maxima `(E,)`: of each episode.

    ways: on from each tick of each episode. dropped: places where ways part that are no kind.
    """

    search: Search
    space: Space
    library: Library
    ways: Sequence[Floats]
    threshold: float
    maxima: NDArray[np.float32]
    kinds: tuple[Kind, ...]
    dropped: int

    def of_episode(self, index: int) -> list[Occurrence]:
        """The moments of one of the episodes that were looked at."""
        return sorted(one for kind in self.kinds for one in kind.occurrences if one.stretch.episode == index)

    def in_episode(self, episode: Recorded) -> list[Occurrence]:
        """The moments of an episode that was not looked at, by what those that were did where they looked alike."""
        own, known = self.space.ways(episode)
        seen = scan(self.library, self.ways, self.space.presents(episode), known & episode.readable, None)
        actions = self.space.actions(episode)
        found = []
        for number, group in self.by_kind(-1, seen, episode, actions).items():
            kind, peaks = self.kinds[number], [stretch.peak for stretch in group]
            told = kind.ways.of(own[peaks] - seen.middle[peaks]).tolist()
            for stretch, way in zip(group, told, strict=True):
                found.append(kind.timed(Occurrence(stretch.last, number, way, stretch), actions, seen))
        return sorted(one for one in found if one is not None)

    def by_kind(self, index: int, seen: Scan, episode: Recorded, actions: Floats) -> dict[int, list[Stretch]]:
        """Stretches of an episode by the kind that most of their nearest presents are of.

        Where a kind is known, less is asked of an episode than of the first that show it.
        """
        found: dict[int, list[Stretch]] = {}
        for stretch in seen.stretches(index, max(LEAST_SCORE, ONCE_KNOWN * self.threshold), episode):
            number = self._kind_at(seen, stretch, episode.period_ms)
            if number is not None:
                found.setdefault(number, []).append(stretch)
        return {number: merged(group, {index: actions}) for number, group in found.items()}

    def _kind_at(self, seen: Scan, stretch: Stretch, period_ms: int) -> int | None:
        """The kind that most of the nearest presents are of."""
        slack, nearest = ticks_in(SLACK_MS, period_ms), seen.nearest
        near = dict(zip(nearest.episodes[stretch.last].tolist(), nearest.ticks[stretch.last].tolist(), strict=True))
        votes = Counter(
            number
            for number, kind in enumerate(self.kinds)
            for other in (one.stretch for one in kind.occurrences)
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
    ways, clear = zip(*(space.ways(episode) for episode in episodes), strict=True)
    known = [part & episode.readable for part, episode in zip(clear, episodes, strict=True)]
    library = Library([np.where(part[:, None], seen, FAR) for part, seen in zip(known, presents, strict=True)])
    stride = ticks_in(EVERY_MS, episodes[0].period_ms)
    scans, scores = [], []
    for index, present in enumerate(presents):
        scans.append(scan(library, ways, present, known[index], index))
        scores += chance(sets_of(ways, scans[-1].nearest)[known[index]][::stride], search.rotations, rng)
    threshold = max(float(np.quantile(scores, 1.0 - search.alarm)), LEAST_SCORE)
    compared = Compared(episodes, scans, ways, [space.actions(episode) for episode in episodes])
    groups = _places(compared, threshold)
    kinds = _kinds(groups, compared, search, rng)
    maxima = np.array([seen.scores.max() for seen in scans])
    first = Found(search, space, library, ways, threshold, maxima, tuple(kinds), len(groups) - len(kinds))
    more = [first.by_kind(i, seen, episodes[i], compared.actions[i]) for i, seen in enumerate(scans)]
    made = [
        judged(
            _with(kind, [s for found in more for s in found.get(number, ())], compared),
            kind.ways,
            compared,
            rng,
            number,
        )
        for number, kind in enumerate(kinds)
    ]
    return replace(first, kinds=tuple(made))


def _places(compared: Compared, threshold: float) -> list[list[Stretch]]:
    """Where episodes part, by place."""
    found = [seen.stretches(i, threshold, compared.episodes[i]) for i, seen in enumerate(compared.scans)]
    slack = ticks_in(SLACK_MS, compared.episodes[0].period_ms)
    grouped = places(found, [seen.nearest for seen in compared.scans], slack)
    return [merged(group, compared.actions) for group in grouped]


def _kinds(
    groups: Sequence[Sequence[Stretch]], compared: Compared, search: Search, rng: np.random.Generator
) -> list[Kind]:
    """Places with several ways on; those where the same ways are taken as one kind, in enough episodes."""
    made = [
        kind
        for group in groups
        if len({stretch.episode for stretch in group}) >= FEWEST_EPISODES // 2
        and (kind := kind_of(group, compared, 5 * search.rotations, rng)) is not None
    ]
    least = max(FEWEST_EPISODES // 2, search.share * len(compared.episodes))
    return [kind for kind in joined(made, compared, rng) if kind.episodes >= least]


def _with(kind: Kind, more: Sequence[Stretch], compared: Compared) -> list[Stretch]:
    """The stretches of a kind with those of `more` that lie elsewhere and whose way is clear."""
    known = [one.stretch for one in kind.occurrences]
    others = [
        stretch
        for stretch in more
        if not any(k.episode == stretch.episode and k.first <= stretch.last and stretch.first <= k.last for k in known)
        and kind.ways.of(compared.relative([stretch]))[0] != UNCLEAR
    ]
    return sorted([*known, *others])
