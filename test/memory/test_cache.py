"""The attention cache finds what was written by content and by number, and forgets nothing of its window."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims, MemoryInput, State
from trace_memory_ros.memory.cache.attention import COUNTED, CYCLE, number_codes
from trace_memory_ros.memory.cache.memory import CachedMemory
from trace_memory_ros.testing.inputs import DIMS, random_inputs

ALL = torch.ones(2, dtype=torch.bool)


def build(name: str = "gru+cache", **options: object) -> CachedMemory:
    torch.manual_seed(0)
    memory = registry.build(name, DIMS, options).eval()
    assert isinstance(memory, CachedMemory)
    return memory


def written(memory: CachedMemory, xs: MemoryInput) -> State:
    """The state after every step of `xs` was written."""
    state = memory.initial_state(xs.content.shape[0])
    for t in range(xs.content.shape[1]):
        state, _ = memory.write(xs.at(t), state)
    return state


def attended(memory: CachedMemory, x: MemoryInput, history: list[Tensor], h: Tensor) -> Tensor:
    """What is recalled, as the docstring's equations say it, of entries that are numbered from 0, for one episode."""
    attention, config = memory.attention, memory.settings
    codes = number_codes()
    asked = torch.cat((x.content[0], h, codes[len(history) - 1]))
    q = attention.to_key_query(asked).reshape(attention.count, config.key)
    u = attention.to_number_query(asked).reshape(attention.count, -1)
    shown = list(enumerate(history))[-config.window :]
    found = []
    for head in range(attention.count):
        scores = torch.stack(
            [
                q[head] @ entry[: config.key] / math.sqrt(config.key) + config.position * u[head] @ codes[number]
                for number, entry in shown
            ]
        )
        if head < config.heads:
            weights = torch.cat((scores, attention.none[head])).softmax(dim=0)[:-1]
        else:
            weights = torch.sigmoid(scores + attention.refusal[head - config.heads]) / COUNTED
        found.append(sum(w * entry[config.key :] for w, (_, entry) in zip(weights, shown, strict=True)))
    recalled: Tensor = attention.out(torch.cat(found))
    return recalled


@pytest.mark.parametrize("steps", [1, 3, 9])
@torch.no_grad()
def test_the_vector_is_what_the_equations_say(steps: int) -> None:
    memory = build(window=4, key=3, value=5, heads=2, counters=2)
    xs = random_inputs(1, steps)
    inner, history = memory.inner.initial_state(1), []
    for t in range(steps):
        inner, _ = memory.inner.write(xs.at(t), inner)
        history.append(memory.attention.entry(xs.content[:, t], memory.inner.read(xs.at(t), inner).vector)[0])
    asked = random_inputs(1, 1).at(0)
    h = memory.inner.read(asked, inner).vector[0]
    expected = h + attended(memory, asked, history, h)
    torch.testing.assert_close(memory.read(asked, written(memory, xs)).vector[0], expected)


@torch.no_grad()
def test_what_left_the_window_is_forgotten_and_nothing_before() -> None:
    memory = build("none+cache", window=3)
    xs = random_inputs(2, 6)
    moved = xs._replace(content=torch.cat((xs.content[:, :3] + 1, xs.content[:, 3:]), dim=1))
    for seen, alike in ((5, False), (6, True)):
        states = [written(memory, part.map(lambda f, seen=seen: f[:, :seen])) for part in (xs, moved)]
        vectors = [memory.read(xs.at(5), state).vector for state in states]
        assert torch.equal(*vectors) == alike


def test_an_empty_cache_recalls_nothing_but_its_bias() -> None:
    memory = build("none+cache")
    readout = memory.read(random_inputs(2, 1).at(0), memory.initial_state(2))
    torch.testing.assert_close(readout.vector, memory.attention.out.bias.expand(2, -1))
    torch.testing.assert_close(readout.read_weights.sum(dim=1), torch.ones(2))
    assert not readout.tokens.any()


