"""The LRU control against its equations, slot by slot."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.memory.lru import LEAST_USAGE, LruConfig, LruMemory

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)


def build(**options: float) -> LruMemory:
    torch.manual_seed(0)
    return LruMemory(DIMS, LruConfig(**options))  # type: ignore[arg-type]


def softmax(scores: list[float]) -> list[float]:
    total = sum(math.exp(s) for s in scores)
    return [math.exp(s) / total for s in scores]


def cosine(a: Tensor, b: Tensor) -> float:
    return float(a @ b / max(float(a.norm() * b.norm()), 1e-12))


class Slot:
    def __init__(self) -> None:
        self.key, self.value, self.usage = torch.zeros(6), torch.zeros(6), 0.0


def naive_write(memory: LruMemory, slots: list[Slot], content: Tensor) -> list[float]:
    """One write with plain numbers; returns the route."""
    seen = memory.norm_content(content)
    key, query, value = memory.phi_key(seen), memory.phi_query(seen), memory.phi_value(seen)
    key = key / key.norm()
    used = [j for j, slot in enumerate(slots) if slot.usage > 0]
    similar = {j: cosine(key, slots[j].key) for j in used}
    match = dict(zip(used, softmax([math.exp(memory.log_sharpness[0]) * similar[j] for j in used]), strict=True))
    reads = softmax([math.exp(memory.log_sharpness[1]) * cosine(query, slots[j].key) for j in used])
    best = sum(match[j] * similar[j] for j in used)
    familiar = 1 / (1 + math.exp(-(float(memory.match_slope) * best + float(memory.match_bias)))) if used else 0.0
    least = min(range(len(slots)), key=lambda j: (slots[j].usage, j))
    route = [familiar * match.get(j, 0.0) + (1 - familiar) * (j == least) for j in range(len(slots))]
    for slot, part in zip(slots, route, strict=True):
        share = part * float(torch.sigmoid(memory.phi_strength(seen)))
        slot.key = (1 - share) * slot.key + share * key
        slot.value = (1 - share) * slot.value + share * value
        slot.usage = memory.settings.decay * slot.usage + share
    for j, weight in zip(used, reads, strict=True):
        slots[j].usage += weight
    return route


@pytest.mark.parametrize(
    "options", [{}, {"match_bias": -1.0, "match_slope": 2.0, "decay": 0.5, "sharpness": 3.0, "hidden": 4}]
)
def test_writes_and_reads_follow_the_equations(inputs: Inputs, options: dict[str, float]) -> None:
    memory, xs = build(**options), inputs(1, 12)
    slots, state = [Slot() for _ in range(3)], memory.initial_state(1)
    with torch.no_grad():
        for t in range(12):
            readout, state, record = memory.step(xs.at(t), state, torch.tensor([True]))
            route = naive_write(memory, slots, xs.content[0, t])
            assert record.route[0].tolist() == pytest.approx(route, abs=1e-5)
            assert state[2][0].tolist() == pytest.approx([slot.usage for slot in slots], abs=1e-5)
            torch.testing.assert_close(readout.tokens[0], torch.stack([s.value for s in slots]), atol=1e-5, rtol=0)
            query, used = memory.phi_query(memory.norm_content(xs.content[0, t])), [s for s in slots if s.usage > 0]
            weights = softmax([math.exp(memory.log_sharpness[1]) * cosine(query, s.key) for s in used])
            mixed = sum(w * s.value for w, s in zip(weights, used, strict=True))
            torch.testing.assert_close(readout.vector[0], memory.norm_out(memory.out(mixed)), atol=1e-5, rtol=0)


def test_new_content_fills_empty_slots_in_order_then_the_least_used(inputs: Inputs) -> None:
    memory, xs, state = build(match_bias=-20.0), inputs(1, 5), build().initial_state(1)
    places = []
    for t in range(5):
        least = int(state[2][0].argmin())
        _, state, record = memory.step(xs.at(t), state, torch.tensor([True]))
        assert record.route.max() > 0.999
        assert record.route.argmax() == least
        places.append(least)
    assert places[:3] == [0, 1, 2]


def test_known_content_goes_to_the_slot_it_resembles(inputs: Inputs) -> None:
    memory, xs, state = build(match_bias=-20.0, sharpness=50.0), inputs(1, 3), build().initial_state(1)
    for t in range(3):
        _, state, _ = memory.step(xs.at(t), state, torch.tensor([True]))
    with torch.no_grad():
        memory.match_bias.fill_(20.0)
    for t in (1, 0, 2, 1):
        _, state, record = memory.step(xs.at(t), state, torch.tensor([True]))
        assert record.route.argmax() == t


def test_a_slot_that_is_never_used_again_stays_readable(inputs: Inputs) -> None:
    memory, xs = build(match_bias=-20.0, sharpness=200.0, decay=0.1), inputs(1, 2)
    state = memory.initial_state(1)
    with torch.no_grad():
        _, state, _ = memory.step(xs.at(0), state, torch.tensor([True]))
        memory.match_bias.fill_(20.0)
        state = (state[0].clone(), state[1], state[2])
        state[0][0, 1] = -state[0][0, 0]
        state[2][0, 1] = 1.0
        memory.phi_query.load_state_dict(memory.phi_key.state_dict())
        for _ in range(60):
            _, state, _ = memory.step(xs.at(0), state, torch.tensor([True]))
        strength = float(torch.sigmoid(memory.phi_strength(memory.norm_content(xs.content[0, 0]))))
    assert state[2][0].tolist() == pytest.approx([(1 + strength) / 0.9, LEAST_USAGE, 0.0])


def test_slots_can_be_set_apart_from_the_dims() -> None:
    assert build(slots=7).slot_count == 7
    assert build(slots=7).initial_state(2)[2].shape == (2, 7)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"slots": -1}, "slots and hidden must not be negative"),
        ({"decay": 1.0}, r"decay = 1\.0: must be in 0\.\.1, below 1"),
        ({"sharpness": 0.0}, r"sharpness = 0\.0: must be positive"),
    ],
)
def test_impossible_settings_are_named(options: dict[str, float], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        build(**options)
