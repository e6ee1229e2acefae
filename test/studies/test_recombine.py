"""Splicing twins into sequences nobody demonstrated."""

from dataclasses import replace

import numpy as np
import pytest

from studies.memory_sequence.recombine import Twins, recombine
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.observation.frames import of_stack, stacked

SHOWS = ((2, 5), (7, 9), (11, 13), (15, 18))


def twins(cues: int = 2, overwritten: bool = True) -> Twins:
    """Twins of 20 shared ticks; a lit pixel, a visit's state and its actions tell whose they are."""
    shows = SHOWS[: cues * (1 + overwritten)]
    both = []
    for which in (0, 1):
        decisions = tuple(20 + k * (5 + which) for k in range(cues))
        ticks = decisions[-1] + 5 + which
        images = np.zeros((ticks, 1, 4, 4, 3), np.uint8)
        for begin, end in shows:
            images[begin:end] = 1 + which
        state = np.repeat(np.arange(ticks, dtype=float)[:, None], 17, axis=1)
        state[20:] += 100 * (1 + which)
        actions = state[:, :16].astype(np.float32)
        answers = tuple((which + k) % 2 for k in range(cues))
        shown = np.arange(ticks) < 19
        both.append(
            Demonstration(
                f"3 {which}",
                "3",
                np.arange(len(state)),
                of_stack(("eye",), images),
                state,
                actions,
                decisions,
                answers,
                shown=shown,
            )
        )
    return both[0], both[1]


@pytest.mark.parametrize("overwritten", [False, True])
def test_each_show_and_visit_is_one_twins_and_the_newest_cues_are_answered(overwritten: bool) -> None:
    source = twins(2, overwritten)
    orders = set()
    for seed in range(60):
        pair = recombine(source, np.random.default_rng(seed))
        assert all(a != b for a, b in zip(pair[0].answers, pair[1].answers, strict=True))
        for demo in pair:
            lit = [int(demo.images["eye"][begin][0, 0, 0]) - 1 for begin, _ in SHOWS[: 2 * (1 + overwritten)]]
            assert demo.answers == tuple((which + k) % 2 for k, which in enumerate(lit[-2:]))
            visited = [int(demo.state[tick, 0]) // 100 - 1 for tick in demo.decision_ticks]
            assert visited == lit[-2:]
            assert demo.decision_ticks == (20, 25 + visited[0])
            assert demo.ticks == len(demo.images["eye"]) == len(demo.state) == 30 + sum(visited)
            assert np.array_equal(demo.actions, demo.state[:, :16].astype(np.float32))
            assert demo.shown is not None
            assert demo.shown.sum() == 19
            orders.add(tuple(lit))
    assert len(orders) == 2 ** (2 * (1 + overwritten))


def test_sources_stay_as_they_are() -> None:
    source = twins()
    before = [stacked(demo.images, slice(None)) for demo in source]
    recombine(source, np.random.default_rng(0))
    assert all(
        np.array_equal(stacked(demo.images, slice(None)), kept) for demo, kept in zip(source, before, strict=True)
    )


def test_twins_that_differ_otherwise_are_refused() -> None:
    one, other = twins()
    with pytest.raises(ValueError, match="the twins' paths differ before the first decision"):
        recombine((one, replace(other, state=other.state + 1.0)), np.random.default_rng(0))
    with pytest.raises(ValueError, match="0 shows for 2 decisions"):
        recombine((one, replace(other, images=one.images)), np.random.default_rng(0))
