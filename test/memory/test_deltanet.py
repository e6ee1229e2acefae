"""DeltaNet and linear attention against their equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput
from trace_memory_ros.memory.deltanet import DeltaNetConfig, DeltaNetMemory
from trace_memory_ros.memory.fast_weights import elu_feature
from trace_memory_ros.memory.linear_attention import LinearAttentionConfig, LinearAttentionMemory

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=0, width=6, slots=3)
SIZES: dict[str, Any] = {"key_width": 8, "rows": 4}


def deltanet(**options: Any) -> DeltaNetMemory:
    torch.manual_seed(1)
    memory = DeltaNetMemory(DIMS, DeltaNetConfig(**SIZES, **options)).double()
    torch.nn.init.normal_(memory.w_beta.weight)
    return memory


@pytest.mark.parametrize("options", [{}, {"rule": "decay"}, {"feature": "elu", "hidden": 7}], ids=str)
@pytest.mark.parametrize("steps", [1, 70])
def test_chunks_equal_the_steps(options: dict[str, Any], steps: int, inputs: Inputs) -> None:
    memory = deltanet(**options)
    mask = torch.rand(3, steps, generator=torch.Generator().manual_seed(0)) < torch.tensor([[1.1], [0.7], [0.3]])
    results, gradients = [], []
    for scan in (memory.scan, lambda *args: Memory.scan(memory, *args)):
        xs = inputs(3, steps, DIMS, torch.float64, True)
        begin = torch.linspace(-1, 1, 96, dtype=torch.float64).reshape(3, 4, 8).requires_grad_()
        memory.zero_grad()
        states, final, records = scan(xs, (begin,), mask)
        results.append((*states, *final, *records))
        sum((s.sin() * torch.linspace(1, 2, s.shape[-1])).sum() for s in (*states, *final)).backward()
        gradients.append([p.grad for p in (*memory.parameters(), begin, xs.content)])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-10, rtol=1e-10)
    for got, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-8, rtol=1e-8)


@pytest.mark.parametrize("rule", ["delta", "decay"])
def test_a_write_is_the_equation(rule: str, inputs: Inputs) -> None:
    memory, x = deltanet(rule=rule), inputs(1, 1, DIMS, torch.float64).at(0)
    S = torch.linspace(-1, 1, 32, dtype=torch.float64).reshape(1, 4, 8)
    (new,), record = memory.write(x, (S,))
    features = memory.features(x.content)[0]
    k = torch.nn.functional.silu(memory.w_k(features))
    k, v, beta = k / k.norm(), memory.w_v(features), torch.sigmoid(memory.w_beta(features))
    error = v - S[0] @ k
    wanted = S[0] + beta * torch.outer(error, k) if rule == "delta" else beta * S[0] + torch.outer(error, k)
    torch.testing.assert_close(new[0], wanted)
    torch.testing.assert_close(record.surprise[0], error.norm())
    torch.testing.assert_close(record.gate[0], beta[0])


@pytest.mark.parametrize(("rule", "remembers"), [("delta", True), ("decay", False)])
def test_only_the_delta_rule_keeps_orthogonal_associations(rule: str, remembers: bool) -> None:
    """The decaying state of VLA's equation 4 forgets keys that nothing has overwritten; DeltaNet does not."""
    memory = DeltaNetMemory(MemoryDims(8, 0, 4, 1), DeltaNetConfig(key_width=8, rows=8, rule=rule))
    S, keys = torch.zeros(1, 8, 8), torch.eye(8)
    memory.project = lambda content: (content, content, torch.full((1,), 0.9))  # type: ignore[method-assign]
    for key in keys:
        x = MemoryInput(key[None], *(torch.zeros(1, 0),) * 2, key[None])
        ((S,), _) = memory.write(x, (S,))
    kept = float(S[0, 0, 0])
    assert (kept == pytest.approx(0.9)) == remembers
    assert (kept < 0.5) != remembers


def test_a_state_that_fades_at_once_stays_finite(inputs: Inputs) -> None:
    memory, mask = deltanet(rule="decay"), torch.ones(2, 9, dtype=torch.bool)
    torch.nn.init.constant_(memory.w_beta.bias, -1e6)
    xs, start = inputs(2, 9, DIMS, torch.float64), memory.initial_state(2)
    fast, naive = memory.scan(xs, start, mask), Memory.scan(memory, xs, start, mask)
    torch.testing.assert_close(fast[0], naive[0])


def test_linear_attention_is_a_weighted_mean_of_the_values(inputs: Inputs) -> None:
    torch.manual_seed(1)
    memory = LinearAttentionMemory(DIMS, LinearAttentionConfig(**SIZES)).double()
    xs, mask = inputs(1, 9, DIMS, torch.float64), torch.tensor([[1, 1, 0, 1, 1, 0, 1, 1, 1]], dtype=torch.bool)
    readout, _, records = memory(xs, memory.initial_state(1), mask)
    features = memory.features(xs.content)[0]
    k, q = elu_feature(memory.w_k(features)), elu_feature(memory.w_q(features))
    for t in range(9):
        past = [s for s in range(t + 1) if mask[0, s]]
        weight = torch.stack([q[t] @ k[s] for s in past])
        value = (weight / weight.sum()) @ memory.w_v(features)[past]
        torch.testing.assert_close(readout.vector[0, t], memory.read_map(memory.norm_read(value)))
    assert not records.surprise.any()


@pytest.mark.parametrize(("option", "value"), [("rule", "half"), ("feature", "relu")])
def test_impossible_settings_are_named(option: str, value: str) -> None:
    with pytest.raises(ValueError, match=f"DeltaNetConfig.{option} = '{value}': must be one of"):
        DeltaNetConfig(**{option: value})
