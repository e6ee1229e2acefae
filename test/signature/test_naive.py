"""The definition against closed forms, an independent library and the algebra it must obey."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from trace_memory_ros.signature import naive

LAYOUTS = [(1, 4), (2, 4), (3, 3), (5, 2), (4, 1)]
paths = st.tuples(st.integers(1, 6), st.integers(1, 3)).flatmap(lambda s: arrays(float, s, elements=st.floats(-2, 2)))


def path(dim: int, steps: int = 9, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(steps, dim))


@pytest.mark.parametrize(("dim", "depth"), LAYOUTS)
def test_agrees_with_iisignature(dim: int, depth: int) -> None:
    iisignature = pytest.importorskip("iisignature", reason="pip install --no-build-isolation iisignature")
    x = path(dim)
    expected = iisignature.sig(x, depth)
    np.testing.assert_allclose(naive.signature(x, depth), expected, rtol=1e-11, atol=1e-12)


@pytest.mark.parametrize(("dim", "depth"), LAYOUTS)
def test_straight_line_is_powers_over_factorials_however_it_is_cut(dim: int, depth: int) -> None:
    start, step = path(dim, steps=2)
    line = start + np.linspace(0, 1, 8)[:, None] * step
    levels = naive.signature_levels(line, depth)
    for n, level in enumerate(levels, start=1):
        for word in np.ndindex(level.shape):
            assert level[word] == pytest.approx(math.prod(step[i] for i in word) / math.factorial(n), abs=1e-12)


def test_circle_encloses_its_levy_area() -> None:
    corners, radius = 1000, 1.5
    angle = np.linspace(0, 2 * np.pi, corners + 1)
    circle = radius * np.stack([np.cos(angle), np.sin(angle)], axis=1)
    _, second = naive.unflatten(naive.signature(circle, 2), 2, 2)
    area = (second[0, 1] - second[1, 0]) / 2
    polygon = corners / 2 * radius**2 * math.sin(2 * math.pi / corners)
    assert area == pytest.approx(polygon, rel=1e-10)
    assert area == pytest.approx(math.pi * radius**2, rel=1e-4)


def test_levels_are_iterated_integrals() -> None:
    fine = np.linspace(0, 1, 20001)
    x = np.stack([np.sin(3 * fine), fine**2], axis=1)
    dx = np.diff(x, axis=0)
    level1 = np.cumsum(dx, axis=0) - dx / 2
    inner = np.cumsum(level1[:, 0] * dx[:, 1])
    triple = np.sum((np.concatenate([[0.0], inner[:-1]]) + level1[:, 0] * dx[:, 1] / 2) * dx[:, 0])
    _, second, third = naive.unflatten(naive.signature(x[::20], 3), 2, 3)
    assert second[0, 1] == pytest.approx(inner[-1], abs=1e-5)
    assert third[0, 1, 0] == pytest.approx(triple, abs=1e-5)


@given(paths, st.integers(0, 5), st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_chen_identity(x: np.ndarray, cut: int, depth: int) -> None:
    cut = min(cut, len(x) - 1)
    joined = naive.chen_product(naive.signature_levels(x[: cut + 1], depth), naive.signature_levels(x[cut:], depth))
    np.testing.assert_allclose(naive.flatten(joined), naive.signature(x, depth), rtol=1e-9, atol=1e-9)


@given(paths, st.integers(1, 4))
@settings(max_examples=40, deadline=None)
def test_the_way_back_is_the_inverse(x: np.ndarray, depth: int) -> None:
    there_and_back = naive.chen_product(naive.signature_levels(x, depth), naive.signature_levels(x[::-1], depth))
    np.testing.assert_allclose(naive.flatten(there_and_back), 0.0, atol=1e-7)


@given(paths)
@settings(max_examples=40, deadline=None)
def test_shuffle_product_of_two_letters(x: np.ndarray) -> None:
    level1, level2 = naive.signature_levels(x, 2)
    np.testing.assert_allclose(np.multiply.outer(level1, level1), level2 + level2.T, rtol=1e-9, atol=1e-9)


def test_flatten_round_trip() -> None:
    flat = naive.signature(path(3), 3)
    np.testing.assert_array_equal(naive.flatten(naive.unflatten(flat, 3, 3)), flat)


@pytest.mark.parametrize("shape", [(0, 3), (4,), (2, 3, 4)])
def test_what_is_not_a_path_is_refused(shape: tuple[int, ...]) -> None:
    with pytest.raises(ValueError, match=r"expected \(T, d\)"):
        naive.signature(np.zeros(shape), 2)
