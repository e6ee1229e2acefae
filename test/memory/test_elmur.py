"""ELMUR against its equations: anchors, LRU rule, segments, gradients."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, State
from trace_memory_ros.memory.elmur.config import ElmurConfig
from trace_memory_ros.memory.elmur.layer import BiasedAttention, RelativeBias
from trace_memory_ros.memory.elmur.least_recently_used import filled, offsets
from trace_memory_ros.memory.elmur.memory import ElmurMemory, ElmurState

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)
TRACK = ("embed_content", "self_attention", "self_bias", "mem2tok", "token_ffn", "self_norm")
MEMORY_TRACK = ("tok2mem", "memory_ffn")


def make(dims: MemoryDims = DIMS, **options: Any) -> ElmurMemory:
    torch.manual_seed(1)
    memory = ElmurMemory(dims, ElmurConfig(**{"segment": 4, **options})).double()
    for layer in memory.layers:
        for bias in (layer.self_bias, layer.memory_bias):
            torch.nn.init.normal_(bias.table)
    return memory


def written(memory: ElmurMemory, xs: MemoryInput) -> list[tuple[ElmurState, Tensor, Tensor]]:
    """State, route and strength after every write, step by step."""
    state, history = memory.initial_state(len(xs.content)), []
    for t in range(xs.content.shape[1]):
        _, state, record = memory.step(xs.at(t), state, torch.ones(len(xs.content), dtype=torch.bool))
        history.append((ElmurState(*state), record.route, record.write_strength))
    return history


@pytest.mark.parametrize("options", [{}, {"segment": 1, "gradient_segments": 2}, {"layers": 3, "gradient_segments": 0}])
@pytest.mark.parametrize("steps", [1, 3, 4, 5, 23])
def test_segments_at_once_equal_ticks(options: dict[str, Any], steps: int, inputs: Inputs) -> None:
    memory, before = make(**options), inputs(4, 6, dtype=torch.float64)
    holes = torch.rand(4, 6, generator=torch.Generator().manual_seed(0)) < 0.6
    with torch.no_grad():
        _, start, _ = Memory.scan(memory, before, memory.initial_state(4), holes)
    mask = torch.rand(4, steps, generator=torch.Generator().manual_seed(steps)) < 0.7
    mask[0], mask[1] = True, False
    outputs, gradients = [], []
    for scan in (memory.scan, lambda *a: Memory.scan(memory, *a)):
        xs = inputs(4, steps, dtype=torch.float64, grad=True)
        begun = tuple(part.clone().requires_grad_() for part in start)
        memory.zero_grad()
        states, final, records = scan(xs, begun, mask)
        readout = memory.read_sequence(xs, states)
        outputs.append((*states, *final, *records, readout.tokens, readout.vector, readout.read_weights))
        parts = (states[0], states[2], final[2], readout.tokens, readout.vector, readout.read_weights)
        sum((part.sin() * torch.linspace(1, 2, part.shape[-1])).sum() for part in parts).backward()
        gradients.append([p.grad for p in (*memory.parameters(), xs.content, begun[0], begun[2])])
        # Beyond its fill the buffer is zero by definition, whatever its gradient.
        gradients[-1][-2] = gradients[-1][-2] * (torch.arange(start[0].shape[1]) < start[1])[..., None]
    for got, wanted in zip(*outputs, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-10, rtol=0)
    for got, wanted in zip(*gradients, strict=True):
        zero = torch.zeros(())
        torch.testing.assert_close(got if got is not None else zero, wanted if wanted is not None else zero)


def test_nothing_to_scan_changes_nothing(inputs: Inputs) -> None:
    memory = make()
    _, start, _ = memory.scan(inputs(2, 6, dtype=torch.float64), memory.initial_state(2), torch.ones(2, 6).bool())
    states, final, records = memory.scan(inputs(2, 0, dtype=torch.float64), start, torch.ones(2, 0).bool())
    assert all(torch.equal(a, b) for a, b in zip(final, start, strict=True))
    assert states[0].shape == (2, 0, 4, 6)
    assert records.route.shape == (2, 0, 6)


def test_ages_are_the_papers_anchors(inputs: Inputs) -> None:
    memory = make()
    position = torch.arange(4)[None]
    anchors, slot = [-1] * 3, 0
    for t, (state, route, strength) in enumerate(written(memory, inputs(1, 40, dtype=torch.float64))):
        begins = t > 0 and t % 4 == 0
        due = anchors.index(-1) if -1 in anchors else anchors.index(min(anchors))
        if begins:
            slot, alpha = due, 1.0 if anchors[due] < 0 else 0.5
            anchors[due] = t - 1
        assert route.reshape(2, 3)[:, slot if begins else due].tolist() == [0.5, 0.5]
        expected = [alpha * (k == slot) for k in range(3)] * 2 if begins else [0.0] * 6
        assert strength[0].tolist() == expected
        first = t - t % 4
        wanted = [[first + i - p if p >= 0 else 0 for p in anchors] for i in range(4)]
        assert offsets(state.age, position)[0].tolist() == wanted


def test_empty_slots_take_all_and_full_ones_a_share(inputs: Inputs) -> None:
    memory = make(blend=0.25)
    history = written(memory, inputs(2, 25, dtype=torch.float64))
    for t in range(4, 25, 4):
        (before, _, _), (after, _, strength) = history[t - 1], history[t]
        proposed = memory._propose(before)
        slot = (t // 4 - 1) % 3
        alpha = 1.0 if t <= 12 else 0.25
        assert strength[0].reshape(2, 3)[:, slot].tolist() == [alpha, alpha]
        blended = alpha * proposed[:, :, slot] + (1 - alpha) * before.slots[:, :, slot]
        torch.testing.assert_close(after.slots[:, :, slot], blended, atol=1e-12, rtol=0)
        others = [k for k in range(3) if k != slot]
        assert torch.equal(after.slots[:, :, others], before.slots[:, :, others])


def test_slots_rest_until_the_segment_is_over_but_reads_follow_every_write(inputs: Inputs) -> None:
    memory, xs = make(), inputs(1, 9, dtype=torch.float64)
    history, query = written(memory, xs), inputs(1, 1, dtype=torch.float64).at(0)
    reads = [memory.read(query, state).vector for state, _, _ in history]
    for t in range(1, 9):
        same = torch.equal(history[t][0].slots, history[t - 1][0].slots)
        assert same == (t % 4 != 0)
        assert (reads[t] - reads[t - 1]).abs().max() > 1e-3
    readout = memory.read(query, history[3][0])
    assert not readout.tokens.any()
    torch.testing.assert_close(readout.read_weights.reshape(2, 3).sum(dim=1), torch.full((2,), 0.5).double())


def test_a_read_sees_what_a_written_token_would(inputs: Inputs) -> None:
    """The token track of a read is that of the next token: causal, with the same memory and offsets."""
    memory, xs = make(layers=1), inputs(2, 7, dtype=torch.float64)
    state = written(memory, xs)[5][0]
    layer = memory.layers[0]
    tokens = torch.cat((state.buffer[:, :2], memory.embed_content(xs.content[:, 6])[:, None]), dim=1)
    place = torch.arange(3)[None]
    bias = layer.token_bias(place, place[:, :, None] < place[:, None])
    tokens = layer.attend_tokens(tokens, bias)
    slots = filled(state.track, memory.initial)[:, 0]
    tokens = layer.read_memory(tokens, slots, layer.memory_bias(offsets(state.age, place)))
    torch.testing.assert_close(memory.read(xs.at(6), state).vector, memory.out(tokens[:, -1]), atol=1e-12, rtol=0)


def test_attention_is_softmax_of_scores_plus_bias() -> None:
    torch.manual_seed(0)
    attention, queries, keys = BiasedAttention(6, 2), torch.randn(1, 3, 6), torch.randn(1, 4, 6)
    bias = torch.randn(1, 2, 3, 4)
    mixed = attention(queries, keys, bias)
    again, weights = attention.weighed(queries, attention.key_value(keys), bias)
    torch.testing.assert_close(again, mixed)
    q, (k, v) = attention.query(queries)[0], attention.key_value(keys)[0].chunk(2, dim=-1)
    heads = []
    for h, part in enumerate((slice(0, 3), slice(3, 6))):
        wanted = torch.softmax(q[:, part] @ k[:, part].T / 3**0.5 + bias[0, h], dim=-1)
        torch.testing.assert_close(weights[0, h], wanted)
        heads.append(wanted @ v[:, part])
    torch.testing.assert_close(mixed[0], attention.out(torch.cat(heads, dim=-1)))


def test_the_write_bias_is_the_read_bias_reversed() -> None:
    layer = make(layers=1).layers[0]
    with torch.no_grad():
        layer.memory_bias.table.zero_()
        layer.memory_bias.table[:, 3] = -50.0
    tokens, slots = torch.randn(1, 4, 6).double(), torch.randn(1, 3, 6).double()
    offset = torch.tensor([[[1, 3, 0], [2, 4, 0], [3, 5, 0], [4, 6, 0]]], dtype=torch.float64)
    bias = layer.memory_bias(offset)
    read = layer.mem2tok.weighed(tokens, layer.mem2tok.key_value(slots), bias)[1]
    assert read[0, :, 0, 1].max() < 1e-6
    proposed = layer.propose(slots, tokens, bias)
    alone = layer.propose(slots[:, :1], tokens[:, 2:3], bias[:, :, 2:3, :1])
    torch.testing.assert_close(proposed[:, :1], alone, atol=1e-6, rtol=0)


def test_offsets_beyond_reach_share_a_bias() -> None:
    bias = RelativeBias(reach=4, heads=2)
    torch.nn.init.normal_(bias.table)
    got = bias(torch.tensor([[[4.0, 5.0, 10.0**6, -3.0, 0.0]]]))
    assert got.shape == (1, 2, 1, 5)
    assert (got[..., :3] == got[..., :1]).all()
    assert (got[..., 3] == got[..., 4]).all()


def test_no_number_in_the_state_grows_with_the_episode(inputs: Inputs) -> None:
    memory = make().float()
    state: State = memory.initial_state(2)
    xs = inputs(2, 197)
    seen = []
    for _ in range(3):
        states, state, _ = memory.scan(xs, state, torch.ones(2, 197, dtype=torch.bool))
        seen.append(ElmurState(*states))
    assert max(int(s.age.max()) for s in seen) == (DIMS.slots - 1) * 4 + 1
    assert max(int(s.fill.max()) for s in seen) == 4
    assert max(int(s.carried.max()) for s in seen) == memory.settings.gradient_segments - 1
    greatest = max(int(offsets(s.age[0], torch.tensor([[4]])).max()) for s in seen)
    assert greatest == memory.layers[0].memory_bias.reach
    assert all(torch.isfinite(s.slots).all() for s in seen)


@pytest.mark.parametrize(
    ("segments", "reached"), [(1, [1, 0, 0, 0]), (2, [1, 1, 0, 0]), (3, [1, 1, 1, 0]), (0, [1] * 4)]
)
def test_gradients_cross_as_many_segments_as_set(segments: int, reached: list[int], inputs: Inputs) -> None:
    """The first token's gradient from reads in segments 0 to 3."""
    memory, found = make(gradient_segments=segments), []
    for segment in range(4):
        xs = inputs(1, 16, dtype=torch.float64, grad=True)
        states, _, _ = memory.scan(xs, memory.initial_state(1), torch.ones(1, 16, dtype=torch.bool))
        at = 4 * segment + 2
        memory.read(xs.at(at), tuple(s[:, at] for s in states)).vector.sin().sum().backward()
        assert xs.content.grad is not None
        found.append(int(xs.content.grad[0, 0].abs().max() > 0))
    assert found == reached


