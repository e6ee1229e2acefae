"""The measures of TRACE A.6 and A.7 on routes small enough to reckon by hand."""

import numpy as np
import pytest

from trace_memory_ros.evidence import diagnostics

LEFT, RIGHT, BOTH, NO = [1.0, 0.0], [0.0, 1.0], [0.5, 0.5], [0.0, 0.0]


def test_route_similarity_is_the_mean_cosine_of_rows() -> None:
    one = np.array([LEFT, LEFT, LEFT])
    other = np.array([LEFT, RIGHT, BOTH])
    assert diagnostics.route_similarity(one, other) == pytest.approx(100 * (1 + 0 + np.sqrt(0.5)) / 3)
    assert diagnostics.route_similarity(other, other) == pytest.approx(100, abs=1e-12)


def test_a_tick_has_the_route_of_its_newest_write() -> None:
    routes = np.array([LEFT, RIGHT, BOTH])
    writes = np.array([0, 3, 7])
    found = diagnostics.routes_at(np.array([0, 2, 3, 6, 7, 20]), writes, routes)
    assert found.tolist() == [LEFT, LEFT, RIGHT, RIGHT, BOTH, BOTH]


def test_before_the_first_write_a_tick_has_no_route() -> None:
    found = diagnostics.routes_at(np.array([0, 1, 5]), np.array([2]), np.array([LEFT]))
    assert found.tolist() == [[0.0, 0.0], [0.0, 0.0], LEFT]
    assert diagnostics.routes_at(np.array([0, 9]), np.array([], dtype=np.int64), np.zeros((0, 2))).tolist() == [NO, NO]


def test_an_empty_memory_has_nothing_in_common_with_a_written_one_and_two_empty_ones_are_not_compared() -> None:
    one, other = np.array([NO, NO, LEFT]), np.array([NO, RIGHT, LEFT])
    assert diagnostics.route_similarity(one, other) == 50.0
    assert diagnostics.route_similarity(one[:1], other[:1]) is None
    assert diagnostics.chance_similarity(np.array([NO, LEFT, RIGHT])) == pytest.approx(50.0)
    assert diagnostics.chance_similarity(np.array([NO])) is None


@pytest.mark.parametrize(
    ("cosine", "same", "expected"),
    [(1.0, True, 100.0), (1.0, False, 50.0), (0.0, False, 25.0), (0.0, True, 75.0), (-1.0, False, 0.0)],
)
def test_branch_consistency_is_half_readout_half_decision(cosine: float, same: bool, expected: float) -> None:
    assert diagnostics.branch_consistency(cosine, same) == expected


def test_cosine_of_a_zero_vector_is_unknown() -> None:
    assert diagnostics.cosine(np.array([3.0, 4.0]), np.array([4.0, 3.0])) == pytest.approx(24 / 25)
    assert diagnostics.cosine(np.zeros(2), np.array([1.0, 0.0])) is None


def test_churn_entropy_and_occupancy() -> None:
    routes = np.array([[0.7, 0.2, 0.1, 0.0], [0.6, 0.4, 0.0, 0.0], [0.0, 1.0, 0.0, 0.0], [1.0, 0.0, 0.0, 0.0]])
    assert diagnostics.churn(routes) == pytest.approx(2 / 3)
    assert diagnostics.churn_per_tick(routes, 21) == pytest.approx(2 / 20)
    assert diagnostics.occupancy(routes) == 0.5
    by_hand = [-sum(p * np.log(p) for p in row if p) for row in routes.tolist()]
    assert diagnostics.write_entropy(routes) == pytest.approx(np.mean(by_hand) / np.log(4))
    assert diagnostics.write_entropy(np.full((3, 4), 0.25)) == pytest.approx(1)


@pytest.mark.parametrize("routes", [np.zeros((0, 4)), np.zeros((3, 0))])
def test_what_cannot_be_told_is_none(routes: np.ndarray) -> None:
    assert diagnostics.churn(routes) is None
    assert diagnostics.churn_per_tick(routes, 9) is None
    assert diagnostics.write_entropy(routes) is None
    assert diagnostics.occupancy(routes) is None


def test_moved_counts_the_ticks_that_are_not_there_any_more() -> None:
    assert diagnostics.moved(np.array([0, 4, 9]), np.array([0, 5, 9, 12])) == pytest.approx(1 / 3)
    assert diagnostics.moved(np.array([], dtype=np.int64), np.array([1])) == 0
