"""The recurrence of a gated GRU, with its own backward pass, against the gate before any mechanism, step by step."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory import write_gate
from trace_memory_ros.memory.base import Memory
from trace_memory_ros.memory.gate import GatedMemory
from trace_memory_ros.testing.inputs import fresh, random_inputs

OPTIONS: list[dict[str, Any]] = [{}, {"inner": {"hidden": 9}, "temperature": 0.6}, {"gate": "gumbel", "hidden": 5}]


def undecided(options: dict[str, Any]) -> GatedMemory:
    """In training, in float64, open at about half of the inputs."""
    memory = fresh("gru+gate", options).double().train()
    assert isinstance(memory, GatedMemory)
    xs = random_inputs(4, 30, dtype=torch.float64)
    with torch.no_grad():
        memory.gate.logit.weight.mul_(30)
        memory.scan(xs, memory.initial_state(4), torch.ones(4, 30, dtype=torch.bool))
        logits = torch.logit(memory.scan(xs, memory.initial_state(4), torch.ones(4, 30, dtype=torch.bool))[2].gate)
        memory.gate.logit.bias.sub_(memory.settings.temperature * logits.median())
    return memory


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("steps", [1, 2, 37])
def test_it_equals_the_gate_step_by_step(options: dict[str, Any], steps: int, monkeypatch: pytest.MonkeyPatch) -> None:
    mask = torch.rand(4, steps, generator=torch.Generator().manual_seed(steps)) < 0.8
    mask[0], mask[1, 1:] = True, False
    drawn = torch.logit(torch.rand(4, steps, dtype=torch.float64, generator=torch.Generator().manual_seed(1)))
    outputs, gradients, opened = [], [], 0.0
    for naive in (False, True):
        memory, columns = undecided(options), iter(drawn.T)
        if memory.settings.gate == "gumbel":
            noise = (lambda logit, columns=columns: next(columns)) if naive else lambda logit: drawn
            monkeypatch.setattr(memory.gate, "noise", noise)
        start = torch.randn(4, memory.initial_state(4)[0].shape[1], dtype=torch.float64).requires_grad_()
        torch.manual_seed(0)
        start.data.normal_()
        xs = random_inputs(4, steps, dtype=torch.float64, grad=True)
        if naive:
            monkeypatch.setattr("trace_memory_ros.memory.gate.GruMemory", type("NoGru", (), {}))
        states, final, records = memory.scan(xs, (start,), mask)
        losses = memory.auxiliary(xs, states, records, mask)
        parts = (states[0].sin(), final[0], records.gate.square(), *losses.values())
        torch.stack([(part * _ramp(part)).sum() for part in parts]).sum().backward()
        outputs.append((*states, *final, *records, *memory.surprise.buffers()))
        gradients.append([p.grad for p in (*memory.parameters(), xs.content, start)])
        opened = float(records.wrote.double().mean())
    assert 0.1 < opened < 0.9 or steps < 3, "the test saw only one kind of decision"
    for fast, slow in zip(*outputs, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-10, rtol=0)
    for fast, slow in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, slow, atol=1e-9, rtol=1e-9)


def _ramp(part: Tensor) -> Tensor:
    return torch.linspace(1, 2, part.shape[-1] if part.ndim else 1, dtype=part.dtype).reshape(part.shape[-1:])


def test_a_cache_behind_the_gate_is_not_a_gru() -> None:
    memory = fresh("gru+cache+gate")
    xs, mask = random_inputs(2, 5), torch.ones(2, 5, dtype=torch.bool)
    fast, naive = memory.scan(xs, memory.initial_state(2), mask), Memory.scan(memory, xs, memory.initial_state(2), mask)
    torch.testing.assert_close(fast[1], naive[1])


def test_noise_is_drawn_in_training_alone() -> None:
    gate = write_gate.WriteGate(3, 2, 4, "gumbel")
    assert gate.train().noise(torch.zeros(6, 7)).std() > 0.5
    assert not gate.eval().noise(torch.zeros(6, 7)).any()
