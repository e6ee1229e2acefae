"""What VLA's paper says of states, Jacobians, recovery, precision and time, measured."""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

from studies.recall.tasks.mqar_models import (
    LAMBDA_0,
    REFRESH,
    Backbone,
    Delta,
    Linear,
    Mixer,
    Softmax,
    Vla,
)
from trace_memory_ros.arm.sizes import ARM_DIMS, MATCHED
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims, MemoryInput, State
from trace_memory_ros.memory.fast_weights import elu_feature, unit
from trace_memory_ros.memory.rank_one_scan import Writes, rank_one_states
from trace_memory_ros.memory.vla.memory import VlaConfig, VlaInput, VlaMemory
from trace_memory_ros.memory.vla.scan import Penalty, penalty_scan

WIDTH = 32
"""d_h of the paper."""
TOKENS = 1_000
Streams = tuple[Tensor, Tensor]


def random_stream(tokens: int, seed: int, mean: float = 0.0) -> Streams:
    """Raw keys N(0, I) and values N(mean, I) / sqrt(d_h), each `(1, tokens, d_h)`."""
    generator = torch.Generator().manual_seed(seed)
    keys, values = (torch.randn(1, tokens, WIDTH, generator=generator) for _ in range(2))
    return keys, (values + mean) / math.sqrt(WIDTH)


def state_norms(seeds: int) -> dict[str, Any]:
    """Frobenius norms of S after 1,000 random tokens, and of VLA's A; values with and without a mean of their own."""
    figures: dict[str, Any] = {}
    for label, mean in (("values_without_mean", 0.0), ("values_with_mean", 1.0)):
        runs = [_norms(*random_stream(TOKENS, seed, mean)) for seed in range(seeds)]
        figures[label] = {name: statistics.fmean(run[name] for run in runs) for name in runs[0]}
    return figures


