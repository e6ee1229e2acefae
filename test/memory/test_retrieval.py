"""The retrieval control: what is stored, given up and retrieved, and who learns from it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import MemoryDims, MemoryInput, State
from trace_memory_ros.memory.retrieval import RetrievalConfig, RetrievalMemory

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)


def build(**options: Any) -> RetrievalMemory:
    torch.manual_seed(0)
    return RetrievalMemory(DIMS, RetrievalConfig(**options))


def fill(memory: RetrievalMemory, xs: MemoryInput) -> tuple[State, list[int]]:
    """The state after every tick was written, and the place that each write took."""
    state, places = memory.initial_state(1), []
    for t in range(xs.content.shape[1]):
        _, state, record = memory.step(xs.at(t), state, torch.tensor([True]))
        places.append(int(record.route[0].argmax()))
    return state, places


def unit(vectors: Tensor) -> Tensor:
    return vectors / vectors.norm(dim=-1, keepdim=True)


@pytest.mark.parametrize("evict", ["oldest", "redundant"])
def test_what_is_given_up_follows_the_rule(inputs: Inputs, evict: str) -> None:
    memory, xs = build(capacity=4, top_k=2, evict=evict), inputs(1, 12)
    state, places = fill(memory, xs)
    keys = unit(memory.phi_key(memory.norm_content(xs.content[0]))).detach()
    held: list[int] = []
    for t in range(12):
        if len(held) < 4:
            held.append(t)
            place = t
        elif evict == "oldest":
            place = held.index(min(held))
        else:
            pairs = [(float(keys[held[i]] @ keys[held[j]]), i, j) for i in range(4) for j in range(i)]
            _, i, j = max(pairs)
            place = i if held[i] < held[j] else j
        held[place] = t
        assert places[t] == place
    torch.testing.assert_close(state[0][0], keys[held])
    torch.testing.assert_close(state[1][0], memory.phi_value(memory.norm_content(xs.content[0, held])))
    assert state[2][0].tolist() == [12 - t for t in held]


def test_what_was_seen_once_outlives_what_repeats(inputs: Inputs) -> None:
    memory, xs = build(capacity=4, top_k=1), inputs(1, 40)
    content = xs.content[:, 1:2].repeat(1, 40, 1) + 0.01 * xs.content
    content[:, 3] = xs.content[:, 0]
    state, _ = fill(memory, xs._replace(content=content))
    key = unit(memory.phi_key(memory.norm_content(content[0, 3]))).detach()
    assert (state[0][0] @ key).max() > 0.9999


def test_a_read_takes_the_nearest_entries_and_nothing_else(inputs: Inputs) -> None:
    memory, xs = build(capacity=6, top_k=2, sharpness=4.0), inputs(1, 5)
    state, _ = fill(memory, xs)
    readout = memory.read(xs.at(2), state)
    scores = 4.0 * state[0][0] @ unit(memory.phi_query(memory.norm_content(xs.content[0, 2])))
    nearest = sorted(range(5), key=lambda i: -scores[i].item())[:2]
    weights = torch.softmax(scores[nearest], dim=0)
    torch.testing.assert_close(readout.read_weights[0, nearest], weights)
    torch.testing.assert_close(readout.tokens[0, nearest], state[1][0][nearest])
    rest = [i for i in range(6) if i not in nearest]
    assert not readout.read_weights[0, rest].any()
    assert not readout.tokens[0, rest].any()
    mixed = (weights[:, None] * state[1][0][nearest]).sum(dim=0)
    torch.testing.assert_close(readout.vector[0], memory.norm_out(memory.out(mixed)))


def test_while_fewer_are_stored_than_asked_for_the_rest_stays_empty(inputs: Inputs) -> None:
    memory, xs = build(capacity=6, top_k=4), inputs(1, 2)
    state, _ = fill(memory, xs)
    readout = memory.read(xs.at(1), state)
    assert (readout.read_weights[0, :2] > 0).all()
    assert not readout.read_weights[0, 2:].any()
    assert not readout.tokens[0, 2:].any()


def test_the_gradient_reaches_keys_that_were_not_retrieved(inputs: Inputs) -> None:
    memory, xs = build(capacity=6, top_k=1), inputs(1, 6)
    state, _ = fill(memory, xs)
    keys = state[0].detach().requires_grad_()
    readout = memory.read(xs.at(0), (keys, state[1].detach(), state[2]))
    for target in (readout.vector, readout.tokens):
        (gradient,) = torch.autograd.grad(target.sin().sum(), keys, retain_graph=True)
        assert (gradient[0].abs().sum(dim=1) > 0).all()


def test_ages_stop_where_float32_does_not_count_on(inputs: Inputs) -> None:
    memory, xs = build(capacity=2, top_k=1), inputs(1, 1)
    keys, values, _ = memory.initial_state(1)
    _, (_, _, age), _ = memory.step(xs.at(0), (keys, values, torch.tensor([[2.0**23, 2.0**23 - 1]])), torch.ones(1) > 0)
    assert sorted(age[0].tolist()) == [1.0, 2.0**23]


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"capacity": 1}, "capacity = 1: must be at least 2"),
        ({"top_k": 33}, r"top_k = 33: must be in 1 \.\. capacity = 32"),
        ({"evict": "newest"}, "evict = 'newest': choose from redundant, oldest"),
        ({"hidden": -1}, "hidden = -1"),
        ({"sharpness": 0.0}, r"sharpness = 0\.0"),
    ],
)
def test_impossible_settings_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        build(**options)
