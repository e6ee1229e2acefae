"""VLA against its equations, and the paper's propositions against numbers."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, State
from trace_memory_ros.memory.fast_weights import elu_feature, unit
from trace_memory_ros.memory.vla.memory import VlaConfig, VlaInput, VlaMemory

Inputs = Callable[..., MemoryInput]
DIMS = MemoryDims(content=5, signature=0, width=6, slots=3)
GOLDEN = (1 + math.sqrt(5)) / 2
OPTIONS: list[dict[str, Any]] = [
    {},
    {"penalty": "unit_over_sqrt_d", "refresh_period": 7, "refresh_amount": 0.2},
    {"direction": "recall", "hidden": 9, "refresh_amount": 0.0},
]


def make(**options: Any) -> VlaMemory:
    torch.manual_seed(1)
    return VlaMemory(DIMS, VlaConfig(**{"key_width": 8, "rows": 4, **options})).double()


def random_writes(count: int, width: int, seed: int = 0, batch: int = 1) -> list[VlaInput]:
    """Keys as the mechanism makes them, with u = k_hat."""
    generator = torch.Generator().manual_seed(seed)
    raw, values = (torch.randn(count, batch, width, generator=generator, dtype=torch.float64) for _ in range(2))
    k = elu_feature(raw)
    return [VlaInput(*fields) for fields in zip(k, unit(k), unit(k), values, strict=True)]


@pytest.mark.parametrize("options", OPTIONS, ids=str)
@pytest.mark.parametrize("steps", [1, 45])
def test_chunks_equal_algorithm_1(options: dict[str, Any], steps: int, inputs: Inputs) -> None:
    memory = make(**options)
    mask = torch.rand(3, steps, generator=torch.Generator().manual_seed(0)) < torch.tensor([[1.1], [0.7], [0.3]])
    start = started(memory, inputs)
    results, gradients = [], []
    for scan in (memory.scan, lambda *args: Memory.scan(memory, *args)):
        xs, begin = inputs(3, steps, DIMS, torch.float64, True), tuple(s.clone().requires_grad_() for s in start)
        memory.zero_grad()
        states, final, records = scan(xs, begin, mask)
        results.append((*states, *final, *records))
        sum((s.sin() * torch.linspace(1, 2, s.shape[-1])).sum() for s in (*states, *final)).backward()
        S, A, z, _ = begin
        # A is symmetric, so only the symmetric part of its gradient is defined.
        gradients.append([*(p.grad for p in (*memory.parameters(), S, z, xs.content)), A.grad + A.grad.mT])
    for got, wanted in zip(*results, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-9, rtol=1e-9)
    for got, wanted in zip(*gradients, strict=True):
        torch.testing.assert_close(got, wanted, atol=1e-7, rtol=1e-7)


def started(memory: VlaMemory, inputs: Inputs) -> State:
    """A state in which the episodes have made 5, 2 and 0 writes, so that their refreshes do not coincide."""
    mask = torch.arange(5) < torch.tensor([[5], [2], [0]])
    _, state, _ = Memory.scan(memory, inputs(3, 5, DIMS, torch.float64), memory.initial_state(3), mask)
    return tuple(part.detach() for part in state)


def test_nothing_to_scan_returns_the_start(inputs: Inputs) -> None:
    memory = make()
    start = started(memory, inputs)
    states, final, _ = memory.scan(inputs(3, 0, DIMS, torch.float64), start, torch.ones(3, 0, dtype=torch.bool))
    assert [s.shape[1] for s in states] == [0] * 4
    assert all(torch.equal(a, b) for a, b in zip(final, start, strict=True))


def test_the_read_is_equation_11(inputs: Inputs) -> None:
    memory, x = make(), inputs(3, 1, DIMS, torch.float64).at(0)
    S, A, z, count = started(memory, inputs)
    q = elu_feature(memory.w_q(memory.features(x.content)))
    values = torch.stack([S[b] @ q[b] / (z[b] @ q[b]).clamp(min=1e-4) for b in range(3)])
    wanted = memory.read_map(memory.norm_read(unit(values)))
    torch.testing.assert_close(memory.read(x, (S, A, z, count)).vector, wanted)


@pytest.mark.parametrize("writes", [1, 30, 1_000, 1_000_000])
def test_what_is_read_does_not_fade_as_writes_add_up(writes: int, inputs: Inputs) -> None:
    """After so many writes z is about that much longer, and S is not: what reaches the policy may not depend on it."""
    S, A, z, count = (part.float() for part in started(make(), inputs))
    memory, read = make().float(), list[Tensor]()
    memory.norm_read.register_forward_hook(lambda _module, _given, out: read.append(out))
    memory.read(inputs(3, 1, DIMS, torch.float32).at(0), (S, A, (z + 1) * writes, count))
    spread = read[0].std(dim=-1, correction=0)
    torch.testing.assert_close(spread, torch.tensor([1.0, 1.0, 0.0]), atol=1e-3, rtol=0)  # the last wrote nothing


def test_a_is_the_inverse_of_the_penalty() -> None:
    memory, state = make(rows=8, refresh_amount=0.0), make(rows=8).initial_state(1)
    writes = random_writes(30, 8)
    for write in writes:
        state, _ = memory.store(write, state)
    penalty = 0.1 * torch.eye(8) + sum(w.u[0, :, None] * w.u[0, None] for w in writes)
    torch.testing.assert_close(state[1][0], penalty.inverse())


@pytest.mark.parametrize(("penalty", "length"), [("unit", 1.0), ("unit_over_sqrt_d", 1 / math.sqrt(8))])
def test_the_penalty_direction_has_its_length(penalty: str, length: float, inputs: Inputs) -> None:
    u = make(penalty=penalty).project(inputs(2, 3, DIMS, torch.float64).content).u
    torch.testing.assert_close(u.norm(dim=-1), torch.full((2, 3), length, dtype=torch.float64))


def test_the_refresh_comes_every_period() -> None:
    plain, fresh = make(rows=8, refresh_amount=0.0), make(rows=8, refresh_period=3, refresh_amount=0.5)
    state, other = plain.initial_state(1), fresh.initial_state(1)
    still = VlaInput(*(torch.zeros(1, 8, dtype=torch.float64) for _ in range(3)), torch.ones(1, 8, dtype=torch.float64))
    for _ in range(7):
        state, _ = plain.store(still, state)
        other, _ = fresh.store(still, other)
    torch.testing.assert_close(other[1], state[1] + 2 * 0.5 * torch.eye(8, dtype=torch.float64))


def step_jacobian(alpha: Tensor, k: Tensor) -> float:
    return float(torch.linalg.matrix_norm(torch.eye(len(k), dtype=k.dtype) - alpha[:, None] * k[None], ord=2))


@pytest.mark.parametrize(("cosine", "norm"), [(1.0, 1.0), (0.0, GOLDEN), (-1.0, 2.0), (0.5, (1 + math.sqrt(3)) / 2)])
def test_the_jacobian_norm_depends_on_the_angle(cosine: float, norm: float) -> None:
    """Proposition 2 says 1 for any unit vectors; it is (1 + sqrt(5 - 4 cos)) / 2."""
    k = torch.tensor([1.0, 0.0, 0.0], dtype=torch.float64)
    alpha = torch.tensor([cosine, math.sqrt(1 - cosine**2), 0.0], dtype=torch.float64)
    assert step_jacobian(alpha, k) == pytest.approx(norm)


def test_the_jacobian_norm_of_real_steps_lies_between_one_and_the_golden_ratio() -> None:
    memory, state, norms = make(key_width=32, rows=32), make(key_width=32, rows=32).initial_state(1), []
    for write in random_writes(60, 32):
        _, A, _, _ = after = memory.store(write, state)[0]
        norms.append(step_jacobian(unit(A[0] @ write.k_hat[0]), write.k_hat[0]))
        state = after
    assert all(1 <= norm + 1e-9 < GOLDEN for norm in norms)
    assert max(norms) > 1.3


def test_the_step_is_affine_in_the_state_from_the_right() -> None:
    """S_t = S_{t-1} (I - k alpha^T) + v alpha^T; the paper's F S + e alpha^T, F = I - alpha k^T, is another matrix."""
    memory, state = make(rows=8), make(rows=8).initial_state(1)
    *past, write = random_writes(6, 8)
    for earlier in past:
        state, _ = memory.store(earlier, state)
    (new, A, _, _), _ = memory.store(write, state)
    S, k, v = state[0][0], write.k_hat[0], write.v[0]
    alpha, eye = unit(A[0] @ k), torch.eye(8, dtype=torch.float64)
    torch.testing.assert_close(new[0], S @ (eye - k[:, None] * alpha[None]) + v[:, None] * alpha[None])
    papers = (eye - alpha[:, None] * k[None]) @ S + (v - S @ k)[:, None] * alpha[None]
    assert (papers - new[0]).norm() > 0.1 * new[0].norm()


