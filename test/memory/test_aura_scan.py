"""AURA's compiled recurrence against the loop it replaces: states, decisions, final state and every gradient."""

from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.aura import scan as aura_scan
from trace_memory_ros.memory.aura.memory import AuraConfig, AuraMemory
from trace_memory_ros.memory.base import MemoryDims, MemoryInput

DIMS = MemoryDims(content=11, signature=0, width=10, slots=1)
GATES: dict[str, dict[str, Any]] = {
    "straight_through": {},
    "code alone": {"tokens": "code"},
    "gumbel": {"gate": "gumbel"},
    "token": {"gate_signal": "token"},
    "always": {"gate": "always"},
    "random": {"gate": "random", "rho": 0.4},
    "periodic": {"gate": "periodic", "rho": 0.4},
}


def memory(gate: str) -> AuraMemory:
    torch.manual_seed(0)
    sizes = {"key_width": 5, "value_width": 7, "gate_hidden": 9, "gate_bias": 2.0, "temperature": 0.7}
    config = AuraConfig(**{"tokens": "rows", **sizes, **GATES[gate]})
    built = AuraMemory(DIMS, config)
    built.surprise.update(torch.rand(50) * 3)
    if built.gate is not None:  # Decisions that depend on everything the gate sees, and clearly so.
        torch.nn.init.normal_(built.gate.logit.weight)
        torch.nn.init.normal_(built.gate.recalled.weight)
    return built.eval()


def outcome(gate: str, steps: int) -> tuple[list[Tensor], list[Tensor]]:
    """All that a scan returns, and the gradients of a sum over it with fixed random weights."""
    built = memory(gate)
    generator = torch.Generator().manual_seed(1)
    content = torch.randn(6, steps, DIMS.content, generator=generator).requires_grad_()
    xs = MemoryInput(content, content[..., :0], content[..., :0], content)
    mask = torch.rand(6, steps, generator=generator) < 0.8
    start = tuple(
        torch.randn(s.shape, generator=generator).mul_(0.3).requires_grad_() if i < 2 else s
        for i, s in enumerate(built.initial_state(6))
    )
    states, final, records = built.scan(xs, start, mask)
    parts = [*states, *final, records.gate, records.write_strength]
    losses = [(part * torch.randn(part.shape, generator=generator)).sum() for part in parts]
    losses += list(built.auxiliary(xs, states, records, mask).values())
    sources = [content, *start[:2], *built.parameters()]
    grads = torch.autograd.grad(torch.stack(losses).sum(), sources, allow_unused=True)
    found = [torch.zeros_like(s) if g is None else g for s, g in zip(sources, grads, strict=True)]
    return [part.detach() for part in (*states, *final, *records)], found


@pytest.mark.parametrize("steps", [1, 2, 37])
@pytest.mark.parametrize("gate", GATES)
def test_compiled_equals_the_loop(gate: str, steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    compiled = outcome(gate, steps)
    monkeypatch.setattr(aura_scan, "can_scan", lambda *_: False)
    looped = outcome(gate, steps)
    for fast, slow in zip((*compiled[0], *compiled[1]), (*looped[0], *looped[1]), strict=True):
        scale = max(1.0, float(slow.float().abs().max()))
        torch.testing.assert_close(fast, slow, rtol=1e-4, atol=1e-5 * scale)


def test_the_gate_opens_and_shuts_in_this_test() -> None:
    (_, _, _, _, _, _, _, _, wrote), _ = outcome("straight_through", 37)
    assert 0.1 < float(wrote.float().mean()) < 0.7


def test_other_numbers_take_the_loop() -> None:
    single, none = torch.zeros(2, 3), torch.zeros(2, 0)
    assert aura_scan.can_scan(single)
    assert not aura_scan.can_scan(single, single.double())
    assert not aura_scan.can_scan(none)


def test_gradients_flow_in_double_precision_through_the_loop() -> None:
    built = memory("straight_through").double()
    content = torch.randn(2, 4, DIMS.content, dtype=torch.float64, requires_grad=True)
    xs = MemoryInput(content, content[..., :0], content[..., :0], content)
    states, _, _ = built.scan(xs, built.initial_state(2), torch.ones(2, 4, dtype=torch.bool))
    states[0].sum().backward()
    assert content.grad is not None
