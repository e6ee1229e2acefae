"""Sets that fall in two groups are told from those that do not."""

import numpy as np

from trace_memory_ros.moments.splits import STRAY, mixed, rotated, split

RNG = np.random.default_rng(0)


def test_two_groups_are_far_apart_and_one_is_not() -> None:
    one = RNG.normal(size=(1, 20, 4)).astype(np.float32)
    two = one.copy()
    two[0, 7:, 1] += 30.0
    assert split(two).score[0] > 4 * split(one).score[0]
    assert set(np.flatnonzero(split(two).labels[0] != split(two).labels[0, 0])) == set(range(7, 20))
    assert abs(split(two).towards[0, 0, 1]) > 0.99


def test_three_groups_in_a_star_are_three() -> None:
    star = 0.3 * RNG.normal(size=(1, 24, 4)).astype(np.float32)
    for number, angle in enumerate(np.array([0.0, 2.1, 4.2])):
        star[0, 8 * number : 8 * number + 8, :2] += 9.0 * np.array([np.cos(angle), np.sin(angle)])
    found = split(star)
    assert [len(set(found.labels[0, part : part + 8])) for part in (0, 8, 16)] == [1, 1, 1]
    assert len(set(found.labels[0])) == 3 and found.score[0] > 10


def test_two_are_no_group_but_strays_that_widen_no_other() -> None:
    few = 0.1 * RNG.normal(size=(1, 20, 2)).astype(np.float32)
    few[0, :2, 0] += 30.0
    found = split(few)
    assert found.score[0] < 4
    few[0, 2:11, 1] += 5.0
    found = split(few)
    assert found.score[0] > 20 and set(np.flatnonzero(found.labels[0] == STRAY)) >= {0, 1}
    np.testing.assert_allclose(found.middle[0], (0.0, 2.5), atol=0.2)


def test_a_rotation_keeps_mean_and_covariance_and_no_groups() -> None:
    sets = RNG.normal(size=(3, 24, 4)).astype(np.float32)
    sets[:, :12, 0] += 20.0
    turned = rotated(sets, np.random.default_rng(1))
    np.testing.assert_allclose(turned.mean(axis=1), sets.mean(axis=1), atol=1e-4)
    for before, after in zip(sets, turned, strict=True):
        np.testing.assert_allclose(np.cov(after.T), np.cov(before.T), rtol=1e-3, atol=1e-3)
    assert split(turned).score.max() < 0.5 * split(sets).score.min()


def test_groups_that_look_alike_are_mixed_and_others_are_not() -> None:
    apart, alike = np.arange(10) >= 5, np.arange(10) % 2 == 0
    np.testing.assert_allclose(mixed(np.stack([apart, ~apart]).astype(np.intp)), 0.0, atol=1e-6)
    assert mixed(alike[None].astype(np.intp))[0] > 0.7
