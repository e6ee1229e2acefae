"""PRISM against its equations, its window, and its full pass."""

from __future__ import annotations

import cmath
import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput
from trace_memory_ros.memory.prism.layers import Gate, GatedLayer
from trace_memory_ros.memory.prism.memory import PrismConfig, PrismMemory
from trace_memory_ros.memory.prism.ring import GlobalEncoder

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=0, width=6, slots=3)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"window": 3, "layers": 3, "width": 12, "heads": 3},
    {"window": 2, "gate": "blind", "local_tokens": 1},
    {"window": 4, "gate": "none", "hidden": 5, "layers": 1},
    {"window": 5, "gate_hidden": 3, "width": 4, "heads": 1, "local_tokens": 3},
]


def make(dims: MemoryDims = DIMS, **options: Any) -> PrismMemory:
    torch.manual_seed(2)
    return PrismMemory(dims, PrismConfig(**options)).double()


def attention(layer: GatedLayer, x: Tensor, keys: list[Tensor], values: list[Tensor], ages: list[int]) -> Tensor:
    """One query over keys of given ages, head by head, with every pair of features turned on its own."""
    query, size = layer.query(layer.norm(x)), x.shape[0] // layer.heads
    found = []
    for head in range(layer.heads):
        q = query[head * size : (head + 1) * size]
        scores = []
        for key, age in zip(keys, ages, strict=True):
            k = key[head * size : (head + 1) * size]
            score = torch.zeros((), dtype=q.dtype)
            for pair in range(size // 2):
                turn, b = cmath.exp(complex(0, -age * float(layer.frequency[pair]))), pair + size // 2
                turned = torch.complex(k[pair], k[b]) * turn
                score = score + (torch.complex(q[pair], q[b]).conj() * turned).real
            scores.append(score / math.sqrt(size))
        share = torch.softmax(torch.stack(scores), dim=0)
        found.append(sum(w * v[head * size : (head + 1) * size] for w, v in zip(share, values, strict=True)))
    return layer.out(torch.cat(found))


def gated(gate: Gate, x: Tensor, z: Tensor) -> Tensor:
    if gate.mode == "none":
        return z
    inner = gate.mlp[2](torch.nn.functional.silu(gate.mlp[0](x))) if gate.mode == "feature" else gate.logit
    return z / (1 + torch.exp(-inner))


def local_summary(memory: PrismMemory, content: Tensor) -> tuple[Tensor, Tensor]:
    """The k local tokens and their summary."""
    width, local = memory.width, memory.local
    tokens = [memory.token_norm(part) for part in memory.tokenise(content).split(width)]
    keys = [local.block.key(local.block.norm(u)) for u in tokens]
    values = [local.block.value(local.block.norm(u)) for u in tokens]
    blocks = []
    for u in tokens:
        y = u + gated(local.block.gate, u, attention(local.block, u, keys, values, [0] * len(tokens)))
        blocks.append(local.norm(y + local.block.ffn(local.block.ffn_norm(y))))
    size, parts = width // local.heads, []
    for head in range(local.heads):
        cut = slice(head * size, (head + 1) * size)
        scores = torch.stack([local.latent[cut] @ local.key(b)[cut] for b in blocks]) / math.sqrt(size)
        parts.append(sum(w * local.value(b)[cut] for w, b in zip(torch.softmax(scores, 0), blocks, strict=True)))
    return torch.stack(tokens), local.out(torch.cat(parts))


def naive_vectors(memory: PrismMemory, contents: Tensor, writes: Tensor) -> Tensor:
    """The readout's vector at every tick `(T, d_e)` of one episode, from lists that only grow."""
    layers = [layer for layer in memory.encoder.layers if isinstance(layer, GatedLayer)]
    kept: list[list[tuple[Tensor, Tensor]]] = [[] for _ in layers]
    vectors = []
    for content, write in zip(contents, writes, strict=True):
        tokens, h = local_summary(memory, content)
        for layer, cache in zip(layers, kept, strict=True):
            if write:
                cache.append((layer.key(layer.norm(h)), layer.value(layer.norm(h))))
            seen = cache[-memory.settings.window :]
            ages = list(range(len(seen)))[::-1]
            z = attention(layer, h, [k for k, _ in seen], [v for _, v in seen], ages) if seen else torch.zeros_like(h)
            y = h + gated(layer.gate, h, z)
            h = y + layer.ffn(layer.ffn_norm(y))
        fused = torch.stack([memory.fuse_norm(u + memory.encoder.norm(h)) for u in tokens])
        vectors.append(memory.fuse(fused.mean(dim=0)))
    return torch.stack(vectors)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("steps", [1, 7])
def test_the_module_equals_the_equations(options: dict[str, Any], steps: int, inputs: Inputs) -> None:
    memory = make(**options)
    mask = torch.rand(3, steps, generator=torch.Generator().manual_seed(3)) < torch.tensor([[1.1], [0.6], [0.3]])
    weights = torch.linspace(-1, 1, DIMS.width, dtype=torch.float64)
    results = []
    for fast in (True, False):
        xs = inputs(3, steps, DIMS, dtype=torch.float64, grad=True)
        memory.zero_grad()
        if fast:
            vector = memory(xs, memory.initial_state(3), mask)[0].vector
        else:
            vector = torch.stack([naive_vectors(memory, xs.content[b], mask[b]) for b in range(3)])
        (vector.sin() * weights).sum().backward()
        results.append((vector, xs.content.grad, *(p.grad for p in memory.parameters() if p.grad is not None)))
    assert len(results[0]) == len(results[1])
    for fast, naive in zip(*results, strict=True):
        torch.testing.assert_close(fast, naive, atol=1e-10, rtol=0)


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("steps", [1, 2, 7, 13])
def test_the_full_pass_equals_streaming(options: dict[str, Any], steps: int, inputs: Inputs) -> None:
    memory = make(**options)
    # All written; holes; padding; nothing; and a start from a ring that has gone round and from one half full.
    mask = torch.rand(4, steps, generator=torch.Generator().manual_seed(1)) < torch.tensor([[1.1], [0.6], [0.6], [-1]])
    mask[2, steps // 2 :] = False
    before = inputs(4, 6, DIMS, dtype=torch.float64)
    written = torch.tensor([[1] * 6, [1] * 4 + [0] * 2, [1] + [0] * 5, [0] * 6], dtype=torch.bool)
    results = []
    for scan in (memory.scan, lambda *a: Memory.scan(memory, *a)):
        xs = inputs(4, steps, DIMS, dtype=torch.float64, grad=True)
        memory.zero_grad()
        _, start, _ = Memory.scan(memory, before, memory.initial_state(4), written)
        states, final, records = scan(xs, start, mask)
        readout = memory.read_sequence(xs, states)
        target = sum((s.sin() * torch.linspace(0, 1, s.shape[-1])).sum() for s in (*states, *readout))
        assert isinstance(target, Tensor)
        target.backward()
        gradients = [p.grad for p in memory.parameters()]
        results.append((*states, *final, *records, *readout, xs.content.grad, *gradients))
    for fast, naive in zip(*results, strict=True):
        torch.testing.assert_close(fast, naive, atol=1e-10, rtol=0)


def test_no_steps_leave_the_state(inputs: Inputs) -> None:
    memory = make(window=3)
    _, state, _ = memory.scan(inputs(2, 5, DIMS, dtype=torch.float64), memory.initial_state(2), torch.ones(2, 5) > 0)
    states, final, records = memory.scan(inputs(2, 0, DIMS, dtype=torch.float64), state, torch.ones(2, 0) > 0)
    assert all(torch.equal(a, b) for a, b in zip(final, state, strict=True))
    assert states[0].shape[1] == records.route.shape[1] == 0


@pytest.mark.parametrize("layers", [1, 2, 3])
def test_a_tick_depends_on_exactly_the_writes_in_reach(layers: int, inputs: Inputs) -> None:
    window, steps = 3, 12
    memory = make(window=window, layers=layers)
    xs = inputs(1, steps, DIMS, dtype=torch.float64)
    content = xs.content.clone().requires_grad_()
    readout, _, _ = memory(xs._replace(content=content), memory.initial_state(1), torch.ones(1, steps) > 0)
    readout.vector[0, -1].sum().backward()
    assert content.grad is not None
    reached = (content.grad[0].abs().sum(dim=1) > 0).nonzero()[:, 0].tolist()
    assert reached == list(range(steps - 1 - layers * (window - 1), steps))


def test_a_reading_tick_between_writes_is_not_kept(inputs: Inputs) -> None:
    memory = make(window=4)
    xs = inputs(1, 3, DIMS, dtype=torch.float64)
    yes, no = torch.tensor([True]), torch.tensor([False])
    _, state, _ = memory.step(xs.at(0), memory.initial_state(1), yes)
    between, _, _ = memory.step(xs.at(1), state, no)
    alone = memory.read(xs.at(1), state)
    torch.testing.assert_close(between.vector, alone.vector, atol=0, rtol=0)
    other = memory.read(xs.at(2), state)
    assert not torch.allclose(between.vector, other.vector)


def test_where_the_ring_stands_means_nothing(inputs: Inputs) -> None:
    memory = make(window=4, layers=1)
    xs = inputs(1, 7, DIMS, dtype=torch.float64)
    readings, tokens = [], []
    for start in (0, 1, 2):
        late = xs.map(lambda f, start=start: f[:, start:])
        count = late.content.shape[1]
        _, state, _ = memory.scan(late, memory.initial_state(1), torch.ones(1, count) > 0)
        readout = memory.read(xs.at(6), state)
        readings.append(readout.vector)
        tokens.append(readout.tokens[0, (state[3][0, 0].long() + torch.arange(4)) % 4])
    for vector, token in zip(readings, tokens, strict=True):
        torch.testing.assert_close(vector, readings[0], atol=1e-12, rtol=0)
        # With one layer an entry's own output depends on the writes before it, back to its window: the newest agree.
        torch.testing.assert_close(token[-1], tokens[0][-1], atol=1e-12, rtol=0)


def test_empty_entries_are_reported_as_such(inputs: Inputs) -> None:
    memory = make(window=5)
    with torch.no_grad():
        memory.nothing.fill_(7.0)
    xs = inputs(1, 3, DIMS, dtype=torch.float64)
    fresh = memory.read(xs.at(0), memory.initial_state(1))
    assert (fresh.tokens == 7).all()
    assert not fresh.read_weights.any()
    assert torch.isfinite(fresh.vector).all()
    readout, _, records = memory(xs, memory.initial_state(1), torch.ones(1, 3) > 0)
    assert records.route.argmax(dim=-1).tolist() == [[0, 1, 2]]
    assert (readout.tokens[0, 1, 2:] == 7).all()
    assert not readout.read_weights[0, 1, 2:].any()
    assert (readout.read_weights[0, 1, :2] > 0).all()


def test_the_oldest_entry_is_overwritten(inputs: Inputs) -> None:
    memory = make(window=3)
    _, final, records = memory(inputs(1, 8, DIMS, dtype=torch.float64), memory.initial_state(1), torch.ones(1, 8) > 0)
    assert records.route.argmax(dim=-1).tolist() == [[0, 1, 2, 0, 1, 2, 0, 1]]
    assert final[3].tolist() == [[2.0, 3.0]]


def test_more_local_tokens_than_one_are_summarised_alike_wherever_they_come_from(inputs: Inputs) -> None:
    """The encoders take real multi-token ticks, as the long-context benchmark feeds them."""
    torch.manual_seed(0)
    memory = make(window=8)
    encoder: GlobalEncoder = memory.encoder
    ticks = torch.randn(2, 6, 5, memory.width, dtype=torch.float64)
    summaries = memory.local(ticks)
    ring = encoder.empty(2, ticks)
    for t in range(6):
        torch.testing.assert_close(memory.local(ticks[:, t]), summaries[:, t])
        ring, _ = encoder.push(summaries[:, t], ring)
    y, _ = encoder.look(summaries[:, -1], ring)
    torch.testing.assert_close(y, encoder.whole(summaries).y[:, -1])


@pytest.mark.parametrize(("mode", "parameters"), [("feature", 2 * (4 * 4 + 4)), ("blind", 1), ("none", 0)])
def test_gates_pass_a_share_of_what_was_retrieved(mode: str, parameters: int) -> None:
    torch.manual_seed(0)
    gate, x, z = Gate(4, mode, 4), torch.randn(3, 4), torch.randn(3, 4)
    assert sum(p.numel() for p in gate.parameters()) == parameters
    share = gate(x, z) / z
    assert ((share > 0) & (share <= 1)).all()
    assert torch.equal(share, torch.ones_like(z)) == (mode == "none")
    assert torch.allclose(share, share[:1].expand_as(share)) == (mode != "feature")


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 1}, "PrismConfig.window = 1: must be at least 2"),
        ({"layers": 0}, "PrismConfig.layers = 0"),
        ({"hidden": 0}, "PrismConfig.hidden = 0"),
        ({"heads": 2, "width": 6}, "PrismConfig.width = 6: .* multiple of 4"),
        ({"gate": "open"}, "PrismConfig.gate = 'open': known are feature, blind, none"),
    ],
)
def test_impossible_settings_are_named(options: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        PrismConfig(**options)
