"""A mechanism's own `unroll` equals its scan and reads, over episodes longer than what it holds at a time."""

from __future__ import annotations

from typing import Any

import pytest
import torch

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory
from trace_memory_ros.memory.cache.memory import BLOCK
from trace_memory_ros.testing.inputs import fresh, random_inputs

CASES: list[tuple[str, dict[str, Any]]] = [
    ("elmur", {"segment": 4}),
    ("elmur", {"segment": 1, "gradient_segments": 2}),
    ("elmur", {"segment": 3, "layers": 3, "heads": 3, "gradient_segments": 0}),
    ("elmur", {"segment": 2, "layers": 1}),
    ("prism", {"window": 5}),
    ("prism", {"window": 3, "layers": 3, "width": 12, "heads": 3}),
    ("prism", {"window": 2, "gate": "none", "local_tokens": 1}),
    ("vla", {"key_width": 4, "refresh_period": 5}),
    ("gru+cache", {"window": 4, "first": 1, "key": 4}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.parametrize("steps", [1, 4, 23])
def test_it_equals_scan_and_reads(name: str, options: dict[str, Any], steps: int) -> None:
    compare(name, options, steps)


@pytest.mark.parametrize("steps", [BLOCK, 2 * BLOCK + 7])
def test_a_cache_answers_by_blocks_as_at_once(steps: int) -> None:
    compare("gru+cache", {"window": 20, "first": 3, "key": 4}, steps)


def compare(name: str, options: dict[str, Any], steps: int) -> None:
    """Outputs and gradients of the mechanism's own `unroll` and of that of `Memory`."""
    memory, random = fresh(name, options).double(), torch.Generator().manual_seed(steps)
    mask = torch.rand(4, steps, generator=random) < 0.7
    mask[0], mask[1] = True, False
    at = torch.randint(steps, (4, 5), generator=random)
    outputs, gradients = [], []
    for unroll in (memory.unroll, lambda *given: Memory.unroll(memory, *given)):
        xs, asked = (random_inputs(4, count, dtype=torch.float64, grad=True) for count in (steps, 5))
        memory.zero_grad()
        everywhere, _, records = unroll(xs, mask)
        there, _, _ = unroll(xs, mask, asked, at)
        outputs.append((*everywhere, *there, *records))
        parts = [part for readout in (everywhere, there) for part in readout[:3]]
        torch.stack([(part.sin() * torch.linspace(1, 2, part.shape[-1])).sum() for part in parts]).sum().backward()
        gradients.append([p.grad for p in (*memory.parameters(), xs.content, asked.content)])
    for got, wanted in zip(*outputs, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-10, rtol=0)
    for ours, naive in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, naive)


@pytest.mark.parametrize("name", [*registry.names(), "gru+gate", "trace+gate", "gru+cache"])
def test_within_autocast_it_trains_and_reads_about_the_same(name: str) -> None:
    memory, xs, mask = fresh(name), random_inputs(2, 9), torch.ones(2, 9, dtype=torch.bool)
    exact = memory.unroll(xs, mask)[0].vector
    with torch.autocast("cpu", torch.bfloat16):
        readout, states, records = memory.unroll(xs, mask)
        losses = memory.auxiliary(xs, states, records, mask)
        memory.step(xs.at(0), memory.initial_state(2), mask[:, 0])
        _, final, _ = memory.scan(xs, memory.initial_state(2), mask)
        asked = [readout.vector.sum(), *losses.values(), *(0 * p.sum() for p in memory.parameters())]
        if any(one.requires_grad for one in asked):
            torch.stack([one.float() for one in asked]).sum().backward()
    assert all(part.dtype == torch.float32 for part in final)
    assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in memory.parameters())
    if "gate" not in name and name not in ("aura", "retrieval"):  # in which a decision may fall the other way
        torch.testing.assert_close(readout.vector.float(), exact, atol=0.1, rtol=0.1)
