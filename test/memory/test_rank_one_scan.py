"""Chunked writes and reads against the recurrences they stand for."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.rank_one_scan import CHUNK, Writes, rank_one_reads, rank_one_states
from trace_memory_ros.memory.vla.scan import Refresh, penalty_scan

STEPS = CHUNK + 7


def make(steps: int, decays: bool, residual: bool) -> tuple[Tensor, Writes, Tensor]:
    generator = torch.Generator().manual_seed(steps)
    start, keys, directions, values, queries = (
        torch.randn(2, *shape, generator=generator, dtype=torch.float64).requires_grad_()
        for shape in ((4, 6), (steps, 6), (steps, 6), (steps, 4), (steps, 6))
    )
    decay = torch.rand(2, steps, generator=generator, dtype=torch.float64).log().requires_grad_() if decays else None
    # Steps as long as these would let S grow without bound.
    return start, Writes(keys, 0.1 * directions, values, decay, residual), queries


def recurrence(start: Tensor, writes: Writes) -> tuple[Tensor, Tensor]:
    S, states, errors = start, [], []
    for t in range(writes.keys.shape[1]):
        error = writes.values[:, t]
        if writes.residual:
            error = error - (S @ writes.keys[:, t, :, None])[..., 0]
        fade = 1.0 if writes.log_decay is None else writes.log_decay[:, t].exp()[:, None, None]
        S = fade * S + error[..., None] * writes.directions[:, t, None]
        states.append(S)
        errors.append(error)
    return torch.stack(states, dim=1), torch.stack(errors, dim=1)


@pytest.mark.parametrize("steps", [1, STEPS])
@pytest.mark.parametrize(("decays", "residual"), [(False, True), (True, True), (False, False)])
def test_states_residuals_and_reads_are_those_of_the_recurrence(steps: int, decays: bool, residual: bool) -> None:
    start, writes, queries = make(steps, decays, residual)
    wanted, wanted_errors = recurrence(start, writes)
    wanted_reads = (wanted @ queries[..., None])[..., 0]
    states, errors = rank_one_states(start, writes)
    reads, final = rank_one_reads(start, writes, queries)
    for got, want in ((states, wanted), (errors, wanted_errors), (reads, wanted_reads), (final, wanted[:, -1])):
        torch.testing.assert_close(got, want, atol=1e-9, rtol=1e-9)
    leaves = [leaf for leaf in (start, queries, writes.keys, writes.values, writes.log_decay) if leaf is not None]
    gradients = [
        torch.autograd.grad(part.sin().sum(), leaves, allow_unused=True, retain_graph=True)
        for part in (reads, wanted_reads)
    ]
    for got_gradient, want_gradient in zip(*gradients, strict=True):
        if want_gradient is not None:
            torch.testing.assert_close(got_gradient, want_gradient, atol=1e-7, rtol=1e-7)


def test_the_last_penalty_inverse_is_that_of_every_step() -> None:
    generator = torch.Generator().manual_seed(0)
    u, keys = (torch.randn(3, 50, 6, generator=generator, dtype=torch.float64) for _ in range(2))
    mask = torch.rand(3, 50, generator=generator) < 0.7
    start, count = 10 * torch.eye(6, dtype=torch.float64).expand(3, -1, -1), torch.tensor([0.0, 4.0, 6.0])
    every, only = (penalty_scan(start, count, u, keys, mask, Refresh(7, 0.3), every_step=e) for e in (True, False))
    torch.testing.assert_close(only.inverse[:, 0], every.inverse[:, -1])
    torch.testing.assert_close(only.alpha, every.alpha)
    wanted = (every.inverse @ keys[..., None])[..., 0]
    torch.testing.assert_close(every.alpha[mask], wanted[mask])
