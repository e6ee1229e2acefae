"""Every mechanism behind the write gate is the bare one that sometimes does not write."""

from __future__ import annotations

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import Memory, MemoryInput
from trace_memory_ros.memory.gate import GatedMemory
from trace_memory_ros.testing.inputs import Inputs

EVERYWHERE = torch.ones(3, 9, dtype=torch.bool)


@torch.no_grad()
def undecided(memory: GatedMemory, xs: MemoryInput) -> GatedMemory:
    """Make the gate open at about every other input."""
    memory.gate.logit.weight.mul_(30)
    first = xs.map(lambda field: field.flatten(0, 1))
    _, record = memory.write(first, memory.initial_state(first.content.shape[0]))
    memory.gate.logit.bias.sub_(torch.logit(record.gate.median(), eps=1e-6))
    return memory


def bits(state: tuple[Tensor, ...], b: int) -> list[bytes]:
    """What episode `b` of a state holds."""
    return [part[b].numpy(force=True).tobytes() for part in state]


def test_the_state_is_the_inner_write_where_open_and_the_old_bits_where_shut(
    gated: GatedMemory, inputs: Inputs
) -> None:
    xs = inputs(3, 9)
    memory = undecided(gated, xs)
    state, opened = memory.initial_state(3), []
    for t in range(9):
        x = xs.at(t)
        proposed, inner = memory.inner.write(x, state)
        _, new, record = memory.step(x, state, torch.ones(3, dtype=torch.bool))
        is_open = record.gate > 0.5
        for b in range(3):
            assert bits(new, b) == bits(proposed if is_open[b] else state, b)
            assert torch.equal(record.write_strength[b], inner.write_strength[b] * is_open[b])
        assert torch.equal(record.wrote, inner.wrote & is_open)
        opened += is_open.tolist()
        state = new
    assert 0 < sum(opened) < len(opened), "the test saw only one kind of decision"


def test_scan_equals_steps_at_an_undecided_gate(gated: GatedMemory, inputs: Inputs) -> None:
    xs = inputs(3, 9, dtype=torch.float64)
    memory = undecided(gated.double(), xs)
    mask = torch.rand(3, 9, generator=torch.Generator().manual_seed(0)) < 0.7
    found = []
    for scan in (memory.scan, lambda *given: Memory.scan(memory, *given)):
        memory.zero_grad()
        states, final, records = scan(xs, memory.initial_state(3), mask)
        assert not records.wrote[~mask].any()
        target = sum((state.sin().sum() for state in states if state.requires_grad), records.gate[mask].sum())
        target.backward()
        grads = [torch.zeros_like(p) if p.grad is None else p.grad.clone() for p in memory.parameters()]
        found.append([*states, *final, *records, *grads])
    for fast, naive in zip(*found, strict=True):
        torch.testing.assert_close(fast, naive, atol=1e-7, rtol=1e-7)


def test_a_shut_gate_leaves_every_bit(gated: GatedMemory, inputs: Inputs) -> None:
    with torch.no_grad():
        gated.gate.logit.bias.fill_(-1e4)
    xs, state = inputs(3, 9), gated.initial_state(3)
    _, state, _ = gated.inner.scan(xs, state, EVERYWHERE)
    _, final, records = gated.scan(xs, state, EVERYWHERE)
    assert [bits(final, b) for b in range(3)] == [bits(state, b) for b in range(3)]
    assert not records.wrote.any()
    assert not records.write_strength.any()


def test_the_gate_keeps_no_state_and_offers_what_the_mechanism_does(gated: GatedMemory) -> None:
    inner = gated.inner
    assert gated.state_bytes == inner.state_bytes
    assert (gated.slot_count, gated.address_width) == (inner.slot_count, inner.address_width)
    assert (gated.slot_kind, gated.uses_signature) == (inner.slot_kind, inner.uses_signature)


def test_the_rate_penalty_joins_the_inner_losses(gated: GatedMemory, inputs: Inputs) -> None:
    with torch.no_grad():
        gated.gate.logit.bias.fill_(1e4)
    xs, settings = inputs(3, 9), gated.settings
    states, _, records = gated.scan(xs, gated.initial_state(3), EVERYWHERE)
    losses = {}
    for progress in (settings.ramp_from, (settings.ramp_from + settings.ramp) / 2, 1.0):
        gated.anneal(progress)
        losses[progress] = gated.auxiliary(xs, states, records, EVERYWHERE)
    full = settings.write_weight * (1 - settings.rho) ** 2 / settings.rho
    rates = [float(loss["write_rate"].detach()) for loss in losses.values()]
    assert rates == pytest.approx([0.0, full / 2, full], rel=1e-5, abs=1e-6)
    inner = gated.inner.auxiliary(xs, states, records, EVERYWHERE)
    assert losses[1.0].keys() == inner.keys() | {"write_rate"}
