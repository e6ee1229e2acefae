"""The windowed transformer against the textbook one, and what its window means."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor
from torch.nn import functional

from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.memory.transformer import TransformerConfig, TransformerMemory

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)


def build(**options: int) -> TransformerMemory:
    torch.manual_seed(0)
    memory = TransformerMemory(DIMS, TransformerConfig(**options))
    for layer in memory._layers():
        torch.nn.init.normal_(layer.age_bias)
    return memory


def textbook(memory: TransformerMemory, content: Tensor) -> Tensor:
    """Causal transformer over one written sequence `(T, d_e)`, one head and one query at a time, without any cache."""
    window, width = memory.settings.window, memory.dims.width
    h = memory.embedding(content)
    for layer in memory._layers():
        normal = functional.layer_norm(h, (width,), layer.norm_attention.weight, layer.norm_attention.bias)
        q, k, v = (normal @ layer.query_key_value.weight.T + layer.query_key_value.bias).chunk(3, dim=-1)
        size = width // layer.heads
        attended = torch.zeros_like(h)
        for t in range(len(h)):
            past = list(range(max(0, t - window + 1), t + 1))
            for head in range(layer.heads):
                part = slice(head * size, (head + 1) * size)
                scores = [q[t, part] @ k[i, part] / math.sqrt(size) + layer.age_bias[head, t - i] for i in past]
                weights = torch.softmax(torch.stack(scores), 0)
                attended[t, part] = sum(w * v[i, part] for w, i in zip(weights, past, strict=True))
        h = h + layer.out(attended)
        h = h + layer.feed_forward(h)
    return memory.norm_out(h)


@pytest.mark.parametrize("layers", [1, 2])
def test_writes_follow_the_textbook(inputs: Inputs, layers: int) -> None:
    memory = build(window=4, layers=layers, hidden=7)
    xs = inputs(2, 11)
    readout, _, _ = memory(xs, memory.initial_state(2), torch.ones(2, 11, dtype=torch.bool))
    for b in range(2):
        torch.testing.assert_close(readout.vector[b], textbook(memory, xs.content[b]), atol=1e-5, rtol=0)


@pytest.mark.parametrize("layers", [1, 3])
def test_the_window_reaches_as_far_as_is_said(inputs: Inputs, layers: int) -> None:
    memory, xs = build(window=4, layers=layers), inputs(1, 20)
    mask = torch.ones(1, 20, dtype=torch.bool)
    content = xs.content.clone().requires_grad_()
    readout, _, _ = memory(xs._replace(content=content), memory.initial_state(1), mask)
    (gradient,) = torch.autograd.grad(readout.vector[0, -1].sin().sum(), content)
    reached = gradient[0].abs().sum(dim=1) > 0
    assert reached.tolist() == [t >= 19 - 3 * layers for t in range(20)]


def test_the_ring_holds_the_last_writes_and_names_the_newest(inputs: Inputs) -> None:
    memory = build(window=3)
    xs, state = inputs(1, 8), memory.initial_state(1)
    written = []
    for t in range(8):
        readout, state, record = memory.step(xs.at(t), state, torch.tensor([t != 4]))
        if t != 4:
            assert record.route[0].argmax() == len(written) % 3
            written.append(memory.embedding(xs.content[:, t])[0])
        place = (len(written) - 1) % 3
        for age in range(min(3, len(written))):
            expected = written[-1 - age] + memory.age_token[age]
            torch.testing.assert_close(readout.tokens[0, (place - age) % 3], expected)
        assert not readout.tokens[0, len(written) :].any()
        assert not readout.read_weights[0, len(written) :].any()


def test_a_read_between_writes_leaves_no_trace(inputs: Inputs) -> None:
    memory, xs = build(window=4), inputs(2, 6)
    mask = torch.tensor([[1, 1, 0, 1, 1, 0], [1, 0, 0, 0, 1, 1]], dtype=torch.bool)
    _, final, _ = memory(xs, memory.initial_state(2), mask)
    for b in range(2):
        only = xs.map(lambda f, b=b: f[b : b + 1, mask[b]])  # type: ignore[misc]
        _, state, _ = memory(only, memory.initial_state(1), torch.ones(1, int(mask[b].sum()), dtype=torch.bool))
        torch.testing.assert_close(final[0][b], state[0][0])


def test_the_counter_never_leaves_its_range(inputs: Inputs) -> None:
    memory, xs = build(window=3), inputs(1, 40)
    states, _, _ = memory.scan(xs, memory.initial_state(1), torch.ones(1, 40, dtype=torch.bool))
    assert states[1][0].tolist() == [1, 2] + [3 + t % 3 for t in range(38)]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"window": 1}, r"window = 1: must be at least 2"),
        ({"heads": 0}, "heads must be at least 1"),
        ({"hidden": -2}, r"hidden = -2"),
        ({"heads": 4}, "heads = 4: must divide MemoryDims.width = 6"),
    ],
)
def test_impossible_settings_are_named(options: dict[str, int], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        build(**options)
