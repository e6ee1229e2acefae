"""Moments of made-up episodes: found where only the past tells, and nowhere else."""

from collections import Counter
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
from moments.made_up import COMMON, LEAST_ACTION, LEAST_STATE, PAUSE, cut, episode, wandering

from trace_memory_ros.moments import words
from trace_memory_ros.moments.find import Found, Search, find
from trace_memory_ros.moments.groups import UNCLEAR
from trace_memory_ros.moments.kinds import Occurrence
from trace_memory_ros.moments.recorded import Recorded, Space

EPISODES, NEAR = 40, 5


class Made(NamedTuple):
    """Episodes, where their branches begin, and the answers there."""

    episodes: list[Recorded]
    begins: list[list[int]]
    answers: list[list[int]]


def search(episodes: list[Recorded]) -> Found:
    return find(episodes, LEAST_STATE, LEAST_ACTION, Search(rotations=4))


def branched(ways: int = 2, moments: int = 1, back: bool = False, shows: bool = False, count: int = EPISODES) -> Made:
    """Episodes of so many moments each."""
    rng = np.random.default_rng(5)
    answers = np.stack([rng.permutation(np.arange(count) % ways) for _ in range(moments)], axis=1).tolist()
    made = [episode(seed, own, ways, back, shows) for seed, own in enumerate(answers)]
    return Made([recorded for recorded, _ in made], [begins for _, begins in made], answers)


def told(found: Found, index: int) -> list[Occurrence]:
    """The moments of an episode that need a memory and whose way is clear."""
    return [one for one in found.of_episode(index) if found.kinds[one.kind].needs_memory and one.way != UNCLEAR]


@pytest.mark.parametrize(
    ("ways", "moments", "back", "count"),
    [(2, 1, False, 40), (3, 1, False, 75), (2, 2, False, 40), (2, 3, True, 40)],
)
def test_hidden_branches_are_found_with_their_ways(ways: int, moments: int, back: bool, count: int) -> None:
    made = branched(ways, moments, back, count=count)
    found = search(made.episodes)
    pairs: Counter[tuple[tuple[int, int], int]] = Counter()
    extra = 0
    for index, (begins, answers) in enumerate(zip(made.begins, made.answers, strict=True)):
        ones = told(found, index)
        near = [[one for one in ones if abs(one.tick - begin) <= NEAR] for begin in begins]
        extra += len(ones) - sum(map(len, near))
        pairs.update(
            ((close[0].kind, close[0].way), answer) for close, answer in zip(near, answers, strict=True) if close
        )
    decisions = count * moments
    assert sum(pairs.values()) >= 0.9 * decisions and extra <= 0.05 * decisions
    assert len({answer for _, answer in pairs}) == ways
    assert all(len({a for other, a in pairs if other == way}) == 1 for way, _ in pairs), "each way is one answer"
    assert words.verdict(found).startswith("needs a memory")


def test_an_episode_that_was_not_looked_at_is_told_by_those_that_were() -> None:
    made = branched()
    found = search(made.episodes[4:])
    way_of = {made.answers[4 + i][0]: one.way for i in range(4) for one in told(found, i)}
    seen = [found.in_episode(recorded) for recorded in made.episodes[:4]]
    assert sum(map(len, seen)) >= 3
    for ones, begins, answers in zip(seen, made.begins[:4], made.answers[:4], strict=True):
        assert all(abs(one.tick - begins[0]) <= NEAR and one.way == way_of[answers[0]] for one in ones)


def test_a_moment_with_a_way_that_is_nowhere_clear_is_shown_and_not_judged() -> None:
    found = search(branched().episodes)
    (kind,) = [kind for kind in found.kinds if kind.needs_memory]
    first = tuple(one for one in kind.occurrences if one.way == 0)
    found = replace(found, kinds=(replace(kind, occurrences=first, visibility=None),))
    names = words.way_names(found, found.kinds[0], ["arm", "hand"])
    assert names[0].startswith("A: ") and names[1] == "B: nowhere clear"
    assert words.counts(found.kinds[0]) == [len(first), 0]
    assert words.verdict(found).startswith("cannot be told: at 1 moment the ways part")


def test_an_answer_that_stays_visible_needs_no_memory() -> None:
    found = search(branched(shows=True).episodes)
    assert found.kinds and not any(kind.needs_memory for kind in found.kinds)
    assert "needs none" in words.verdict(found) and "the present shows" in words.verdict(found)
    # What is no choice is not said to be seen.
    said = words.verdict(replace(found, kinds=tuple(replace(kind, passing=0.5) for kind in found.kinds)))
    assert "the present shows" not in said and f"at {len(found.kinds)} one thing is done and then the other" in said


@pytest.mark.parametrize("ticks", [slice(0, COMMON - 8), slice(COMMON + PAUSE + 20, None)])
def test_episodes_without_the_branch_need_no_memory(ticks: slice) -> None:
    assert not any(kind.needs_memory for kind in search([cut(one, ticks) for one in branched().episodes]).kinds)


def test_sets_of_episodes_without_moments_seldom_show_one() -> None:
    sets = [search([wandering(100 * number + seed) for seed in range(24)]) for number in range(8)]
    assert sum(any(kind.needs_memory for kind in found.kinds) for found in sets) == 0


def test_what_cannot_be_compared_is_named() -> None:
    episodes = branched().episodes
    with pytest.raises(ValueError, match="7 episodes: moments are found by comparing at least 8; record more"):
        search(episodes[:7])
    still = [Recorded(e.name, 100, e.pictures, e.state, np.zeros_like(e.actions), e.usable) for e in episodes]
    with pytest.raises(ValueError, match="no action ever changes.*command topics"):
        search(still)
    with pytest.raises(ValueError, match="no tick has a whole observation and an action"):
        Recorded("blind", 100, episodes[0].pictures, episodes[0].state, episodes[0].actions, np.zeros(1, dtype=bool))


def test_presents_beside_a_gap_are_what_they_are_without_it() -> None:
    """Neither a state nor a picture that is not there may be taken for zeros."""
    whole = branched().episodes
    gaps = [replace(e, **{name: getattr(e, name).copy() for name in ("pictures", "state", "usable")}) for e in whole]
    for one in gaps:
        one.usable[12:15], one.state[12:15], one.pictures[12:15] = False, np.nan, 1e3
    wanted, found = (Space.fit(episodes, LEAST_STATE, LEAST_ACTION) for episodes in (whole, gaps))
    assert abs(found.axes).sum() == pytest.approx(abs(wanted.axes).sum(), rel=0.2)
    for full, one in zip(whole, gaps, strict=True):
        beside = wanted.presents(one)[one.usable]
        assert np.abs(beside - wanted.presents(full)[one.usable]).max() < 0.5  # 1.6 by zeros


def test_ticks_without_action_or_observation_are_no_moments() -> None:
    episodes = branched().episodes
    for one in episodes[:3]:
        one.actions[5:9] = np.nan
        one.usable[12:15] = False
        one.pictures[12:15] = 0.0
    found = search(episodes)
    assert any(kind.needs_memory for kind in found.kinds)
    assert all(
        episodes[i].readable[one.stretch.last]
        for kind in found.kinds
        for one in kind.occurrences
        for i in [one.stretch.episode]
    )