@pytest.mark.parametrize(("direction", "exact"), [("unit", False), ("recall", True)])
def test_exact_recovery_needs_the_other_normalisation(direction: str, exact: bool) -> None:
    """Proposition 3 promises S k_i = v_i for n <= d independent keys."""
    memory = make(key_width=16, rows=16, direction=direction, initial_penalty=1e-6, refresh_amount=0.0)
    state, writes = memory.initial_state(1), random_writes(12, 16)
    for write in writes:
        state, _ = memory.store(write, state)
    error = max(float((state[0][0] @ w.k_hat[0] - w.v[0]).norm() / w.v[0].norm()) for w in writes)
    assert (error < 1e-3) == exact


def test_float32_stays_symmetric_positive_and_near_float64() -> None:
    memory, states, count = make(key_width=16, rows=16), {}, 2_000
    writes = random_writes(count, 16, seed=3)
    for dtype in (torch.float32, torch.float64):
        state: State = tuple(part.to(dtype) for part in memory.initial_state(1))
        for write in writes:
            state, _ = memory.store(VlaInput(*(f.to(dtype) for f in write)), state)
        states[dtype] = state
    S, A = (states[torch.float32][i][0] for i in (0, 1))
    assert torch.equal(A, A.T)
    assert torch.linalg.eigvalsh(A.double()).min() > 0
    torch.testing.assert_close(A.double(), states[torch.float64][1][0], atol=1e-4, rtol=0)
    assert (S.double() - states[torch.float64][0][0]).norm() < 1e-3 * S.norm()


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"initial_penalty": 0.0}, "initial_penalty = 0.0: must be positive"),
        ({"penalty": "half"}, "penalty = 'half': must be one of unit, unit_over_sqrt_d"),
        ({"direction": "x"}, "direction = 'x'"),
        ({"refresh_period": 0}, "refresh_period = 0"),
        ({"rows": 0}, "VlaConfig.rows = 0: must be at least 1"),
    ],
)
def test_impossible_settings_are_named(options: dict[str, Any], named: str) -> None:
    with pytest.raises(ValueError, match=named):
        VlaConfig(**options)
