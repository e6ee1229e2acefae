"""The compiled recurrence of `kernel.py` as a differentiable function of tensors, for float32 on the CPU."""

from __future__ import annotations

from typing import Any, NamedTuple, cast

import numpy as np
import torch
from torch import Tensor
from torch.autograd.function import once_differentiable


class GateWeights(NamedTuple):
    """First layer's weight on (last read, surprise) `(h, v + 1)`, the logit's weight `(1, h)` and bias `(1,)`."""

    first: Tensor
    logit: Tensor
    bias: Tensor


class Scanned(NamedTuple):
    """States after every step, fast `(B, T, k, v)` and read `(B, T, v)`; the rest `(B, T)`."""

    fast: Tensor
    read: Tensor
    probability: Tensor
    opened: Tensor
    surprise: Tensor
    error: Tensor


class Fixed(NamedTuple):
    """What has no gradient. due, allowed `(B, T)` bool; noise `(B, T)` on the logit, in training.

    gate_trains: whether decisions pass gradients on. temperature, and mean, scale and limit of the surprise: numbers.
    """

    due: Tensor
    allowed: Tensor
    noise: Tensor
    gate_trains: bool
    temperature: float
    mean: float
    scale: float
    limit: float


def can_scan(*tensors: Tensor) -> bool:
    """Whether the compiled code takes these: float32, on the CPU, and at least one step of one stream."""
    return all(t.device.type == "cpu" and t.dtype == torch.float32 and t.numel() > 0 for t in tensors)


def scan(
    plan: tuple[Tensor, Tensor, Tensor, Tensor],
    start: tuple[Tensor, Tensor],
    rates: tuple[Tensor, Tensor],
    gate: GateWeights | None,
    fixed: Fixed,
) -> Scanned:
    """Run every step of `plan` (key, query, value, prepared, each `(B, T, ...)`) from `start` (fast, read).

    Without a `gate`, `fixed.due` decides. Gradients flow to all but `fixed`, once.
    """
    if gate is not None and not fixed.gate_trains:
        plan, gate = (*plan[:3], plan[3].detach()), GateWeights(*(weight.detach() for weight in gate))
    weights = gate or tuple(plan[0].new_zeros(shape) for shape in ((1, start[1].shape[1] + 1), (1, 1), (1,)))
    out = _Scan.apply(*plan, *start, *rates, *weights, gate is not None, fixed)  # type: ignore[no-untyped-call]
    return Scanned(*cast("tuple[Tensor, ...]", out))


class _Scan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, *given: Any) -> tuple[Tensor, ...]:
        from trace_memory_ros.memory.aura.kernel import call, run_forward

        *tensors, learned, fixed = given
        key, query, value, prepared, fast, read, eta, alpha, first, logit, bias = (_array(t) for t in tensors)
        shape, (keys, values), units = key.shape[:2], fast.shape[1:], prepared.shape[2]
        gate_in, gate_out = np.ascontiguousarray(first.T), logit.reshape(-1)
        rates = (eta.item(), alpha.item(), bias.item())
        numbers = tuple(map(np.float32, (*rates, fixed.temperature, fixed.mean, fixed.scale, fixed.limit)))
        widths = ((keys, values), (values,), (units,) if learned else (0,), (values,), (values,), (), (), (), ())
        saved = tuple(np.empty((*shape, *width), np.float32) for width in widths)
        saved = (*saved, np.empty(shape, np.bool_), np.empty(shape, np.bool_))
        due, allowed, noise = (np.ascontiguousarray(part.numpy()) for part in fixed[:3])
        start, weights = (fast, read), (gate_in, gate_out)
        decided = (learned, due, allowed, noise)
        call(run_forward, key, query, value, prepared, start, decided, weights, numbers, saved)
        ctx.kept = (key, query, start, (learned and fixed.gate_trains, due, allowed, noise), weights, numbers, saved)
        ctx.widths = (value.shape, prepared.shape)
        fasts, reads, _, _, _, surprise, error, probability, _, opened, _ = map(torch.from_numpy, saved)
        ctx.mark_non_differentiable(opened, surprise, error)
        return fasts, reads, probability, opened, surprise, error

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        from trace_memory_ros.memory.aura.kernel import call, run_backward

        incoming = tuple(_array(grad) for grad in grads[:3])
        key, query, start, _, weights, _, _ = ctx.kept
        shapes = (key.shape, query.shape, *ctx.widths, *(part.shape for part in start))
        outgoing = tuple(np.zeros(shape, np.float32) for shape in shapes)
        totals = (*map(np.zeros_like, weights), np.zeros(3, np.float64))
        call(run_backward, *ctx.kept, incoming, outgoing, totals)
        scalars = torch.from_numpy(totals[2].astype(np.float32))
        first, logit = torch.from_numpy(totals[0]).T, torch.from_numpy(totals[1])[None]
        return (*map(torch.from_numpy, outgoing), scalars[0], scalars[1], first, logit, scalars[2:], None, None)


def _array(tensor: Tensor) -> Any:
    return np.ascontiguousarray(tensor.detach().numpy())