@torch.no_grad()
def test_bands_hold_what_their_ages_say() -> None:
    memory = build(window=7)
    assert memory.bands == 3
    xs = random_inputs(2, 7)
    _, weights = memory.attention(
        xs.content[:, -1:],
        torch.zeros(2, 1, DIMS.width),
        torch.full((2, 1), 6),
        memory.attention.entry(xs.content, torch.zeros(2, 7, DIMS.width)),
        torch.arange(7).expand(2, -1),
        torch.ones(2, 1, 7, dtype=torch.bool),
    )
    state = (torch.zeros(2, DIMS.width), memory.attention.entry(xs.content, torch.zeros(2, 7, DIMS.width)))
    read = memory.read(xs.at(6), (*state, torch.full((2,), 7.0))).read_weights
    newest_first = weights[:, 0].flip(1)
    expected = torch.stack([part.sum(dim=1) for part in newest_first.split([1, 2, 4], dim=1)], dim=1)
    torch.testing.assert_close(read[:, :3], expected / 2)


@torch.no_grad()
def test_the_counter_goes_round_without_a_trace() -> None:
    """10^6 writes later the newest entries are read as if the episode had begun a little before them."""
    memory = build("none+cache", window=5)
    xs = random_inputs(2, 9)
    cycle = math.lcm(5, CYCLE)
    *held, ring, count = written(memory, xs)
    later = count + cycle * (1_000_000 // cycle)
    asked = random_inputs(2, 1).at(0)
    expected = memory.read(asked, (*held, ring, later))
    state = (*held, ring, memory._wrapped(later))
    assert int(state[-1].max()) < cycle + 5
    for _ in range(2):
        read = memory.read(asked, state)
        torch.testing.assert_close(read.vector, expected.vector, rtol=0, atol=0)
        state = (*held, ring, memory._wrapped(state[-1] + cycle))


def test_a_cycle_of_writes_keeps_ring_and_counter_in_step() -> None:
    memory = build("none+cache", window=3, key=1, value=1, heads=1, counters=0)
    steps = math.lcm(3, CYCLE) + 7
    xs = random_inputs(1, steps)
    with torch.no_grad():
        _, final, _ = memory.scan(xs, memory.initial_state(1), torch.ones(1, steps, dtype=torch.bool))
        state = memory.initial_state(1)
        for t in range(steps):
            state, _ = memory.write(xs.at(t), state)
    torch.testing.assert_close(final[-1], state[-1], rtol=0, atol=0)
    torch.testing.assert_close(final[-2], state[-2])


def test_codes_of_numbers_are_told_apart_by_a_rotation_of_the_query() -> None:
    codes = number_codes().double()
    half = codes.shape[1] // 2
    for age in (1, 5, 100):
        alike = [(codes[t] @ codes[t - age]).item() for t in range(age, CYCLE, 97)]
        torch.testing.assert_close(torch.tensor(alike), torch.full((len(alike),), alike[0]), atol=1e-5, rtol=0)
        assert alike[0] < half - 0.5


def test_at_a_robots_width_the_state_is_within_64_kb() -> None:
    memory = registry.build("gru+cache", MemoryDims(content=96, signature=0, width=64, slots=8))
    assert 60_000 < memory.state_bytes <= 64_000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gru+cache", {"windw": 3}, r"mechanism 'gru\+cache': unknown key 'windw'; did you mean 'window'\?"),
        ("gru+cache", {"inner": {"hiden": 3}}, r"mechanism 'gru': unknown key 'hiden'"),
        ("gru+cache", {"window": 0}, r"CachedConfig.window = 0"),
        ("gru+cache", {"counters": -1}, r"CachedConfig.counters = -1"),
        ("gru+cache", {"position": -1.0}, r"CachedConfig.position = -1.0"),
        ("gur+cache", {}, r"'gur\+cache' is unknown: did you mean 'gru\+cache'\?"),
        ("gru+gate+cache", {}, r"'gru\+gate\+cache' is unknown"),
        ("gru+cache+cache", {}, r"'gru\+cache\+cache' is unknown"),
    ],
)
def test_a_name_or_option_that_does_not_exist_is_refused(name: str, options: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        registry.build(name, DIMS, options)
