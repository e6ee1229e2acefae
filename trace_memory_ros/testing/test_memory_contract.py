"""Every mechanism keeps the promises of `memory/base.py`."""

from __future__ import annotations

import pytest
import torch
import yaml
from torch import Tensor

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory, MemoryInput, Readout, State, WriteRecord
from trace_memory_ros.testing.inputs import Inputs

# Ragged ends, an empty episode, and steps inside an episode at which nothing is to be written.
MASK = torch.tensor(
    [
        [1, 1, 1, 1, 1, 1, 1],
        [1, 1, 0, 1, 0, 0, 0],
        [0, 0, 1, 1, 1, 0, 1],
        [0, 0, 0, 0, 0, 0, 0],
        [1, 0, 0, 0, 0, 0, 0],
    ],
    dtype=torch.bool,
)


def repeated_step(memory: Memory, xs: MemoryInput, mask: Tensor) -> tuple[Readout, list[State], WriteRecord]:
    """What `Memory.forward` is a faster form of, with the state after every step."""
    state, readouts, states, records = memory.initial_state(mask.shape[0]), [], [], []
    for t in range(mask.shape[1]):
        readout, state, record = memory.step(xs.at(t), state, mask[:, t])
        readouts.append(readout)
        states.append(state)
        records.append(record)
    stack = [torch.stack(field, dim=1) for field in zip(*readouts, strict=True)]
    return Readout(*stack), states, WriteRecord(*(torch.stack(f, dim=1) for f in zip(*records, strict=True)))


def assert_close(actual: tuple[Tensor, ...], expected: tuple[Tensor, ...], atol: float = 1e-5) -> None:
    """Field by field."""
    for got, wanted in zip(actual, expected, strict=True):
        torch.testing.assert_close(got, wanted, atol=atol, rtol=atol)


def test_forward_equals_repeated_step(memory: Memory, inputs: Inputs) -> None:
    xs = inputs(*MASK.shape)
    readout, final, records = memory(xs, memory.initial_state(MASK.shape[0]), MASK)
    stepped_readout, states, stepped_records = repeated_step(memory, xs, MASK)
    assert_close(readout, stepped_readout)
    assert_close(final, states[-1])
    assert_close(records, stepped_records)


def test_scan_equals_the_naive_scan_with_gradients(memory: Memory, inputs: Inputs) -> None:
    gradients = []
    results = []
    for scan in (memory.scan, lambda *a: Memory.scan(memory, *a)):
        xs = inputs(*MASK.shape, grad=True)
        memory.zero_grad()
        states, final, records = scan(xs, memory.initial_state(MASK.shape[0]), MASK)
        results.append((*states, *final, *records))
        target = sum(
            (s.sin() * torch.linspace(0, 1, s.shape[-1])).sum() for s in (*states, records.route) if s.requires_grad
        )
        if isinstance(target, Tensor):
            target.backward()
        gradients.append([p.grad for p in (*memory.parameters(), *xs[:4])])
    assert_close(results[0], results[1])
    for fast, naive in zip(*gradients, strict=True):
        torch.testing.assert_close(fast, naive, atol=2e-5, rtol=1e-4)


@pytest.mark.parametrize("at", [None, [[0, 4, 6]] * len(MASK)])
def test_unroll_equals_the_naive_scan_and_reads_with_gradients(
    memory: Memory, inputs: Inputs, at: list[list[int]] | None
) -> None:
    steps = None if at is None else torch.tensor(at)
    results, gradients = [], []
    for fast in (True, False):
        xs = inputs(*MASK.shape, grad=True)
        asked = None if at is None else inputs(len(MASK), 3, grad=True)
        memory.zero_grad()
        if fast:
            readout, states, records = memory.unroll(xs, MASK, asked, steps)
        else:
            states, _, records = Memory.scan(memory, xs, memory.initial_state(len(MASK)), MASK)
            readout = Memory.unroll(memory, xs, MASK, asked, steps)[0]
        losses = memory.auxiliary(xs, states, records, MASK)
        results.append((*readout, *records, *losses.values()))
        parts = [(field.sin() * torch.linspace(0, 1, field.shape[-1] or 1)).sum() for field in readout]
        # A mechanism that keeps nothing has nothing to differentiate.
        torch.stack([*parts, *losses.values(), *(0 * field.sum() for field in xs[:4])]).sum().backward()
        gradients.append([p.grad for p in (*memory.parameters(), *xs[:4], *(asked[:4] if asked else ()))])
    assert_close(results[0], results[1])
    for ours, naive in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, naive, atol=2e-5, rtol=1e-4)


