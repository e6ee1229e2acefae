"""Transforms keep what they promise of the path: its curve, its ends, its ticks; the negative control keeps neither."""

import numpy as np
import pytest
from evidence.recorded_examples import walk

from trace_memory_ros.evidence.history import transforms as ht
from trace_memory_ros.signature.naive import flatten, signature

ROOM = np.ones(17)


def joined(path: ht.Path) -> np.ndarray:
    return np.concatenate(path)


def deep(path: np.ndarray) -> np.ndarray:
    return flatten(signature(path[:, 3:6], 3))


def made(name: str, states: np.ndarray, seed: int = 0) -> ht.Path:
    return ht.transforms(100)[name](states, ROOM, np.random.default_rng(seed))


def test_samples_are_appended_at_the_first_tick_that_has_seen_them() -> None:
    states = np.array([[0.0], [1.0], [3.0], [4.0]])
    path = ht.sampled(states, np.array([0.5, 1.5, 1.75]))
    assert [points.ravel().tolist() for points in path] == [[0.0], [0.5], [2.0, 2.5], [4.0]]


def test_a_tick_without_a_sample_stands_at_the_newest() -> None:
    path = ht.sampled(np.arange(5.0)[:, None], np.array([2.0]))
    assert [points.ravel().tolist() for points in path] == [[0.0], [0.0], [2.0], [2.0], [4.0]]


def test_one_tick_is_a_path_too() -> None:
    assert [points.tolist() for points in ht.sampled(np.array([[7.0]]), np.array([0.0, 0.5]))] == [[[7.0]]]


@pytest.mark.parametrize("name", ht.transforms(100))
def test_every_tick_has_points_and_the_branch_stands_where_it_stood(name: str) -> None:
    states = walk(31)
    path = made(name, states)
    assert len(path) == 31
    assert min(len(points) for points in path) >= 1
    displaced = joined(path)[-1] - states[-1]
    assert name == "state_offset" or not displaced.any()


@pytest.mark.parametrize("name", ht.transforms(100))
def test_the_same_seed_draws_the_same_path(name: str) -> None:
    states = walk(31)
    np.testing.assert_array_equal(joined(made(name, states)), joined(made(name, states)))


@pytest.mark.parametrize("name", ["time_resampling", "speed_jitter", "state_offset", "sparse_sampling"])
def test_another_seed_draws_another_path(name: str) -> None:
    states = walk(31)
    one, other = joined(made(name, states, 1)), joined(made(name, states, 2))
    assert one.shape != other.shape or not np.array_equal(one, other)


def test_more_samples_of_the_same_curve_have_the_same_signature() -> None:
    states = walk(20)
    times = np.sort(np.concatenate([np.arange(20.0), np.random.default_rng(0).uniform(0, 19, 30)]))
    finer = ht.sampled(states, times)
    assert len(joined(finer)) > len(states)
    np.testing.assert_allclose(deep(joined(finer)), deep(states), atol=1e-12)
    for tick, points in enumerate(finer):
        np.testing.assert_array_equal(points[-1], states[tick])


def test_an_offset_leaves_the_signature_and_masked_channels_alone() -> None:
    states = walk(20)
    spread = np.where(np.arange(17) < 3, 0.0, 0.4)
    moved = joined(ht.transforms(100)["state_offset"](states, spread, np.random.default_rng(0)))
    assert not np.allclose(moved, states)
    np.testing.assert_array_equal(moved[:, :3], states[:, :3])
    np.testing.assert_allclose(deep(moved), deep(states), atol=1e-12)


def test_reversal_runs_the_history_backwards_and_changes_the_signature() -> None:
    states = walk(20)
    back = joined(made("order_reversal", states))
    np.testing.assert_array_equal(back[:-1], states[:-1][::-1])
    assert not np.allclose(deep(back), deep(states), atol=1e-3)


def test_sparse_sampling_keeps_recorded_states_alone() -> None:
    states = walk(200)
    kept = joined(made("sparse_sampling", states))
    known = {row.tobytes() for row in states}
    assert all(row.tobytes() in known for row in kept)
    fresh = 1 + (np.abs(np.diff(kept, axis=0)).max(axis=1) > 0).sum()
    assert 70 < fresh < 130


def test_a_pace_stays_within_its_bounds() -> None:
    strength = ht.TransformStrength(jitter=0.3)
    steps = np.diff(ht.pace_times(100, strength, 100, np.random.default_rng(0)))
    assert 0.7 - 1e-9 <= steps.min() < 0.95
    assert 1.05 < steps.max() <= 1.3 + 1e-9


def test_a_pace_keeps_as_long_at_any_rate() -> None:
    strength = ht.TransformStrength(jitter=0.3)
    slow, fast = (
        np.diff(ht.pace_times(10_000 / period, strength, period, np.random.default_rng(0))) for period in (100, 10)
    )
    count = min(len(slow), len(fast) // 10)
    np.testing.assert_allclose(fast[: 10 * count : 10], slow[:count], atol=1e-9)


@pytest.mark.parametrize("wrong", [{"resampling": 0.5}, {"jitter": 1.0}, {"jitter_ms": 0}, {"kept": 0.0}])
def test_strengths_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ValueError, match="TransformStrength"):
        ht.TransformStrength(**wrong)  # type: ignore[arg-type]
