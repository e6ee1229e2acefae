"""Sizes and word orders."""

import itertools

import numpy as np
import pytest

from trace_memory_ros.signature.layout import level_slices, reversed_word_order, signature_size


def test_paper_size() -> None:
    assert signature_size(17, 3) == 5219
    assert signature_size(17, 4) == 88740


@pytest.mark.parametrize(("dim", "depth"), [(1, 4), (2, 4), (3, 3), (5, 1)])
def test_reversed_order_maps_each_word_to_its_mirror(dim: int, depth: int) -> None:
    order = reversed_word_order(dim, depth)
    words = [word for n in range(1, depth + 1) for word in itertools.product(range(dim), repeat=n)]
    canonical = {word: i for i, word in enumerate(words)}
    assert order.tolist() == [canonical[word[::-1]] for word in words]
    np.testing.assert_array_equal(order[order], np.arange(order.size))


def test_level_slices_tile_the_signature() -> None:
    slices = level_slices(4, 3)
    assert [(s.start, s.stop) for s in slices] == [(0, 4), (4, 20), (20, 84)]


@pytest.mark.parametrize(("dim", "depth", "named"), [(0, 2, "dim = 0"), (3, 0, "depth = 0"), (3, 5, "depth = 5")])
def test_impossible_layouts_are_refused(dim: int, depth: int, named: str) -> None:
    with pytest.raises(ValueError, match=named):
        signature_size(dim, depth)