def test_padding_does_not_reach_the_state(memory: Memory, inputs: Inputs) -> None:
    xs = inputs(*MASK.shape)
    spoiled = xs.map(lambda f: torch.where(MASK[..., None], f, torch.full_like(f, 1e3)))
    start = memory.initial_state(MASK.shape[0])
    assert_close(memory.scan(xs, start, MASK)[0], memory.scan(spoiled, start, MASK)[0], atol=0)


def test_readout_and_record_shapes(memory: Memory, inputs: Inputs) -> None:
    dims = memory.dims
    readout, _, record = memory.step(inputs(4, 1).at(0), memory.initial_state(4), torch.ones(4, dtype=torch.bool))
    count, width = memory.slot_count, dims.width
    assert [f.shape for f in readout] == [(4, count, width), (4, width), (4, count), (4, memory.address_width)]
    assert [f.shape for f in record] == [(4, count), (4, count), (4,), (4,), (4,)]
    assert record.wrote.dtype == torch.bool
    if count:
        torch.testing.assert_close(readout.read_weights.sum(dim=1), torch.ones(4))
        torch.testing.assert_close(record.route.sum(dim=1), torch.ones(4))
        assert ((record.write_strength >= 0) & (record.write_strength <= 1)).all()
        # A mechanism may gather several writes before it changes its entries.
        _, _, records = memory(inputs(4, 9), memory.initial_state(4), torch.ones(4, 9, dtype=torch.bool))
        assert records.write_strength.flatten(1).any(dim=1).all()


def test_state_keeps_its_size(memory: Memory, inputs: Inputs) -> None:
    xs, state = inputs(2, 9), memory.initial_state(2)
    shapes = [t.shape for t in state]
    for t in range(9):
        _, state, _ = memory.step(xs.at(t), state, torch.ones(2, dtype=torch.bool))
        assert [s.shape for s in state] == shapes
    assert memory.state_bytes == sum(4 * t[0].numel() for t in state)


def test_episodes_of_a_batch_do_not_mix(memory: Memory, inputs: Inputs) -> None:
    xs = inputs(*MASK.shape)
    together, _, _ = memory(xs, memory.initial_state(MASK.shape[0]), MASK)
    for b in range(MASK.shape[0]):
        one = slice(b, b + 1)
        alone, _, _ = memory(MemoryInput(*(f[one] for f in xs[:4])), memory.initial_state(1), MASK[one])
        assert_close(alone, Readout(*(f[one] for f in together)))


def test_a_step_without_write_keeps_the_state_bit_for_bit(memory: Memory, inputs: Inputs) -> None:
    xs, state = inputs(3, 4), memory.initial_state(3)
    for t in range(3):
        _, state, _ = memory.step(xs.at(t), state, torch.ones(3, dtype=torch.bool))
    write = torch.tensor([True, False, False])
    _, after, record = memory.step(xs.at(3), state, write)
    for new, old in zip(after, state, strict=True):
        assert new[1:].numpy(force=True).tobytes() == old[1:].numpy(force=True).tobytes()
    changed = [not torch.equal(new[0], old[0]) for new, old in zip(after, state, strict=True)]
    assert any(changed) == bool(record.wrote[0])
    assert not record.wrote[1:].any()
    assert not record.write_strength[1:].any()


def test_a_step_without_write_reads_as_read_does_bit_for_bit(memory: Memory, inputs: Inputs) -> None:
    xs, state = inputs(1, 4), memory.initial_state(1)
    for t in range(3):
        _, state, _ = memory.step(xs.at(t), state, torch.ones(1, dtype=torch.bool))
    stepped, _, _ = memory.step(xs.at(3), state, torch.zeros(1, dtype=torch.bool))
    for a, b in zip(stepped, memory.read(xs.at(3), state), strict=True):
        assert a.numpy(force=True).tobytes() == b.numpy(force=True).tobytes()


def test_the_read_follows_the_state_of_its_own_tick(memory: Memory, inputs: Inputs) -> None:
    xs, state = inputs(2, 1).at(0), memory.initial_state(2)
    readout, new, _ = memory.step(xs, state, torch.ones(2, dtype=torch.bool))
    assert_close(readout, memory.read(xs, new))


def test_a_new_episode_starts_from_the_same_state(memory: Memory, inputs: Inputs) -> None:
    xs, mask, start = inputs(2, 5), torch.ones(2, 5, dtype=torch.bool), memory.initial_state(2)
    first, _, _ = memory(xs, memory.initial_state(2), mask)
    again, _, _ = memory(xs, memory.initial_state(2), mask)
    assert_close(first, again, atol=0)
    assert_close(memory.initial_state(2), start, atol=0)
    assert all(torch.equal(t[0], t[1]) for t in start)


