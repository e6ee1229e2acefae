"""Batches that threads make ahead are those of the steps, in order, and a fault comes where its batch was due."""

import threading
from itertools import count

import numpy as np
import pytest

from trace_memory_ros.learning.engine.read_ahead import read_ahead


def square(step: int) -> int:
    if step == 7:
        raise ValueError("seven")
    return int(np.random.default_rng(step).integers(1000)) + step**2


@pytest.mark.parametrize("threads", [0, 1, 2, 5])
def test_the_same_batches_whatever_the_number_of_threads(threads: int) -> None:
    with read_ahead(square, range(7), threads) as batches:
        assert list(batches) == [square(step) for step in range(7)]


@pytest.mark.parametrize("threads", [0, 3])
def test_a_fault_is_raised_where_its_batch_was_due(threads: int) -> None:
    with read_ahead(square, range(4, 20), threads) as batches:
        assert [next(batches) for _ in range(3)] == [square(step) for step in (4, 5, 6)]
        with pytest.raises(ValueError, match="seven"):
            next(batches)


def test_no_more_are_made_than_may_wait_and_none_after_the_end() -> None:
    made: list[int] = []
    before = threading.active_count()
    with read_ahead(lambda step: made.append(step) or step, count(), 2) as batches:
        for _ in range(3):
            next(batches)
    assert sorted(made)[:3] == [0, 1, 2] and len(made) <= 3 + 3
    assert threading.active_count() == before
