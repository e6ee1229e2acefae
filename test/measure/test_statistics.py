"""Intervals and percentiles against closed forms, tables and their own meaning (coverage)."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trace_memory_ros.measure.statistics import (
    bootstrap_interval,
    percentiles,
    sign_test,
    t_interval,
    wilson_interval,
)

Z = 1.959963984540054


@pytest.mark.parametrize(
    ("successes", "trials", "low", "high"),
    [(20, 20, 0.83887, 1.0), (0, 10, 0.0, 0.27753), (10, 20, 0.29930, 0.70070), (1, 4, 0.04559, 0.69936)],
)
def test_wilson_against_published_values(successes: int, trials: int, low: float, high: float) -> None:
    assert wilson_interval(successes, trials) == pytest.approx((low, high), abs=2e-5)


@pytest.mark.parametrize(("successes", "trials"), [(3, 17), (11, 12), (250, 1000)])
def test_wilson_ends_solve_its_defining_equation(successes: int, trials: int) -> None:
    share = successes / trials
    for end in wilson_interval(successes, trials):
        assert abs(share - end) == pytest.approx(Z * math.sqrt(end * (1 - end) / trials), rel=1e-9)


def test_wilson_at_the_ends_has_closed_form_and_mirrors() -> None:
    for trials in (1, 4, 20, 500):
        assert wilson_interval(trials, trials) == pytest.approx((trials / (trials + Z * Z), 1.0), rel=1e-12)
        low, high = wilson_interval(0, trials)
        assert (1 - high, 1 - low) == pytest.approx(wilson_interval(trials, trials), rel=1e-12)


def test_wilson_covers_the_truth_as_often_as_it_says() -> None:
    draws = np.random.default_rng(1).binomial(20, 0.6, 4000)
    intervals = {k: wilson_interval(int(k), 20) for k in np.unique(draws)}
    covered = np.mean([intervals[k].low <= 0.6 <= intervals[k].high for k in draws])
    assert 0.93 <= covered <= 0.985


def test_bootstrap_of_a_mean_meets_the_normal_interval() -> None:
    values = np.random.default_rng(2).normal(5.0, 2.0, 2000)
    half = Z * values.std() / math.sqrt(values.size)
    low, high = bootstrap_interval(values)
    assert (low, high) == pytest.approx((values.mean() - half, values.mean() + half), abs=0.12 * half)


def test_bootstrap_is_seeded_scales_and_shifts_with_the_values() -> None:
    values = np.random.default_rng(3).exponential(1.0, 50)
    first = bootstrap_interval(values, seed=4)
    assert first == bootstrap_interval(values, seed=4)
    assert first != bootstrap_interval(values, seed=5)
    assert bootstrap_interval(2 * values + 1, seed=4) == pytest.approx((2 * first.low + 1, 2 * first.high + 1))


def test_bootstrap_of_another_statistic_and_of_equal_values() -> None:
    values = np.arange(101.0)
    low, high = bootstrap_interval(values, lambda rows: np.median(rows, axis=1))
    assert low < 50 < high
    assert bootstrap_interval([3.0, 3.0, 3.0]) == (3.0, 3.0)


def test_bootstrap_in_chunks_draws_as_many_resamples(monkeypatch: pytest.MonkeyPatch) -> None:
    seen: list[int] = []
    monkeypatch.setattr("trace_memory_ros.measure.statistics._CHUNK_NUMBERS", 70)

    def count(rows: np.ndarray) -> np.ndarray:
        seen.append(len(rows))
        return rows.mean(axis=1)

    bootstrap_interval(np.arange(10.0), count, resamples=50)
    assert sum(seen) == 50
    assert max(seen) == 7


def test_percentiles_interpolate_linearly() -> None:
    assert percentiles(range(101), (0, 50, 99, 100)) == (0.0, 50.0, 99.0, 100.0)
    assert percentiles([4.0, 1.0], (25,)) == (1.75,)


@pytest.mark.parametrize(
    ("call", "named"),
    [
        (lambda: wilson_interval(5, 4), "5 successes in 4 trials"),
        (lambda: wilson_interval(0, 0), "0 successes in 0 trials"),
        (lambda: wilson_interval(1, 2, 1.0), "confidence = 1.0"),
        (lambda: bootstrap_interval([]), r"shape \(0,\)"),
        (lambda: bootstrap_interval([1.0, math.nan]), "1 numbers that are not finite"),
        (lambda: bootstrap_interval([1.0], resamples=0), "resamples = 0"),
        (lambda: percentiles([1.0], (101,)), "percentile 101"),
    ],
)
def test_bad_input_is_named(call, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        call()


def test_t_interval_against_a_worked_example() -> None:
    # Mean 5, standard deviation 1, n = 3: 5 +- 4.303 / sqrt(3).
    assert t_interval([4.0, 5.0, 6.0]) == pytest.approx((5 - 2.4843, 5 + 2.4843), abs=1e-3)
    assert t_interval([2.0, 2.0]) == (2.0, 2.0)


@pytest.mark.parametrize(
    ("n", "quantile"), [(2, 12.7062), (3, 4.30265), (5, 2.77645), (11, 2.22814), (31, 2.04227), (1001, 1.96234)]
)
def test_t_interval_has_the_published_quantiles(n: int, quantile: float) -> None:
    values = np.zeros(n)
    values[0] = 1.0
    interval = t_interval(values)
    half = quantile * values.std(ddof=1) / math.sqrt(n)
    assert interval == pytest.approx((1 / n - half, 1 / n + half), rel=1e-5)


def test_t_interval_covers_the_truth_as_often_as_it_says() -> None:
    draws = np.random.default_rng(0).normal(3.0, 2.0, (4000, 4))
    covered = [low <= 3.0 <= high for low, high in map(t_interval, draws)]
    assert np.mean(covered) == pytest.approx(0.95, abs=0.012)


def test_one_value_has_no_t_interval() -> None:
    with pytest.raises(ValueError, match="more seeds"):
        t_interval([1.0])


def test_uneven_counts_are_as_rare_as_by_hand_and_mirror() -> None:
    """2 of 2^5 rows of 5 tosses are all alike, 10 more differ in one."""
    assert (sign_test(5, 0), sign_test(4, 1), sign_test(3, 2), sign_test(0, 0)) == (2 / 32, 12 / 32, 1.0, 1.0)
    assert sign_test(2, 9) == sign_test(9, 2)
