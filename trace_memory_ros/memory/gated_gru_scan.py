"""A GRU behind a write gate over whole sequences, with its backward pass written out.

Symbols: h the hidden vector, v what is read of it, r, z, n the GRU's gates and candidate, a the gate's hidden layer, l
its logit, p its probability. One step of `gate.py` before `gru.py`:

r, z = sigmoid(W x + U h + b), n = tanh(W x + r * (U h + b)), h' = n + z * (h - n),
a = seen + R (v, surprise(mean (v' - v)^2)), l = w silu(a) + b, h <- h' where p = sigmoid(l / tau) > 1/2.

Autograd would record some forty small operations per step; here each weight's gradient is one product over all steps.
What is read and how surprising it is have no gradient, as in `gate.py`; backward, p takes the decision's place.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from trace_memory_ros.memory.base import MemoryInput
from trace_memory_ros.memory.gru import GruMemory
from trace_memory_ros.memory.layers import full_precision
from trace_memory_ros.memory.write_gate import SURPRISE_LIMIT, RunningScale, WriteGate

_aten = torch.ops.aten


class GatedSteps(NamedTuple):
    """hidden `(B, T, H)` after every step, probability, open (bool), surprise, change and strength `(B, T)`.

    change: mean squared change of what is read, had it been written. strength: share of h that a write replaces.
    """

    hidden: Tensor
    probability: Tensor
    open: Tensor
    surprise: Tensor
    change: Tensor
    strength: Tensor


class _Weights(NamedTuple):
    """hidden U `(3 H, H)`, its bias; recalled R `(g, d + 1)`; logit w `(1, g)`, its bias."""

    hidden: Tensor
    hidden_bias: Tensor
    recalled: Tensor
    logit: Tensor
    logit_bias: Tensor


class _Fixed(NamedTuple):
    """What has no gradient. allowed, noise on the logit `(T, B)`; read: h to v; mean, scale of changes; temperature."""

    allowed: Tensor
    noise: Tensor
    read: Any
    mean: Tensor
    scale: Tensor
    temperature: float


class _Trail(NamedTuple):
    """What the backward pass needs, leading dimensions `(T, B)`; before has the last state too, `(T + 1, B, H)`.

    gates r and z side by side; recurrent: U h + b of n; features v and surprise; layer a; relaxed: p with its noise.
    """

    before: Tensor
    gates: Tensor
    candidate: Tensor
    recurrent: Tensor
    features: Tensor
    layer: Tensor
    probability: Tensor
    relaxed: Tensor
    open: Tensor


def gated_gru_scan(
    memory: GruMemory,
    gate: WriteGate,
    scale: RunningScale,
    xs: MemoryInput,
    seen: Tensor,
    hidden: Tensor,
    mask: Tensor,
) -> GatedSteps:
    """Run every step from `hidden` `(B, H)`; seen `(B, T, g)`: the gate's first layer on what is seen.

    Where `mask` `(B, T)` is False nothing is written.
    """
    w_input, w_hidden, b_input, b_hidden = memory.gru.all_weights[0]
    driven = functional.linear(xs.content, w_input, b_input).to(hidden.dtype).transpose(0, 1)
    seen = seen.to(hidden.dtype)
    noise = gate.noise(seen[..., 0]).transpose(0, 1)
    spread = torch.rsqrt(scale.variance + 1e-12)
    fixed = _Fixed(mask.T, noise, memory.to_width, scale.mean, spread, gate.temperature)
    weights = (w_hidden, b_hidden, gate.recalled.weight, gate.logit.weight, gate.logit.bias)
    with full_precision(hidden):
        out = _Scan.apply(hidden, driven, seen.transpose(0, 1), *weights, fixed)  # type: ignore[no-untyped-call]
    return GatedSteps(*(part.transpose(0, 1) for part in out))


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, hidden: Tensor, driven: Tensor, seen: Tensor, *rest: Any) -> tuple[Tensor, ...]:
        *weights, fixed = rest
        trail, change = _run(hidden, driven, seen, _Weights(*weights), fixed)
        ctx.save_for_backward(*weights, *trail)
        ctx.fixed = fixed
        surprise = trail.features[..., -1]
        strength = (1 - trail.gates[..., hidden.shape[1] :]).mean(dim=-1)
        ctx.mark_non_differentiable(trail.open, surprise, change, strength)
        return trail.before[1:], trail.probability, trail.open, surprise, change, strength

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        saved = ctx.saved_tensors
        with full_precision(saved[0]):
            return *_run_back(_Weights(*saved[:5]), _Trail(*saved[5:]), ctx.fixed, *grads[:2]), None


def _run(hidden: Tensor, driven: Tensor, seen: Tensor, weights: _Weights, fixed: _Fixed) -> tuple[_Trail, Tensor]:
    (steps, batch), size = driven.shape[:2], hidden.shape[1]
    new = driven.new_empty
    before, gates = new(steps + 1, batch, size), new(steps, batch, 2 * size)
    candidate, recurrent = new(steps, batch, size), new(steps, batch, size)
    layer, change, logit = torch.empty_like(seen), new(steps, batch), new(steps, batch, 1)
    relaxed = new(steps, batch)
    opened = torch.empty(steps, batch, dtype=torch.bool, device=driven.device)
    before[0], read = hidden, fixed.read(hidden)
    features = new(steps, batch, read.shape[1] + 1)
    u, recalled, w = weights.hidden.T, weights.recalled.T, weights.logit.T
    for t in range(steps):
        h = before[t]
        total = torch.addmm(weights.hidden_bias, h, u)
        torch.sigmoid(driven[t, :, : 2 * size] + total[:, : 2 * size], out=gates[t])
        recurrent[t] = total[:, 2 * size :]
        torch.tanh(torch.addcmul(driven[t, :, 2 * size :], gates[t, :, :size], recurrent[t]), out=candidate[t])
        proposed = torch.lerp(candidate[t], h, gates[t, :, size:])
        after = fixed.read(proposed)
        torch.mean((after - read).square_(), dim=1, out=change[t])
        features[t, :, :-1] = read
        features[t, :, -1] = ((change[t] - fixed.mean) * fixed.scale).clamp_(-SURPRISE_LIMIT, SURPRISE_LIMIT)
        torch.addmm(seen[t], features[t], recalled, out=layer[t])
        torch.addmm(weights.logit_bias, functional.silu(layer[t]), w, out=logit[t])
        torch.sigmoid((logit[t, :, 0] + fixed.noise[t]) / fixed.temperature, out=relaxed[t])
        torch.logical_and(relaxed[t] > 0.5, fixed.allowed[t], out=opened[t])
        torch.where(opened[t, :, None], proposed, h, out=before[t + 1])
        read = torch.where(opened[t, :, None], after, read)
    probability = torch.sigmoid(logit[..., 0] / fixed.temperature)
    return _Trail(before, gates, candidate, recurrent, features, layer, probability, relaxed, opened), change


def _run_back(
    weights: _Weights, trail: _Trail, fixed: _Fixed, d_hidden: Tensor, d_probability: Tensor
) -> tuple[Tensor, ...]:
    size = trail.candidate.shape[-1]
    d_driven, d_total = trail.gates.new_empty(2, *trail.gates.shape[:2], 3 * size)
    d_layer, d_logit = torch.empty_like(trail.layer), torch.empty_like(trail.relaxed)
    reset, keep = trail.gates[..., :size], trail.gates[..., size:]
    # What the loop multiplies by and knows beforehand.
    away = trail.before[:-1] - trail.candidate
    of_candidate = (1 - keep) * (1 - trail.candidate.square())
    of_keep, of_reset = away * keep * (1 - keep), trail.recurrent * reset * (1 - reset)
    of_relaxed = trail.relaxed * (1 - trail.relaxed) * fixed.allowed / fixed.temperature
    told = d_probability * trail.probability * (1 - trail.probability) / fixed.temperature
    carry = torch.zeros_like(d_hidden[0])
    for t in reversed(range(len(d_hidden))):
        total = d_hidden[t] + carry
        d_new = total * trail.open[t, :, None]
        # h' - h = (n - h) (1 - z).
        d_relaxed = (total * away[t] * (keep[t] - 1)).sum(dim=1)
        torch.addcmul(told[t], d_relaxed, of_relaxed[t], out=d_logit[t])
        d_layer[t] = _aten.silu_backward(d_logit[t, :, None] * weights.logit, trail.layer[t])
        d_candidate = d_new * of_candidate[t]
        torch.mul(d_candidate, of_reset[t], out=d_driven[t, :, :size])
        torch.mul(d_new, of_keep[t], out=d_driven[t, :, size : 2 * size])
        d_driven[t, :, 2 * size :] = d_candidate
        d_total[t] = d_driven[t]
        d_total[t, :, 2 * size :] *= reset[t]
        carry = torch.addmm(total + d_new * (keep[t] - 1), d_total[t], weights.hidden)
    flat, layers = d_total.flatten(0, 1), d_layer.flatten(0, 1)
    return (
        carry,
        d_driven,
        d_layer,
        flat.T @ trail.before[:-1].flatten(0, 1),
        flat.sum(dim=0),
        layers.T @ trail.features.flatten(0, 1),
        d_logit.reshape(1, -1) @ functional.silu(trail.layer).flatten(0, 1),
        d_logit.sum().reshape(1),
    )
