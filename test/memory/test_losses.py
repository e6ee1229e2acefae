"""Stabilising losses against values computed by hand."""

from __future__ import annotations

import math

import pytest
import torch

from trace_memory_ros.memory.trace.losses import balance_loss, consistency_loss, entropy_loss

ROUTE = torch.tensor([[[1.0, 0.0], [0.5, 0.5], [0.0, 1.0]], [[1.0, 0.0], [0.25, 0.75], [0.3, 0.7]]])
MASK = torch.tensor([[True, True, False], [True, False, False]])


def test_balance() -> None:
    # The valid routes (1, 0), (1/2, 1/2), (1, 0) have the mean (5/6, 1/6): (1/3)^2 for both slots.
    assert balance_loss(ROUTE, MASK).item() == pytest.approx(1 / 9)


def test_entropy() -> None:
    # One of three valid routes is uniform and two are certain.
    assert entropy_loss(ROUTE, MASK).item() == pytest.approx(1 / 3)
    quarter = -(0.25 * math.log(0.25) + 0.75 * math.log(0.75)) / math.log(2)
    only = torch.tensor([[False] * 3, [False, True, False]])
    assert entropy_loss(ROUTE, only).item() == pytest.approx(quarter)


def test_consistency() -> None:
    readout = torch.tensor([[[0.0, math.atanh(0.5)], [9.0, 9.0]]])
    proposal = torch.tensor([[[math.atanh(0.1), 0.0], [0.0, 0.0]]])
    only_first = torch.tensor([[True, False]])
    assert consistency_loss(readout, proposal, only_first).item() == pytest.approx((0.01 + 0.25) / 2)


def test_no_valid_step_costs_nothing() -> None:
    nothing = torch.zeros_like(MASK)
    assert balance_loss(ROUTE, nothing).item() == 0
    assert entropy_loss(ROUTE, nothing).item() == 0
    assert consistency_loss(ROUTE, ROUTE + 1, nothing).item() == 0


def test_a_single_slot_has_no_entropy() -> None:
    assert entropy_loss(torch.ones(2, 3, 1), MASK).item() == 0


def test_gradients_stay_finite_where_a_route_underflows() -> None:
    logits = torch.tensor([[[0.0, 500.0]]], requires_grad=True)
    entropy_loss(torch.softmax(logits, dim=-1), torch.ones(1, 1, dtype=torch.bool)).backward()
    assert torch.isfinite(logits.grad).all()
