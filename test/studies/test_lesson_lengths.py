"""Lessons are cut where a share of their ticks, or of what is still wrong with them, lies behind."""

from __future__ import annotations

import math

import numpy as np
import pytest

from studies.worlds.lengths import Lengths

TICKS = 40
WHOLE = np.ones((3, TICKS), dtype=bool)


def lengths_of(lengths: Lengths, draws: int = 400) -> list[int]:
    rng = np.random.default_rng(0)
    return [lengths.of_step(1, rng) for _ in range(draws)]


def paced(wrong_at: range) -> Lengths:
    """Lengths that were told, until they know it, that nothing is wrong but at these ticks."""
    lengths, losses = Lengths(TICKS, 4, paced=True), np.zeros((3, TICKS))
    losses[:, wrong_at] = 1.0
    for _ in range(200):
        lengths.tell(losses[WHOLE], WHOLE)
    return lengths


@pytest.mark.parametrize("is_paced", [False, True])
def test_every_other_step_teaches_whole_lessons(is_paced: bool) -> None:
    rng, lengths = np.random.default_rng(0), Lengths(TICKS, 4, is_paced)
    drawn = [lengths.of_step(step, rng) for step in range(200)]
    assert set(drawn[::2]) == {TICKS}
    assert len(set(drawn[1::2])) > 20


def test_short_cuts_are_as_often_as_long_ones_by_logarithm() -> None:
    drawn = lengths_of(Lengths(TICKS, 4, paced=False))
    assert min(drawn) == 4
    assert max(drawn) <= TICKS
    assert np.mean(np.array(drawn) < math.sqrt(4 * TICKS)) == pytest.approx(0.5, abs=0.06)


def test_paced_cuts_are_the_same_where_all_ticks_are_equally_wrong() -> None:
    even, known = lengths_of(Lengths(TICKS, 4, paced=False)), lengths_of(paced(range(TICKS)))
    assert np.abs(np.array(even) - known).max() <= 1


def test_paced_cuts_reach_into_what_is_wrong() -> None:
    drawn = lengths_of(paced(range(30, TICKS)))
    assert min(drawn) in (31, 32)
    assert max(drawn) == TICKS
    assert np.mean(np.array(drawn) < 34) > 0.4


def test_ticks_that_a_step_did_not_teach_stay_as_they_were() -> None:
    lengths, mask = Lengths(TICKS, 4, paced=True), np.zeros((2, 10), dtype=bool)
    mask[0, :6] = mask[1, :3] = True
    lengths.tell(np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 2.0, 2.0, 2.0]), mask)
    np.testing.assert_allclose(lengths.wrong[:6], [1.0, 1.0, 1.0, 0.9, 0.9, 0.9])
    assert (lengths.wrong[6:] == 1).all()


def test_lessons_shorter_than_the_shortest_cut_are_taught_whole() -> None:
    assert set(lengths_of(Lengths(3, 4, paced=False))) == {3}
