"""The recurrence of TRACE's slots (eq. 26 and 28-30) with its backward pass written out.

Autograd would record some twenty small operations per step and sum each weight's gradient step by step. Here the
backward loop carries only the slots' gradient, and each weight's gradient is one product over all steps.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import torch
from torch import Tensor
from torch.autograd.function import once_differentiable
from torch.nn import functional

from trace_memory_ros.memory.layers import full_precision

_aten = torch.ops.aten


class SlotPlan(NamedTuple):
    """What the recurrence needs to know of each step and does not depend on the slots; leading dimensions `(T, B)`.

    query `(..., d)` and route_bias `(..., K)`: the route's logits are query . m_k + route_bias_k.
    hidden `(..., K, 2h)`: first layers of phi_m and phi_beta, one after the other, on all their inputs but the slots.
    write `(...)` bool.
    """

    query: Tensor
    route_bias: Tensor
    hidden: Tensor
    write: Tensor


class SlotWeights(NamedTuple):
    """The layers of phi_m and phi_beta that act on the slots or on what came from them.

    first `(2h, d)`: both first layers, on the slots. content `(d, h)`, content_bias `(d,)`: second layer of phi_m.
    strength `(1, h)`, strength_bias `(1,)`: second layer of phi_beta.
    """

    first: Tensor
    content: Tensor
    content_bias: Tensor
    strength: Tensor
    strength_bias: Tensor


class SlotHistory(NamedTuple):
    """slots `(T, B, K, d)` after every step; route and strength `(T, B, K)`, of every step, written or not."""

    slots: Tensor
    route: Tensor
    strength: Tensor


def slot_scan(slots: Tensor, plan: SlotPlan, weights: SlotWeights) -> SlotHistory:
    """Run the recurrence from `slots` `(B, K, d)`; where `plan.write` is False the slots stay bit-identical."""
    fields = (field.to(slots.dtype) for field in plan[:3])
    with full_precision(slots):
        return SlotHistory(*_SlotScan.apply(slots, *fields, plan.write, *weights))  # type: ignore[no-untyped-call]


class _Trail(NamedTuple):
    """What the backward pass needs: before `(T + 1, B, K, d)`, pre-activations, candidates, routes and gates."""

    before: Tensor
    hidden: Tensor
    candidate: Tensor
    route: Tensor
    gate: Tensor


class _SlotScan(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, slots: Tensor, *tensors: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        plan, weights = SlotPlan(*tensors[:4]), SlotWeights(*tensors[4:])
        trail = _run(slots, plan, weights)
        ctx.save_for_backward(plan.query, plan.write, *weights, *trail)
        return trail.before[1:], trail.route, trail.route * trail.gate

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *grads: Tensor) -> tuple[Tensor | None, ...]:
        query, write, *rest = ctx.saved_tensors
        weights, trail = SlotWeights(*rest[:5]), _Trail(*rest[5:])
        with full_precision(query):
            return _run_back(query, write, weights, trail, SlotHistory(*grads))


def _run(slots: Tensor, plan: SlotPlan, weights: SlotWeights) -> _Trail:
    steps, width, size = plan.query.shape[0], slots.shape[-1], weights.content.shape[1]
    before = slots.new_empty(steps + 1, *slots.shape)
    before[0] = slots
    candidate, pre = torch.empty_like(before[1:]), plan.hidden.new_empty(plan.hidden.shape)
    route, gate = (slots.new_empty(before[1:].shape[:-1]) for _ in range(2))
    hidden, first, everyone = plan.hidden.flatten(1, 2), weights.first.T, plan.write.all(dim=1).tolist()
    for t in range(steps):
        m = before[t]
        logits = torch.baddbmm(plan.route_bias[t, :, :, None], m, plan.query[t, :, :, None])[..., 0]
        torch.softmax(logits, dim=-1, out=route[t])
        act = functional.silu(torch.addmm(hidden[t], m.flatten(0, 1), first, out=pre[t].flatten(0, 1)))
        torch.addmm(weights.content_bias, act[:, :size], weights.content.T, out=candidate[t].view(-1, width)).tanh_()
        torch.addmm(weights.strength_bias, act[:, size:], weights.strength.T, out=gate[t].view(-1, 1)).sigmoid_()
        beta = (route[t] * gate[t])[..., None]
        torch.add((1 - beta) * m, beta * candidate[t], out=before[t + 1])
        if not everyone[t]:
            before[t + 1] = torch.where(plan.write[t, :, None, None], before[t + 1], m)
    return _Trail(before, pre, candidate, route, gate)


def _run_back(
    query: Tensor, write: Tensor, weights: SlotWeights, trail: _Trail, grads: SlotHistory
) -> tuple[Tensor | None, ...]:
    before, pre, candidate, route, gate = trail
    d_logits, d_strength = torch.empty_like(route), torch.empty_like(route)
    d_content, d_pre = torch.empty_like(candidate), torch.empty_like(pre)
    size, everyone = weights.content.shape[1], write.all(dim=1).tolist()
    carry = torch.zeros_like(before[0])
    for t in reversed(range(route.shape[0])):
        total = grads.slots[t] + carry
        d_new = total if everyone[t] else total * write[t, :, None, None]
        d_candidate = d_new * (route[t] * gate[t])[..., None]
        d_beta = (d_new * (candidate[t] - before[t])).sum(dim=-1) + grads.strength[t]
        d_route = d_beta * gate[t] + grads.route[t]
        torch.mul(route[t], d_route - (route[t] * d_route).sum(dim=-1, keepdim=True), out=d_logits[t])
        d_strength[t] = _aten.sigmoid_backward(d_beta * route[t], gate[t])
        d_content[t] = _aten.tanh_backward(d_candidate, candidate[t])
        d_act = d_content[t].flatten(0, 1) @ weights.content, d_strength[t].reshape(-1, 1) * weights.strength
        d_pre[t] = _aten.silu_backward(torch.cat(d_act, dim=1).view_as(pre[t]), pre[t])
        carry = (total - d_candidate).addcmul_(d_logits[t][..., None], query[t, :, None])
        carry.view(-1, carry.shape[-1]).addmm_(d_pre[t].flatten(0, 1), weights.first)
    flat_pre, flat_content = d_pre.flatten(0, 2), d_content.flatten(0, 2)
    act = functional.silu(pre).flatten(0, 2)
    return (
        carry,
        (d_logits[..., None, :] @ before[:-1])[..., 0, :],
        d_logits,
        d_pre,
        None,
        flat_pre.T @ before[:-1].flatten(0, 2),
        flat_content.T @ act[:, :size],
        flat_content.sum(dim=0),
        d_strength.reshape(1, -1) @ act[:, size:],
        d_strength.sum().reshape(1),
    )
