"""TRACE written down from its equations: one episode, one slot at a time (TRACE, eq. 3-6, 25-35, algorithm 1).

Slow on purpose. It borrows only the weights of a `TraceMemory` and is what the fast module is tested against.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor

from trace_memory_ros.memory.base import MemoryInput
from trace_memory_ros.memory.trace.memory import TraceMemory


class NaiveStep(NamedTuple):
    """One tick of one episode: slots K x `(d,)`; omega, beta, alpha `(K,)`; u, z `(d,)`; [g, dg]."""

    slots: list[Tensor]
    route: Tensor
    strength: Tensor
    proposal: Tensor
    readout: Tensor
    read_weights: Tensor
    address: Tensor


def naive_identity(slot: int, width: int) -> list[float]:
    """Sinusoidal identity eta of one slot: sine on even channels, cosine on odd ones."""
    eta = []
    for channel in range(width):
        angle = slot / 10_000 ** (2 * (channel // 2) / width)
        eta.append(math.sin(angle) if channel % 2 == 0 else math.cos(angle))
    return eta


def naive_step(memory: TraceMemory, x: MemoryInput, slots: list[Tensor], write: bool) -> NaiveStep:
    """One tick; the fields of `x` have no leading dimension. Where `write` is False the slots are only read."""
    settings, width = memory.settings, memory.dims.width
    eta = [
        settings.slot_identity * torch.tensor(naive_identity(k, width), dtype=slots[0].dtype) for k in range(len(slots))
    ]

    address = [memory.norm_g(memory.phi_g(x.xi))]
    if memory.phi_delta is not None:
        address.append(memory.norm_delta(memory.phi_delta(x.delta)))
    q = torch.cat([*address, x.anchor] if settings.anchor else address)
    rho = memory.phi_rho(q)
    u = memory.phi_w(torch.cat((x.content, q)))

    route = torch.softmax(torch.stack(_logits(memory, x, rho, [m + e for m, e in zip(slots, eta, strict=True)])), 0)
    strength, updated = [], []
    for k, m in enumerate(slots):
        inputs = torch.cat((m + eta[k], u, rho))
        candidate = torch.tanh(memory.phi_m(inputs))
        beta = route[k] * torch.sigmoid(memory.phi_beta(inputs))
        strength.append(beta[0])
        updated.append((1 - beta) * m + beta * candidate)
    new = updated if write else slots

    read_query = memory.phi_r(torch.cat((x.content, rho)))
    scores = [read_query @ memory.w_k_read(m + e) / math.sqrt(width) for m, e in zip(new, eta, strict=True)]
    alpha = torch.softmax(torch.stack(scores), 0)
    z = sum((alpha[k] * memory.w_v_read(m) for k, m in enumerate(new)), torch.zeros_like(u))
    return NaiveStep(new, route, torch.stack(strength), u, z, alpha, torch.cat(address))


def naive_scan(memory: TraceMemory, xs: MemoryInput, slots: Tensor, mask: Tensor) -> list[list[NaiveStep]]:
    """Every step of every episode: `[b][t]`, for inputs `(B, T, ...)`, slots `(B, K, d)` and mask `(B, T)`."""
    episodes = []
    for b in range(mask.shape[0]):
        current, steps = list(slots[b]), []
        for t in range(mask.shape[1]):
            tick = xs.map(lambda field, b=b, t=t: field[b, t])  # type: ignore[misc]
            steps.append(naive_step(memory, tick, current, bool(mask[b, t])))
            current = steps[-1].slots
        episodes.append(steps)
    return episodes


def _logits(memory: TraceMemory, x: MemoryInput, rho: Tensor, addressed: list[Tensor]) -> list[Tensor]:
    """Route logits, eq. 26, or minus half the scaled squared distance to each prototype."""
    tau = memory.settings.temperature
    if memory.settings.routing == "prototypes":
        route = memory.route
        return [-(x.xi - centre).square().sum() / (2 * route.scale * tau) for centre in route.centres]
    root = math.sqrt(memory.w_q.out_features)
    return [memory.w_q(rho) @ memory.w_k(m) / (tau * root) for m in addressed]
