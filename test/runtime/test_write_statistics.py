"""Slot statistics of an episode's writes against values computed by hand, as they run and of the whole record."""

import math

import numpy as np
import pytest
import torch

from trace_memory_ros.evidence import diagnostics
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.runtime.write_statistics import WriteStatistics, route_entropies

# Main slots 0, 0, 2, 2, 0.
ROUTES = np.array([[0.9, 0.1, 0, 0], [0.7, 0.3, 0, 0], [0, 0, 1, 0], [0, 0.2, 0.8, 0], [1, 0, 0, 0]], dtype=np.float32)


def test_churn_and_occupancy_by_hand() -> None:
    statistics = WriteStatistics.of(ROUTES)
    assert (statistics.count, statistics.changes) == (5, 2)
    assert (statistics.churn, statistics.occupancy) == (2 / 4, 2 / 4)


def test_slots_that_share_a_write_alike_are_all_used() -> None:
    """As elmur's, whose write goes to one slot of each layer."""
    memory = registry.build("elmur", MemoryDims(content=3, signature=0, width=4, slots=2), {"segment": 2, "layers": 2})
    xs, mask = MemoryInput(*(torch.zeros(1, 8, n) for n in (3, 0, 0, 3))), torch.ones(1, 8, dtype=torch.bool)
    with torch.no_grad():
        _, _, records = memory.eval().scan(xs, memory.initial_state(1), mask)
    statistics = WriteStatistics.of(records.route[0].numpy())
    assert (statistics.occupancy, statistics.changes) == (1.0, 3)


def test_entropy_is_that_of_the_newest_write_as_a_share_of_the_greatest() -> None:
    statistics = WriteStatistics(4)
    for route, nats in ((np.full(4, 0.25), math.log(4)), (np.array([0.5, 0.5, 0, 0]), math.log(2)), (ROUTES[2], 0.0)):
        statistics.add(route)
        assert statistics.entropy == pytest.approx(nats / math.log(4))
        assert route_entropies(route[None])[0] == pytest.approx(nats)


def test_running_numbers_are_those_of_the_record_so_far() -> None:
    running = WriteStatistics(4)
    for count, route in enumerate(ROUTES, start=1):
        running.add(route)
        so_far = ROUTES[:count].astype(np.float64)
        assert running.count == count
        assert running.occupancy == diagnostics.occupancy(so_far)
        assert running.churn == (diagnostics.churn(so_far) or 0.0)


def test_no_slot_no_write_and_one_slot_are_zero() -> None:
    none, one = WriteStatistics.of(np.zeros((3, 0), np.float32)), WriteStatistics.of(np.ones((3, 1), np.float32))
    empty = WriteStatistics(4)
    assert (none.count, none.churn, none.occupancy, none.entropy) == (3, 0, 0, 0)
    assert (one.count, one.churn, one.occupancy, one.entropy) == (3, 0, 1, 0)
    assert (empty.count, empty.churn, empty.occupancy, empty.entropy) == (0, 0, 0, 0)


def test_a_snapshot_goes_on_where_it_was_taken() -> None:
    whole, first = WriteStatistics.of(ROUTES), WriteStatistics.of(ROUTES[:2])
    second = WriteStatistics(4)
    second.restore(first.snapshot())
    for route in ROUTES[2:]:
        second.add(route)
    assert (second.count, second.churn, second.occupancy) == (whole.count, whole.churn, whole.occupancy)
    assert second.entropy == whole.entropy
