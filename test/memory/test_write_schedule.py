"""Content-blind schedules."""

from __future__ import annotations

import pytest
import torch

from trace_memory_ros.memory.aura.write_schedule import scheduled

COUNT = torch.arange(200_000)


@pytest.mark.parametrize("rho", [0.05, 0.15, 0.5, 0.9])
@pytest.mark.parametrize("kind", ["random", "periodic"])
def test_shares(kind: str, rho: float) -> None:
    assert float(scheduled(kind, COUNT, rho).double().mean()) == pytest.approx(rho, abs=4e-3)


def test_random_is_a_function_of_the_count_and_the_seed() -> None:
    assert torch.equal(scheduled("random", COUNT, 0.3), scheduled("random", COUNT.float(), 0.3))
    agreeing = [(scheduled("random", COUNT, 0.5, 1) == scheduled("random", COUNT, 0.5, seed)) for seed in (1, 2, 3)]
    assert [float(a.float().mean()) for a in agreeing] == pytest.approx([1.0, 0.5, 0.5], abs=0.01)
    waits = torch.diff(torch.nonzero(scheduled("random", COUNT, 0.2))[:, 0]).float()
    # Waiting times of independent draws: geometric, mean 5 and standard deviation sqrt(20).
    assert float(waits.std()) == pytest.approx(20**0.5, rel=0.05)


def test_fresh_draws_follow_torch() -> None:
    count = torch.zeros(1000)
    torch.manual_seed(0)
    first, second = scheduled("random", count, 0.5, fresh=True), scheduled("random", count, 0.5, fresh=True)
    assert not torch.equal(first, second)
    assert float(first.float().mean()) == pytest.approx(0.5, abs=0.06)


def test_always_and_never() -> None:
    assert scheduled("always", COUNT, 0.1).all()
    assert not scheduled("never", COUNT, 0.9).any()