def _norms(raw: Tensor, v: Tensor) -> dict[str, float]:
    k, figures = elu_feature(raw), {}
    k_hat, signed = unit(k), unit(functional.silu(raw))
    start = raw.new_zeros(1, WIDTH, WIDTH)
    fade = torch.full(raw.shape[:2], 0.95).log()
    writes = {
        "linear_attention": Writes(k, k, v, residual=False),
        "deltanet": Writes(signed, signed, v),
        "deltanet_decay_rule": Writes(k_hat, k_hat, v, fade),
    }
    for name, length in (("vla", 1.0), ("vla_algorithm_1", WIDTH**-0.5)):
        penalty = run_penalty(length * k_hat, k_hat)
        writes[name] = Writes(k_hat, unit(penalty.alpha), v)
        figures[f"{name}_inverse"] = float(penalty.inverse[:, -1].norm())
    for name, write in writes.items():
        norms = rank_one_states(start, write)[0].flatten(2).norm(dim=-1)[0]
        figures[name], figures[f"{name}_greatest"] = float(norms[-1]), float(norms.max())
        figures[f"{name}_growth_500_to_1000"] = float(norms[-1] / norms[TOKENS // 2 - 1])
    return figures


def run_penalty(u: Tensor, k_hat: Tensor) -> Penalty:
    """A from I / lambda_0 over a stream of `(1, T, d_h)`."""
    start = torch.eye(WIDTH, dtype=u.dtype)[None] / LAMBDA_0
    return penalty_scan(start, u.new_zeros(1), u, k_hat, torch.ones(u.shape[:2], dtype=torch.bool), REFRESH)


def jacobian_norms(tokens: int = 200) -> dict[str, Any]:
    """Spectral norm of I - alpha_hat k_hat^T along a random stream (proposition 2 says 1), and of products of steps."""
    raw, _ = random_stream(tokens, 0)
    k_hat = unit(elu_feature(raw.double()))
    figures = {}
    for name, u in (("u_is_key", k_hat), ("u_is_random", unit(random_stream(tokens, 1)[0].double()))):
        alpha_hat = unit(run_penalty(u, k_hat).alpha)[0]
        jacobians = torch.eye(WIDTH, dtype=torch.float64) - alpha_hat[:, :, None] * k_hat[0][:, None]
        norms = torch.linalg.matrix_norm(jacobians, ord=2)
        product, greatest = torch.eye(WIDTH, dtype=torch.float64), 1.0
        for jacobian in jacobians:
            product = product @ jacobian
            greatest = max(greatest, float(torch.linalg.matrix_norm(product, ord=2)))
        figures[name] = {
            "mean": float(norms.mean()),
            "least": float(norms.min()),
            "greatest": float(norms.max()),
            "greatest_of_products": greatest,
            "product_of_all": float(torch.linalg.matrix_norm(product, ord=2)),
        }
    return {**figures, "paper": 1.0, "limit": (1 + math.sqrt(5)) / 2}


def recovery_errors() -> dict[str, Any]:
    """Mean |S_n k_i - v_i| / |v_i| after n writes with u = k (proposition 3 says 0), by write direction."""
    figures: dict[str, Any] = {}
    for pairs in (8, 16, 24, 32):
        raw, v = (part.double() for part in random_stream(pairs, 2))
        k_hat = unit(elu_feature(raw))
        alpha = run_penalty(k_hat, k_hat).alpha
        start = raw.new_zeros(1, WIDTH, WIDTH)
        directions = {
            "vla": unit(alpha),
            "vla_recall_direction": alpha / (alpha * k_hat).sum(dim=-1, keepdim=True),
            "delta_rule": k_hat,
        }
        for name, direction in directions.items():
            states, _ = rank_one_states(start, Writes(k_hat, direction, v))
            errors = (states[:, -1] @ k_hat.mT - v.mT).norm(dim=1) / v.norm(dim=2)
            figures.setdefault(name, {})[str(pairs)] = float(errors.mean())
    return figures


def precision(writes: int) -> dict[str, Any]:
    """VLA in float32 beside float64 after many live writes: random keys, and one key over and over."""
    memory = VlaMemory(MemoryDims(WIDTH, 0, WIDTH, 1), VlaConfig(key_width=WIDTH, rows=WIDTH))
    raw, v = random_stream(writes, 3)
    keys = torch.cat((raw, raw[:, :1].expand_as(raw)))
    k = elu_feature(keys)
    stream = VlaInput(k, unit(k), unit(keys + 1), v.expand_as(keys))
    single, double = (_live(memory, VlaInput(*(f.to(t) for f in stream))) for t in (torch.float32, torch.float64))
    figures: dict[str, Any] = {"writes": writes}
    for i, name in enumerate(("random_keys", "one_key")):
        (matrix, inverse), exact = ((state[0][i], state[1][i]) for state in (single, double))
        values = torch.linalg.eigvalsh(inverse.double())
        figures[name] = {
            "state_norm": float(matrix.norm()),
            "state_error": float((matrix - exact[0]).norm() / exact[0].norm()),
            "inverse_error": float((inverse - exact[1]).norm() / exact[1].norm()),
            "inverse_least_eigenvalue": float(values[0]),
            "inverse_greatest_eigenvalue": float(values[-1]),
            "asymmetry": float((inverse - inverse.mT).abs().max()),
        }
    return figures


@torch.no_grad()
def _live(memory: VlaMemory, stream: VlaInput) -> State:
    batch, writes = stream.k.shape[:2]
    state: State = tuple(part.to(stream.k.dtype) for part in memory.initial_state(batch))
    for t in range(writes):
        state, _ = memory.store(VlaInput(*(field[:, t] for field in stream)), state)
    return state


def latency(repeats: int) -> dict[str, Any]:
    """Microseconds per token, the fastest of many: a layer over T tokens, and a live step at the arm's sizes."""
    figures: dict[str, Any] = {"layer": {}}
    mixers: dict[str, type[Mixer]] = {"softmax": Softmax, "linear_attention": Linear, "deltanet": Delta, "vla": Vla}
    for tokens in (128, 512, 2048):
        x = torch.randn(1, tokens, 64)
        calls = {name: _bound(mixer(Backbone()).eval(), x) for name, mixer in mixers.items()}
        figures["layer"][str(tokens)] = {name: t / tokens for name, t in _interleaved(calls, repeats).items()}
    dims, write = ARM_DIMS, torch.ones(1, dtype=torch.bool)
    tick = MemoryInput(*(torch.randn(1, n) for n in (dims.content, dims.signature, dims.signature, dims.content)))
    steps = {}
    for name in ("gru", "trace", "linear_attention", "deltanet", "vla"):
        memory = registry.build(name, dims, MATCHED[name])
        steps[name] = _bound(memory.step, tick, memory.initial_state(1), write)
    figures["live_step"] = _interleaved(steps, 20 * repeats)
    return figures


def _bound(call: Callable[..., Any], *arguments: Any) -> Callable[[], Any]:
    return lambda: call(*arguments)


@torch.no_grad()
def _interleaved(calls: dict[str, Callable[[], Any]], repeats: int) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in calls}
    for _ in range(repeats):
        for name, call in calls.items():
            started = time.perf_counter()
            call()
            times[name].append((time.perf_counter() - started) * 1e6)
    return {name: min(taken) for name, taken in times.items()}
