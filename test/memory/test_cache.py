"""The attention cache finds what was written by content and by number, and forgets nothing of its window."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims, MemoryInput, State
from trace_memory_ros.memory.cache.attention import COUNTED, CYCLE, first_ages, number_codes
from trace_memory_ros.memory.cache.memory import CachedMemory
from trace_memory_ros.testing.inputs import DIMS, random_inputs

ALL = torch.ones(2, dtype=torch.bool)


def build(name: str = "gru+cache", **options: object) -> CachedMemory:
    torch.manual_seed(0)
    memory = registry.build(name, DIMS, options).eval()
    assert isinstance(memory, CachedMemory)
    # As it is after training: at first nothing is recalled.
    torch.nn.init.normal_(memory.attention.out.weight)
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
    codes, newest, first = number_codes(), len(history) - 1, config.first
    asked = torch.cat((attention.norm(x.content[0]), h, codes[newest]))
    q = attention.to_key_query(asked).reshape(attention.count, config.key)
    u = attention.to_age_query(asked).reshape(attention.count, -1)
    f = attention.to_first_query(asked).reshape(attention.count, -1)
    numbered = list(enumerate(history))
    last = numbered[-memory.ring :]
    found = []
    for head in range(attention.count):
        kept = [q[head] @ entry[: config.key] / math.sqrt(config.key) + f[head, n] for n, entry in numbered[:first]]
        ages = [config.position * u[head] @ codes[newest - n] for n, _ in last]
        recent = [
            q[head] @ entry[: config.key] / math.sqrt(config.key) + age
            for age, (_, entry) in zip(ages, last, strict=True)
        ]
        scores = torch.stack([*kept, *recent])
        if head < config.heads:
            weights = torch.cat((scores, attention.none[head])).softmax(dim=0)[:-1]
        else:
            weights = torch.sigmoid(scores + attention.refusal[head - config.heads]) / COUNTED
        shown = [*numbered[:first], *last]
        found.append(sum(w * entry[config.key :] for w, (_, entry) in zip(weights, shown, strict=True)))
    recalled: Tensor = attention.out(torch.cat(found))
    return recalled


@pytest.mark.parametrize("first", [1, 2, 3])
@pytest.mark.parametrize("steps", [1, 3, 9])
@torch.no_grad()
def test_the_vector_is_what_the_equations_say(steps: int, first: int) -> None:
    memory = build(window=4, first=first, key=3, value=5, heads=2, counters=2)
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
    memory = build("none+cache", window=5, first=2)
    xs = random_inputs(2, 6)
    content = xs.content.clone()
    content[:, 2, 0] += 1
    moved = xs._replace(content=content)
    for seen, alike in ((5, False), (6, True)):
        states = [written(memory, part.map(lambda f, seen=seen: f[:, :seen])) for part in (xs, moved)]
        vectors = [memory.read(xs.at(5), state).vector for state in states]
        assert torch.equal(*vectors) == alike


@torch.no_grad()
def test_the_first_writes_are_never_forgotten() -> None:
    memory = build("none+cache", window=5, first=2)
    xs = random_inputs(2, 12)
    for moved, alike in ((0, False), (1, False), (2, True)):
        content = xs.content.clone()
        content[:, moved, 0] += 1
        states = [written(memory, part) for part in (xs, xs._replace(content=content))]
        assert torch.equal(*(memory.read(xs.at(11), state).vector for state in states)) == alike


@torch.no_grad()
def test_what_is_older_than_any_training_episode_is_not_seen_unless_it_is_one_of_the_first() -> None:
    memory = build("none+cache", window=10, first=2).train()
    memory.unroll(random_inputs(2, 5), torch.ones(2, 5, dtype=torch.bool))
    memory.eval()
    assert memory.attention.known == 5
    xs = random_inputs(2, 8)
    for moved, alike in ((1, False), (2, True), (3, False)):
        content = xs.content.clone()
        content[:, moved, 0] += 1
        states = [written(memory, part) for part in (xs, xs._replace(content=content))]
        assert torch.equal(*(memory.read(xs.at(7), state).vector for state in states)) == alike


@torch.no_grad()
def test_the_clock_stands_still_beyond_training() -> None:
    memory, asked = build("none+cache"), random_inputs(2, 1).at(0)
    memory.attention.longest.fill_(7.0)
    memory.attention.to_age_query.weight.zero_()
    memory.attention.to_age_query.bias.zero_()
    empty = memory.initial_state(2)
    entries = torch.ones_like(empty[-2])
    reads = [memory.read(asked, (*empty[:-2], entries, torch.full((2,), n))).vector for n in (30.0, 31.0, 9000.0, 8.0)]
    torch.testing.assert_close(reads[1], reads[0])
    torch.testing.assert_close(reads[2], reads[0])
    assert not torch.allclose(reads[3], reads[0])


def test_training_reads_without_the_clock_now_and_then() -> None:
    memory, xs, mask = build("none+cache"), random_inputs(8, 60), torch.ones(8, 60, dtype=torch.bool)
    whole = memory.unroll(xs, mask)[0].vector
    memory.train()
    changed = (memory.unroll(xs, mask)[0].vector - whole).abs().amax(dim=2) > 1e-6
    assert 0.05 < changed.float().mean() < 0.3
    with torch.no_grad():
        torch.testing.assert_close(memory.unroll(xs, mask)[0].vector, whole)


def test_an_empty_cache_recalls_nothing() -> None:
    memory, xs = build("none+cache"), random_inputs(2, 4)
    readout = memory.read(xs.at(0), memory.initial_state(2))
    assert not readout.vector.any()
    torch.testing.assert_close(readout.read_weights.sum(dim=1), torch.ones(2))
    assert not readout.tokens.any()


@torch.no_grad()
def test_bands_hold_what_their_ages_say() -> None:
    memory = build(window=8, first=1)
    assert memory.bands == 4
    xs = random_inputs(2, 7)
    entries = memory.attention.entry(xs.content, torch.zeros(2, 7, DIMS.width))
    entries = torch.cat((entries[:, :1], entries), dim=1)
    numbers = torch.tensor([0, *range(7)])
    asked = xs.content[:, -1:], torch.zeros(2, 1, DIMS.width), torch.full((2, 1), 6)
    _, weights = memory.attention(*asked, entries, numbers.expand(2, -1), torch.ones(2, 1, 8, dtype=torch.bool))
    read = memory.read(xs.at(6), (torch.zeros(2, DIMS.width), entries, torch.full((2,), 7.0))).read_weights
    newest_first = weights[:, 0].flip(1)
    expected = torch.stack([part.sum(dim=1) for part in newest_first.split([1, 2, 4, 1], dim=1)], dim=1)
    torch.testing.assert_close(read[:, :4], expected / 2)


@torch.no_grad()
def test_the_counter_goes_round_without_a_trace() -> None:
    """10^6 writes later the newest entries are read as if the episode had begun a little before them."""
    memory = build("none+cache", window=7, first=2)
    xs = random_inputs(2, 9)
    cycle = math.lcm(5, CYCLE)
    *held, ring, count = written(memory, xs)
    count = count + cycle
    later = count + cycle * (1_000_000 // cycle)
    asked = random_inputs(2, 1).at(0)
    expected = memory.read(asked, (*held, ring, later))
    state = (*held, ring, memory._wrapped(later))
    assert int(state[-1].max()) < cycle + CYCLE
    for _ in range(2):
        read = memory.read(asked, state)
        torch.testing.assert_close(read.vector, expected.vector, rtol=0, atol=0)
        state = (*held, ring, memory._wrapped(state[-1] + cycle))


@torch.no_grad()
def test_the_write_at_which_the_counter_goes_round_reads_as_its_neighbours_do() -> None:
    """Not as the last write whose number has a code."""
    memory, asked = build("none+cache", window=7, first=2), random_inputs(2, 1).at(0)
    *held, ring, _ = written(memory, random_inputs(2, 9))
    cycle = math.lcm(5, CYCLE)
    for beyond in range(cycle + CYCLE - 1, cycle + CYCLE + 3):
        count = torch.full((2,), float(beyond))
        expected = memory.read(asked, (*held, ring, count))
        read = memory.read(asked, (*held, ring, memory._wrapped(count)))
        torch.testing.assert_close(read.vector, expected.vector, rtol=0, atol=0)


def test_a_cycle_of_writes_keeps_ring_and_counter_in_step() -> None:
    memory = build("none+cache", window=5, first=2, key=1, value=1, heads=1, counters=0)
    steps = CYCLE + math.lcm(3, CYCLE) + 9
    xs = random_inputs(1, steps)
    with torch.no_grad():
        _, final, _ = memory.scan(xs, memory.initial_state(1), torch.ones(1, steps, dtype=torch.bool))
        state = memory.initial_state(1)
        for t in range(steps):
            state, _ = memory.write(xs.at(t), state)
    torch.testing.assert_close(final[-1], state[-1], rtol=0, atol=0)
    torch.testing.assert_close(final[-2], state[-2])


@pytest.mark.parametrize("mask", [ALL[:, None].expand(2, 9), torch.arange(18).reshape(2, 9) % 3 > 0])
def test_unroll_equals_steps_with_gradients(mask: Tensor) -> None:
    memory, xs = build(window=5, first=2).double(), random_inputs(2, 9).map(Tensor.double)
    gradients, vectors = [], []
    for fast in (True, False):
        memory.zero_grad()
        if fast:
            vector = memory.unroll(xs, mask)[0].vector
        else:
            state, reads = memory.initial_state(2), []
            for t in range(9):
                readout, state, _ = memory.step(xs.at(t), state, mask[:, t])
                reads.append(readout.vector)
            vector = torch.stack(reads, dim=1)
        vector.sin().sum().backward()
        vectors.append(vector.detach())
        gradients.append({name: p.grad for name, p in memory.named_parameters() if "to_token" not in name})
    torch.testing.assert_close(*vectors)
    assert all(grad is not None and grad.any() for grad in gradients[0].values())
    torch.testing.assert_close(*gradients)


@torch.no_grad()
def test_small_contents_are_told_apart_as_large_ones_are() -> None:
    memory, xs = build("none+cache"), random_inputs(2, 6)
    small = xs._replace(content=xs.content / 20)
    reads = [memory.read(part.at(5), written(memory, part)) for part in (xs, small)]
    torch.testing.assert_close(reads[0].vector, reads[1].vector, atol=1e-2, rtol=1e-2)


@torch.no_grad()
def test_at_the_start_heads_look_about_ages_that_are_evenly_spaced_by_ratios() -> None:
    scores = first_ages(8, 224) @ number_codes()[:224].T
    ages = torch.tensor([224 ** ((i + 0.5) / 8) for i in range(8)])
    assert (scores.argmax(dim=1) - ages).abs().le(0.5).all()
    # A hill: less at half and at twice the age, where ages are far enough apart for that.
    for age, score in zip(ages.tolist()[1:], scores[1:], strict=True):
        aside = [score[round(other)] for other in (age / 2, 2 * age) if other < 223]
        assert max(aside) < score.max() - 0.5


def test_at_a_robots_width_the_state_is_within_64_kb() -> None:
    memory = registry.build("gru+cache", MemoryDims(content=96, signature=0, width=64, slots=8))
    assert 60_000 < memory.state_bytes <= 64_000


@pytest.mark.parametrize(
    ("name", "options", "message"),
    [
        ("gru+cache", {"windw": 3}, r"mechanism 'gru\+cache': unknown key 'windw'; did you mean 'window'\?"),
        ("gru+cache", {"inner": {"hiden": 3}}, r"mechanism 'gru': unknown key 'hiden'"),
        ("gru+cache", {"window": 0}, r"CachedConfig.window = 0"),
        ("gru+cache", {"window": 16}, r"CachedConfig.first = 16: must be at least 1, and less than window = 16"),
        ("gru+cache", {"clock_dropout": 1.1}, r"CachedConfig.clock_dropout = 1.1"),
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