@pytest.mark.parametrize("cut", [1, 3, 6])
def test_a_scan_can_be_cut_anywhere(memory: Memory, inputs: Inputs, cut: int) -> None:
    xs, start = inputs(*MASK.shape), memory.initial_state(MASK.shape[0])
    _, whole, _ = memory.scan(xs, start, MASK)
    _, half, _ = memory.scan(xs.map(lambda f: f[:, :cut]), start, MASK[:, :cut])
    _, rest, _ = memory.scan(xs.map(lambda f: f[:, cut:]), half, MASK[:, cut:])
    assert_close(rest, whole)


def test_embedding_once_changes_nothing(memory: Memory, inputs: Inputs) -> None:
    xs, start = inputs(*MASK.shape), memory.initial_state(MASK.shape[0])
    embedded = memory.embed(xs)
    states, _, records = memory.scan(xs, start, MASK)
    embedded_states, _, embedded_records = memory.scan(embedded, start, MASK)
    assert_close(states, embedded_states)
    assert_close(memory.read_sequence(xs, states), memory.read_sequence(embedded, states))
    losses = memory.auxiliary(xs, states, records, MASK)
    assert_close(
        tuple(losses.values()), tuple(memory.auxiliary(embedded, states, embedded_records, MASK).values()), atol=1e-6
    )


def test_the_signature_matters_exactly_where_it_is_said_to(memory: Memory, inputs: Inputs) -> None:
    xs, start = inputs(*MASK.shape), memory.initial_state(MASK.shape[0])
    moved = xs._replace(xi=xs.xi + 1, delta=xs.delta - 1)
    (readout, _, _), (other, _, _) = memory(xs, start, MASK), memory(moved, start, MASK)
    assert memory.uses_signature != torch.equal(readout.vector, other.vector)


def test_later_writes_change_nothing_where_delays_are_said_not_to_matter(memory: Memory, inputs: Inputs) -> None:
    if memory.delay_matters:
        pytest.skip("delays matter to it")
    xs, written = inputs(2, 40), torch.ones(2, 40, dtype=torch.bool)
    asked, start = xs.at(0), memory.initial_state(2)
    _, early, _ = memory.scan(xs.map(lambda f: f[:, :1]), start, written[:, :1])
    _, late, _ = memory.scan(xs, start, written)
    assert_close(memory.read(asked, early), memory.read(asked, late))


def test_what_is_read_depends_on_writes_as_far_back_as_is_said(memory: Memory, inputs: Inputs) -> None:
    if memory.reach is None:
        pytest.skip("on all of them")
    memory.double()
    steps = memory.reach + 1
    xs = inputs(1, steps, dtype=torch.float64)
    asked, start, written = xs.at(0), memory.initial_state(1), torch.ones(1, steps, dtype=torch.bool)

    def read(content: Tensor) -> Readout:
        _, state, _ = memory.scan(memory.embed(xs._replace(content=content)), start, written)
        return memory.read(asked, state)

    first, second = torch.zeros(2, 1, steps, 1, dtype=torch.float64)
    first[:, 0], second[:, 1] = 10.0, 10.0
    plain, beyond, within = (read(xs.content + change) for change in (0.0, first, second))
    assert_close(beyond, plain)
    with pytest.raises(AssertionError):
        assert_close(within, plain, atol=0.0)


def test_the_state_follows_the_weights_precision(memory: Memory, inputs: Inputs) -> None:
    memory.double()
    readout, state, _ = memory(
        inputs(2, 3, dtype=torch.float64), memory.initial_state(2), torch.ones(2, 3, dtype=torch.bool)
    )
    assert readout.vector.dtype == torch.float64
    assert all(t.dtype == torch.float64 for t in state)


def test_the_address_depends_on_the_input_alone(memory: Memory, inputs: Inputs) -> None:
    xs, start = inputs(*MASK.shape), memory.initial_state(MASK.shape[0])
    readout, _, _ = memory(xs, start, MASK)
    torch.testing.assert_close(memory.address(xs), readout.address)
    torch.testing.assert_close(memory.address(memory.embed(xs).at(2)), readout.address[:, 2])


def test_a_stored_description_builds_it_again(memory: Memory) -> None:
    stored = yaml.safe_load(yaml.safe_dump(registry.config_of(memory)))
    rebuilt = registry.from_config(stored)
    assert type(rebuilt) is type(memory)
    assert (rebuilt.name, rebuilt.dims, rebuilt.config) == (memory.name, memory.dims, memory.config)
    rebuilt.load_state_dict(memory.state_dict())
    for (name, weight), (other, same) in zip(memory.named_parameters(), rebuilt.named_parameters(), strict=True):
        assert name == other
        assert torch.equal(weight, same)
