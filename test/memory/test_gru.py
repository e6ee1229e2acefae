"""The GRU control against its equations."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch

from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.memory.gru import GruConfig, GruMemory


def test_steps_follow_the_gru_equations(inputs: Callable[..., MemoryInput]) -> None:
    torch.manual_seed(0)
    memory = GruMemory(MemoryDims(content=5, signature=7, width=4, slots=3))
    xs, hidden = inputs(2, 6), torch.zeros(2, 4)
    mask = torch.tensor([[1, 1, 0, 1, 1, 0], [0, 1, 1, 0, 0, 0]], dtype=torch.bool)
    readout, _, records = memory(xs, memory.initial_state(2), mask)
    w_input, w_hidden, b_input, b_hidden = memory.gru.all_weights[0]
    for t in range(6):
        reset_in, update_in, new_in = (xs.content[:, t] @ w_input.T + b_input).chunk(3, dim=1)
        reset_h, update_h, new_h = (hidden @ w_hidden.T + b_hidden).chunk(3, dim=1)
        update = torch.sigmoid(update_in + update_h)
        new = torch.tanh(new_in + torch.sigmoid(reset_in + reset_h) * new_h)
        write = mask[:, t, None]
        hidden = torch.where(write, (1 - update) * new + update * hidden, hidden)
        torch.testing.assert_close(readout.vector[:, t], hidden, atol=1e-6, rtol=0)
        torch.testing.assert_close(readout.tokens[:, t, 0], hidden, atol=1e-6, rtol=0)
        replaced = torch.where(write, (1 - update).mean(dim=1, keepdim=True), 0)
        torch.testing.assert_close(records.write_strength[:, t], replaced, atol=1e-6, rtol=0)


def test_neither_signature_nor_slot_count_matters(inputs: Callable[..., MemoryInput]) -> None:
    memory = GruMemory(MemoryDims(content=5, signature=0, width=4, slots=3))
    xs = inputs(2, 3)._replace(xi=torch.zeros(2, 3, 0), delta=torch.zeros(2, 3, 0))
    readout, _, _ = memory(xs, memory.initial_state(2), torch.ones(2, 3, dtype=torch.bool))
    assert readout.tokens.shape == (2, 3, 1, 4)
    assert readout.address.shape == (2, 3, 0)


def test_another_hidden_width_is_mapped_to_the_readouts(inputs: Callable[..., MemoryInput]) -> None:
    torch.manual_seed(0)
    dims = MemoryDims(content=5, signature=7, width=4, slots=3)
    wide, plain = GruMemory(dims, GruConfig(hidden=9)), GruMemory(MemoryDims(5, 7, 9, 3))
    plain.load_state_dict({k: v for k, v in wide.state_dict().items() if k.startswith("gru.")})
    xs, mask = inputs(2, 4), torch.ones(2, 4, dtype=torch.bool)
    readout, (hidden,), _ = wide(xs, wide.initial_state(2), mask)
    reference, (same,), _ = plain(xs, plain.initial_state(2), mask)
    assert torch.equal(hidden, same)
    assert readout.vector.shape == (2, 4, 4)
    torch.testing.assert_close(readout.vector, wide.to_width(reference.vector))
    assert wide.state_bytes == 4 * 9


def test_the_kernel_gets_a_contiguous_state_to_go_on_from(inputs: Callable[..., MemoryInput]) -> None:
    """Without one cuDNN refuses: a sequence on a GPU then could not be cut."""
    memory, mask = GruMemory(MemoryDims(content=5, signature=7, width=4, slots=3)), torch.ones(2, 4, dtype=torch.bool)
    given = []
    memory.gru.register_forward_pre_hook(lambda _, arguments: given.append(arguments[1].is_contiguous()))
    xs = inputs(2, 4)
    _, state, _ = memory(xs, memory.initial_state(2), mask)
    _, state, _ = memory(xs, state, mask)
    memory.write(xs.at(0), state)
    assert given == [True, True, True]


def test_a_negative_hidden_width_is_named() -> None:
    with pytest.raises(ValueError, match=r"GruConfig\.hidden = -1"):
        GruConfig(hidden=-1)