@pytest.mark.parametrize("segments", [1, 2])
def test_the_papers_stop_gradient_never_trains_the_memory_track(segments: int, inputs: Inputs) -> None:
    memory, xs = make(gradient_segments=segments), inputs(2, 30, dtype=torch.float64)
    readout, _, _ = memory(xs, memory.initial_state(2), torch.ones(2, 30, dtype=torch.bool))
    readout.vector.sin().sum().backward()
    trained = {name: p.grad is not None and bool(p.grad.any()) for name, p in memory.named_parameters()}
    assert all(value for name, value in trained.items() if any(part in name for part in TRACK))
    for name, value in trained.items():
        if any(part in name for part in MEMORY_TRACK):
            assert value == (segments > 1), name


def test_gradients_reach_every_parameter(inputs: Inputs) -> None:
    memory, xs = make(), inputs(2, 11, dtype=torch.float64)
    readout, _, _ = memory(xs, memory.initial_state(2), torch.ones(2, 11, dtype=torch.bool))
    (readout.vector[:, -1].sin().sum() + readout.tokens[:, -1].sin().sum()).backward()
    for name, parameter in memory.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


def test_sizes_follow_the_settings() -> None:
    memory = ElmurMemory(DIMS, ElmurConfig(layers=3, model=8, hidden=10, heads=4, segment=5))
    assert memory.slot_count == 9
    assert memory.state_bytes == 4 * (5 * 8 + 1 + 3 * 3 * 8 + 3 + 1)
    assert memory.layers[0].token_ffn.first.out_features == 10


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("segment", 0, ValueError),
        ("layers", 1.5, TypeError),
        ("heads", True, TypeError),
        ("model", 0, ValueError),
        ("model", 7, ValueError),
        ("hidden", 0, ValueError),
        ("blend", 1.1, ValueError),
        ("blend", -0.1, ValueError),
        ("blend", "half", TypeError),
        ("initial_scale", float("nan"), ValueError),
        ("gradient_segments", -1, ValueError),
        ("gradient_segments", None, TypeError),
        ("reach", 0, ValueError),
    ],
)
def test_a_bad_setting_is_named(option: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"ElmurConfig.{option} = "):
        ElmurConfig(**{option: value})  # type: ignore[arg-type]


def test_heads_that_do_not_divide_the_width_are_named() -> None:
    with pytest.raises(ValueError, match="width 6 .* multiple of the 4 heads"):
        ElmurMemory(DIMS, ElmurConfig(heads=4))
