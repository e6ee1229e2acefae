"""Moments of made-up episodes: found where only the past tells, and nowhere else."""

from collections import Counter

import numpy as np
import pytest
from moments.made_up import COMMON, LEAST_ACTION, LEAST_STATE, PAUSE, cut, episode

from trace_memory_ros.moments import words
from trace_memory_ros.moments.find import Found, Search, find
from trace_memory_ros.moments.groups import UNCLEAR
from trace_memory_ros.moments.kinds import Occurrence
from trace_memory_ros.moments.recorded import Recorded

EPISODES = 32


def search(episodes: list[Recorded]) -> Found:
    return find(episodes, LEAST_STATE, LEAST_ACTION, Search(rotations=4))


def branched(ways: int, shows: bool = False) -> tuple[list[Recorded], list[int], list[int]]:
    """Episodes of one branch, where it begins, and the answers."""
    answers = [int(a) for a in np.random.default_rng(5).permutation(np.arange(EPISODES) % ways)]
    made = [episode(seed, answer, shows) for seed, answer in enumerate(answers)]
    return [recorded for recorded, _ in made], [begin for _, begin in made], answers


@pytest.mark.parametrize(("ways", "near"), [(2, 8), (3, 15)])
def test_a_hidden_branch_is_found_in_every_episode_with_its_ways(ways: int, near: int) -> None:
    episodes, begins, answers = branched(ways)
    found = search(episodes)
    needed = [kind for kind in found.kinds if kind.needs_memory]
    assert len(needed) == 1 and len(needed[0].ways) == ways
    number = found.kinds.index(needed[0])
    told = [[one for one in found.of_episode(i) if one.kind == number] for i in range(EPISODES)]
    assert max(len(ones) for ones in told) == 1
    assert sum(abs(ones[0].tick - begin) <= near for ones, begin in zip(told, begins, strict=True) if ones) >= 20
    assert (
        len(Counter((ones[0].way, answer) for ones, answer in zip(told, answers, strict=True) if clear(ones))) == ways
    )
    assert words.verdict(found) == "needs a memory: 1 moment"


def clear(ones: list[Occurrence]) -> bool:
    """Whether there is a moment whose way is told."""
    return bool(ones) and ones[0].way != UNCLEAR


def test_an_episode_that_was_not_looked_at_is_told_by_those_that_were() -> None:
    episodes, begins, answers = branched(2)
    found = search(episodes[4:])
    way_of = {answers[4 + i]: one.way for i in range(4) for one in found.of_episode(i)}
    told = [found.in_episode(recorded) for recorded in episodes[:4]]
    assert sum(map(len, told)) >= 3
    for ones, begin, answer in zip(told, begins[:4], answers[:4], strict=True):
        assert all(abs(one.tick - begin) <= 12 and one.way == way_of[answer] for one in ones)


def test_an_answer_that_stays_visible_needs_no_memory() -> None:
    found = search(branched(2, shows=True)[0])
    assert found.kinds and not any(kind.needs_memory for kind in found.kinds)
    assert "needs none" in words.verdict(found) and "the present shows" in words.verdict(found)


@pytest.mark.parametrize("ticks", [slice(0, COMMON - 8), slice(COMMON + PAUSE + 20, None)])
def test_episodes_without_the_branch_need_no_memory(ticks: slice) -> None:
    assert not any(kind.needs_memory for kind in search([cut(one, ticks) for one in branched(2)[0]]).kinds)


def test_what_cannot_be_compared_is_named() -> None:
    episodes = branched(2)[0]
    with pytest.raises(ValueError, match="7 episodes: moments are found by comparing at least 8; record more"):
        search(episodes[:7])
    still = [Recorded(e.name, 100, e.pictures, e.state, np.zeros_like(e.actions), e.usable) for e in episodes]
    with pytest.raises(ValueError, match="no action ever changes.*command topics"):
        search(still)
    with pytest.raises(ValueError, match="no tick has a whole observation and an action"):
        Recorded("blind", 100, episodes[0].pictures, episodes[0].state, episodes[0].actions, np.zeros(1, dtype=bool))


def test_ticks_without_action_or_observation_are_no_moments() -> None:
    episodes = branched(2)[0]
    for one in episodes[:3]:
        one.actions[5:9] = np.nan
        one.usable[12:15] = False
        one.pictures[12:15] = 0.0
    found = search(episodes)
    assert any(kind.needs_memory for kind in found.kinds)
    assert all(episodes[i].readable[one.stretch.last] for kind in found.kinds for one in kind.occurrences for i in [one.stretch.episode])
