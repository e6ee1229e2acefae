"""Slot usage numbers against values computed by hand."""

from __future__ import annotations

import math

import numpy as np
import pytest

from trace_memory_ros.memory.metrics import SlotUsage, slot_churn, slot_norms, slot_occupancy, write_entropy

# Main slots 0, 0, 2, 2, 0.
ROUTES = np.array([[0.9, 0.1, 0, 0], [0.7, 0.3, 0, 0], [0, 0, 1, 0], [0, 0.2, 0.8, 0], [1, 0, 0, 0]], dtype=np.float32)


def test_entropy() -> None:
    assert write_entropy(np.full(4, 0.25)) == pytest.approx(1)
    assert write_entropy(np.array([0.0, 1.0, 0.0])) == 0
    assert write_entropy(np.array([[0.5, 0.5], [1.0, 0.0]])) == pytest.approx(0.5)
    assert write_entropy(np.array([0.5, 0.5, 0.0, 0.0])) == pytest.approx(math.log(2) / math.log(4))


def test_churn_and_occupancy() -> None:
    assert slot_churn(ROUTES) == pytest.approx(2 / 4)
    assert slot_occupancy(ROUTES) == pytest.approx(2 / 4)


def test_norms() -> None:
    assert slot_norms(np.array([[3.0, -4.0], [0.0, 0.0]])) == pytest.approx([math.sqrt(12.5), 0])


def test_running_usage_equals_the_whole_record() -> None:
    usage = SlotUsage()
    for count, route in enumerate(ROUTES, start=1):
        usage = usage.after(route)
        assert usage.writes == count
        assert usage.churn == pytest.approx(slot_churn(ROUTES[:count]))
        assert usage.occupancy == pytest.approx(slot_occupancy(ROUTES[:count]))


def test_no_slots_and_no_writes_are_zero() -> None:
    nothing = np.zeros((3, 0), dtype=np.float32)
    assert (write_entropy(nothing[0]), write_entropy(nothing), slot_churn(nothing), slot_occupancy(nothing)) == (0,) * 4
    assert slot_norms(np.zeros((0, 5))).shape == (0,)
    usage = SlotUsage().after(nothing[0])
    assert (SlotUsage().churn, SlotUsage().occupancy, usage.writes, usage.churn, usage.occupancy) == (0, 0, 1, 0, 0)
    assert write_entropy(np.ones((3, 1))) == 0
