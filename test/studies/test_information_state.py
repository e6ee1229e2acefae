"""AIS readouts on closed-form cases, and on the figures that AURA-Mem's paper gives."""

from __future__ import annotations

import numpy as np
import pytest

from studies.recall.information_state import (
    Spread,
    delta,
    epsilon,
    total_variation,
    trivial_span,
    value_constant,
    value_loss,
    value_loss_bound,
    value_residual,
    wasserstein,
)

P = np.array([[1.0, 0.0, 0.0], [0.5, 0.5, 0.0]])
Q = np.array([[0.0, 0.0, 1.0], [0.5, 0.25, 0.25]])


def test_distances_on_cases_worked_out_by_hand() -> None:
    np.testing.assert_allclose(total_variation(P, Q), [1.0, 0.25])
    np.testing.assert_allclose(wasserstein(P, Q), [2.0, 0.25])
    np.testing.assert_allclose(wasserstein(P, Q, np.array([0.0, 0.5, 4.0])), [4.0, 0.25 * 3.5])
    np.testing.assert_allclose(total_variation(P, P), 0.0)


def test_a_perfect_memory_has_no_epsilon_and_a_memory_that_foretells_nothing_has_one_minus_chance() -> None:
    oracle = np.eye(4)[np.arange(100) % 4]
    assert epsilon(oracle, oracle) == Spread(0.0, 0.0, 0.0)
    uniform = np.full((100, 4), 0.25)
    assert epsilon(uniform, oracle) == Spread(0.75, 0.75, 0.75)
    assert delta(uniform, oracle, "w1").largest == pytest.approx((1 + 2 + 3) / 4)


def test_value_terms() -> None:
    assert value_constant(np.array([-1.0, 0.0, 3.0])) == 2.0
    residual = value_residual(np.array([1.0, 2.0]), np.array([1.0, 4.0]))
    assert (residual.mean, residual.largest) == (1.0, 2.0)
    assert value_loss_bound(0.0, 0.0, 0.9) == 0.0
    assert value_loss_bound(0.1, 1.0, 0.5) == pytest.approx(2.4)
    assert trivial_span(-1.0, 1.0, 0.9) == pytest.approx(20.0)


def test_the_published_bounds_are_vacuous() -> None:
    """Table figures of section 6.6 at discount 0.9: 52.69 and 69.53 against a span of 10."""
    found = value_loss(Spread(0.0021, 0.0076, 0.0), Spread(0.5838, 0.0, 0.0), Spread(0.661, 3.854, 0.0), 0.9)
    assert found.by_constant == pytest.approx(52.69, abs=0.01)
    assert found.by_residual == pytest.approx(69.53, abs=0.01)
    assert found.trivial == pytest.approx(10.0)
    assert found.vacuous
    # Remark 4.4 wants Delta* <= L_V delta, so the published pair cannot both be what the theorem means by them.
    assert 3.854 > 5.0 * 0.5838
    assert not value_loss(Spread(0, 0, 0), Spread(0.01, 0, 0), Spread(0, 0, 0), 0.9).vacuous


def test_what_is_no_distribution_is_refused() -> None:
    with pytest.raises(ValueError, match="with sum 1"):
        epsilon(P * 2, Q)
    with pytest.raises(ValueError, match=r"\(2, 3\) and \(1, 3\)"):
        epsilon(P, Q[:1])
    with pytest.raises(ValueError, match="at least one query step"):
        epsilon(P[:0], Q[:0])
    with pytest.raises(ValueError, match="'kl' is unknown"):
        delta(P, Q, "kl")
    with pytest.raises(ValueError, match="must ascend"):
        wasserstein(P, Q, np.array([2.0, 1.0, 0.0]))
    with pytest.raises(ValueError, match="discount 1"):
        trivial_span(0, 1, 1.0)
