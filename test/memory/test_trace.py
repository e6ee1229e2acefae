"""TRACE against its equations."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import MemoryDims, MemoryInput
from trace_memory_ros.memory.trace.config import TraceConfig
from trace_memory_ros.memory.trace.losses import balance_loss, consistency_loss, entropy_loss
from trace_memory_ros.memory.trace.memory import TraceMemory
from trace_memory_ros.memory.trace.naive import NaiveStep, naive_scan
from trace_memory_ros.memory.trace.scan import SlotPlan, SlotWeights, slot_scan

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=7, width=6, slots=3)
OPTIONS: list[dict[str, Any]] = [
    {},
    {"anchor": True, "temperature": 0.1},
    {"use_delta": False, "slot_identity": 0.3},
    {"read_norm": True, "address_norm": True},
    {"address_width": 4, "routing_width": 9, "hidden": 8},
    {"routing": "prototypes", "temperature": 0.05},
]


def make(dims: MemoryDims = DIMS, **options: Any) -> TraceMemory:
    torch.manual_seed(1)
    return TraceMemory(dims, TraceConfig(**options)).double()


def stacked(episodes: list[list[NaiveStep]], pick: Callable[[NaiveStep], Tensor]) -> Tensor:
    return torch.stack([torch.stack([pick(step) for step in steps]) for steps in episodes])


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("steps", [1, 5, 9])
def test_the_module_equals_the_equations(options: dict[str, Any], steps: int, inputs: Inputs) -> None:
    memory = make(**options)
    mask = torch.arange(steps) < torch.tensor([[steps], [steps - 1], [(steps + 1) // 2]])
    gradients = []
    for fast in (True, False):
        xs = inputs(3, steps, dtype=torch.float64, grad=True)
        start = torch.full((3, 3, 6), 0.1, dtype=torch.float64, requires_grad=True)
        memory.zero_grad()
        if fast:
            readout, (final,), record = memory(xs, (start,), mask)
            states, route, weights, vector = readout.tokens, record.route, readout.read_weights, readout.vector
            address, strength = readout.address, record.write_strength
        else:
            episodes = naive_scan(memory, xs, start, mask)
            states = stacked(episodes, lambda s: torch.stack(s.slots))
            final, route, weights = states[:, -1], *(stacked(episodes, p) for p in (_route, _read_weights))
            vector = memory.norm_z(stacked(episodes, lambda s: s.readout))
            address = stacked(episodes, lambda s: s.address)
            strength = stacked(episodes, lambda s: s.strength) * mask[..., None]
        outputs = (states, final, route, weights, vector, address, strength)
        sum((o.sin() * torch.linspace(1, 2, o.shape[-1])).sum() for o in outputs).backward()
        gradients.append([p.grad for p in (*memory.parameters(), start, *xs[:4])])
        if fast:
            expected = outputs
    for got, wanted in zip(outputs, expected, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-6, rtol=1e-6)
    for got, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-5, rtol=1e-5)


def _route(step: NaiveStep) -> Tensor:
    return step.route


def _read_weights(step: NaiveStep) -> Tensor:
    return step.read_weights


def test_auxiliary_losses_are_those_of_the_naive_steps(inputs: Inputs) -> None:
    memory, xs = make(anchor=True, read_norm=True), inputs(3, 5, dtype=torch.float64)
    mask = torch.arange(5) < torch.tensor([[5], [3], [1]])
    states, _, records = memory.scan(xs, memory.initial_state(3), mask)
    losses = memory.auxiliary(xs, states, records, mask)
    episodes = naive_scan(memory, xs, memory.initial_state(3)[0], mask)
    route, readout, proposal = (stacked(episodes, pick) for pick in (_route, lambda s: s.readout, lambda s: s.proposal))
    torch.testing.assert_close(losses["balance"], balance_loss(route, mask))
    torch.testing.assert_close(losses["entropy"], entropy_loss(route, mask))
    torch.testing.assert_close(losses["consistency"], consistency_loss(readout, proposal, mask), atol=1e-6, rtol=1e-6)


def test_a_slot_that_gets_no_route_is_unchanged_bit_for_bit(inputs: Inputs) -> None:
    diffuse, xs = make().float(), inputs(2, 4)
    sharp = TraceMemory(DIMS, TraceConfig(temperature=1e-9))
    sharp.load_state_dict(diffuse.state_dict())
    _, state, _ = diffuse.scan(xs, diffuse.initial_state(2), torch.ones(2, 4, dtype=torch.bool))
    _, (after,), record = sharp.step(xs.at(3), state, torch.ones(2, dtype=torch.bool))
    for b in range(2):
        chosen = int(record.route[b].argmax())
        assert record.route[b].tolist() == [float(k == chosen) for k in range(3)]
        for k in range(3):
            same = after[b, k].numpy(force=True).tobytes() == state[0][b, k].numpy(force=True).tobytes()
            assert same == (k != chosen)


def test_without_slot_identity_the_slots_never_differ(inputs: Inputs) -> None:
    xs, mask = inputs(2, 6, dtype=torch.float64), torch.ones(2, 6, dtype=torch.bool)
    plain, told_apart = make(slot_identity=0.0), make()
    (slots,), _, records = plain.scan(xs, plain.initial_state(2), mask)
    torch.testing.assert_close(records.route, torch.full_like(records.route, 1 / 3), atol=1e-12, rtol=0)
    torch.testing.assert_close(slots, slots[:, :, :1].expand_as(slots), atol=1e-12, rtol=0)
    (slots,), _, _ = told_apart.scan(xs, told_apart.initial_state(2), mask)
    assert (slots[:, -1, 0] - slots[:, -1, 1]).abs().max() > 1e-3


@pytest.mark.parametrize("options", OPTIONS, ids=str)
def test_gradients_reach_every_parameter(options: dict[str, Any], inputs: Inputs) -> None:
    memory, xs = make(**options), inputs(2, 4, dtype=torch.float64)
    readout, _, _ = memory(xs, memory.initial_state(2), torch.ones(2, 4, dtype=torch.bool))
    readout.vector[:, -1].sin().sum().backward()
    for name, parameter in memory.named_parameters():
        assert parameter.grad is not None, name
        assert parameter.grad.abs().max() > 0, name


@pytest.mark.parametrize("options", [{"anchor": True}, {"routing": "prototypes", "use_delta": False}], ids=str)
def test_gradients_of_the_module_are_exact(options: dict[str, Any]) -> None:
    dims = MemoryDims(content=2, signature=3, width=2, slots=2)
    memory = make(dims, **options)
    mask = torch.tensor([[True, True, True], [True, False, True]])
    names = [name for name, _ in memory.named_parameters()]
    fields = [torch.randn(2, 3, w, dtype=torch.float64, requires_grad=True) for w in (2, 3, 3, 2)]

    def run(*tensors: Tensor) -> tuple[Tensor, ...]:
        weights = dict(zip(names, tensors[4:], strict=True))
        arguments = (MemoryInput(*tensors[:4]), memory.initial_state(2), mask)
        readout, _, record = torch.func.functional_call(memory, weights, arguments)
        return readout.vector, readout.tokens, record.route, record.write_strength

    assert torch.autograd.gradcheck(run, (*fields, *(p.detach().requires_grad_() for p in memory.parameters())))


def test_gradients_of_the_recurrence_are_exact() -> None:
    steps, batch, slots, width, hidden = 4, 2, 3, 2, 3
    shapes = [(batch, slots, width), (steps, batch, width), (steps, batch, slots), (steps, batch, slots, 2 * hidden)]
    shapes += [(2 * hidden, width), (width, hidden), (width,), (1, hidden), (1,)]
    torch.manual_seed(2)
    tensors = [torch.randn(*shape, dtype=torch.float64, requires_grad=True) for shape in shapes]
    write = torch.tensor([[True, True], [False, True], [True, False], [False, False]])

    def run(initial: Tensor, query: Tensor, bias: Tensor, first: Tensor, *weights: Tensor) -> tuple[Tensor, ...]:
        return slot_scan(initial, SlotPlan(query, bias, first, write), SlotWeights(*weights))

    assert torch.autograd.gradcheck(run, tensors)


def test_paper_size_has_the_papers_parameter_count() -> None:
    with torch.device("meta"):
        memory = TraceMemory(TraceConfig.paper_dims(), TraceConfig.paper())
    assert memory.dims.signature == 5219
    counts = {name: sum(p.numel() for p in block.parameters()) for name, block in memory.named_children()}
    assert {name: count for name, count in counts.items() if count} == {
        "phi_g": 2_935_296,
        "phi_delta": 2_935_296,
        "phi_rho": 787_456,
        "phi_w": 1_311_744,
        "phi_m": 1_049_600,
        "phi_beta": 787_457,
        "phi_r": 1_049_600,
        "w_q": 262_144,
        "w_k": 262_144,
        "w_k_read": 262_144,
        "w_v_read": 262_144,
    }
    assert sum(counts.values()) == 11_905_025


def test_unset_sizes_are_the_memorys_width() -> None:
    named = make(address_width=6, routing_width=6, hidden=6)
    assert [p.shape for p in make().parameters()] == [p.shape for p in named.parameters()]


def test_prototypes_route_apart_what_lies_apart(inputs: Inputs) -> None:
    memory = make(routing="prototypes")
    xs, mask = inputs(3, 8, dtype=torch.float64), torch.ones(3, 8, dtype=torch.bool)
    place = torch.arange(3, dtype=torch.float64)[:, None, None] * 20
    xs = xs._replace(xi=xs.xi + place)
    memory.calibrate(xs, mask)
    _, _, records = memory.scan(xs, memory.initial_state(3), mask)
    main = records.route.argmax(dim=-1)
    assert (main == main[:, :1]).all()
    assert len(set(main[:, 0].tolist())) == 3
    assert records.route.amax(dim=-1).min() > 0.99


def test_prototypes_need_a_signature_each(inputs: Inputs) -> None:
    memory, mask = make(routing="prototypes"), torch.tensor([[True, True, False, False]])
    with pytest.raises(ValueError, match="2 signatures for 3 prototypes"):
        memory.calibrate(inputs(1, 4, dtype=torch.float64), mask)


def test_no_signature_no_trace() -> None:
    with pytest.raises(ValueError, match=r"MemoryDims.signature = 0.*'gru'"):
        TraceMemory(MemoryDims(content=2, signature=0, width=2, slots=2))


@pytest.mark.parametrize(
    ("option", "value", "error"),
    [
        ("temperature", 0.0, ValueError),
        ("temperature", float("nan"), ValueError),
        ("temperature", "1", TypeError),
        ("temperature", True, TypeError),
        ("slot_identity", -0.1, ValueError),
        ("hidden", 0, ValueError),
        ("hidden", 2.5, TypeError),
        ("anchor", "yes", TypeError),
        ("routing", "random", ValueError),
    ],
)
def test_a_bad_setting_is_named(option: str, value: object, error: type[Exception]) -> None:
    with pytest.raises(error, match=f"TraceConfig.{option} = "):
        TraceConfig(**{option: value})  # type: ignore[arg-type]
