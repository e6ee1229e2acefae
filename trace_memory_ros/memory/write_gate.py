"""A learned decision to write or not (AURA-Mem, section 3.3), shared by AURA and `gate.py`.

Symbols: s surprise, l logit, p = sigmoid(l / tau) probability, g = 1[p > 0.5] the gate, rho the target write rate.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, cast

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn import functional

from trace_memory_ros.memory.base import State

LEARNED = ("straight_through", "gumbel")
"""How a learned gate is trained; both decide by p > 0.5 in evaluation."""
RATES = ("probability", "writes")
"""What a penalty on the write rate may count."""
SURPRISE_LIMIT = 10.0
"""Standard deviations; beyond, an odd tick would drive the gate's layers to where they were never trained. Ours."""


class Decision(NamedTuple):
    """probability `(B,)` in 0..1; relaxed `(B,)` what the gradient flows through; open `(B,)` bool, the gate."""

    probability: Tensor
    relaxed: Tensor
    open: Tensor

    def only_where(self, allowed: Tensor) -> Decision:
        """Shut, and without gradient, where `allowed` `(B,)` is False."""
        return self._replace(relaxed=self.relaxed * allowed, open=self.open & allowed)


class RunningScale(nn.Module):
    """Running mean and variance of a positive scalar, by exponential average over training passes.

    of_all: of this process's values `(n,)`, those of all that train with it. Who places a model for several says so: a
    process that trains alone while others wait must not ask them.
    """

    mean: Tensor
    variance: Tensor
    passes: Tensor

    def __init__(self, rate: float = 0.05) -> None:
        super().__init__()
        self.rate = rate
        self.of_all: Callable[[Tensor], Tensor] = _own
        self.register_buffer("mean", torch.zeros(()))
        self.register_buffer("variance", torch.ones(()))
        self.register_buffer("passes", torch.zeros(()))

    def forward(self, value: Tensor) -> Tensor:
        """`value` in standard deviations from the mean, without gradient."""
        scaled = (value.detach() - self.mean) * torch.rsqrt(self.variance + 1e-12)
        return scaled.clamp(-SURPRISE_LIMIT, SURPRISE_LIMIT)

    @torch.no_grad()
    def update(self, values: Tensor) -> None:
        """Take in the `(n,)` values of one training pass; fewer than two say nothing about a spread.

        Of processes that train together, each takes in what all have seen.
        """
        values = self.of_all(values)
        if values.numel() < 2:
            return
        self.passes += 1
        # The first passes weigh equally, so that the start value leaves no trace.
        rate = torch.clamp(1.0 / self.passes, min=self.rate)
        self.variance += rate * (values.var() + (1 - rate) * (values.mean() - self.mean).square() - self.variance)
        self.mean += rate * (values.mean() - self.mean)


def _own(values: Tensor) -> Tensor:
    return values


class WriteGate(nn.Module):
    """The gate MLP on what is seen, what was recalled and the surprise.

    Its first layer is split, so that the part on what is seen can be computed for all steps at once. It starts open.
    """

    def __init__(
        self, seen: int, recalled: int, hidden: int, mode: str, temperature: float = 1.0, bias: float = 1.0
    ) -> None:
        super().__init__()
        self.mode = mode
        self.temperature = temperature
        self.seen = nn.Linear(seen, hidden)
        self.recalled = nn.Linear(recalled + 1, hidden, bias=False)
        self.logit = nn.Linear(hidden, 1)
        with torch.no_grad():
            self.logit.weight.mul_(0.3)
            self.logit.bias.fill_(bias)

    def forward(self, prepared: Tensor, recalled: Tensor, surprise: Tensor) -> Decision:
        """Decide from `self.seen` of what is seen `(B, h)`, what was recalled `(B, r)` and the surprise `(B,)`."""
        features = torch.cat((recalled, surprise[:, None]), dim=-1)
        logit = self.logit(functional.silu(prepared + self.recalled(features)))[:, 0]
        probability = torch.sigmoid(logit / self.temperature)
        relaxed = probability
        if self.mode == "gumbel" and self.training:
            relaxed = torch.sigmoid((logit + self.noise(logit)) / self.temperature)
        return Decision(probability, relaxed, relaxed > 0.5)

    def noise(self, logit: Tensor) -> Tensor:
        """What is added to logits of this shape: logistic noise where a Gumbel gate is trained, zero otherwise."""
        if self.mode == "gumbel" and self.training:
            return torch.logit(torch.rand_like(logit).clamp_(1e-6, 1 - 1e-6))
        return torch.zeros_like(logit)


class _Blend(torch.autograd.Function):
    """Forward g new + (1 - g) old as a selection of bits; backward as that product, with g's gradient passed to p."""

    @staticmethod
    def forward(ctx: Any, gate: Tensor, relaxed: Tensor, new: Tensor, old: Tensor) -> Tensor:
        del relaxed
        chosen = gate.reshape(-1, *([1] * (new.ndim - 1)))
        ctx.save_for_backward(chosen, new, old)
        return torch.where(chosen, new, old)

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, ...]:
        chosen, new, old = ctx.saved_tensors
        to_new = grad * chosen
        to_gate = (grad * (new - old)).reshape(len(grad), -1).sum(dim=1)
        return None, to_gate, to_new, grad - to_new


def gated(decision: Decision, new: State, old: State) -> State:
    """The new state where the gate is open and the old one, bit for bit, where it is shut (the multiplexed update).

    Backward, p takes the gate's place (straight-through).
    """
    return tuple(_gated_tensor(decision, n, o) for n, o in zip(new, old, strict=True))


def _gated_tensor(decision: Decision, new: Tensor, old: Tensor) -> Tensor:
    if new.is_floating_point():
        return cast("Tensor", _Blend.apply(decision.open, decision.relaxed, new, old))  # type: ignore[no-untyped-call]
    return torch.where(decision.open.reshape(-1, *([1] * (new.ndim - 1))), new, old)


def rate_penalty(
    probability: Tensor,
    mask: Tensor,
    rho: Tensor | float,
    times: Tensor | float = 1.0,
    rate_of: str = "probability",
    two_sided: bool = False,
) -> Tensor:
    """(relu(rate - rho))^2 over the steps where `mask` holds, or (rate - rho)^2; 0 without such a step.

    times: by which the rate is multiplied, where it is to be of fewer steps than there are.

    rate_of: the rate is E[p], as in AURA-Mem, or E[g], with p's gradient. A gate whose every p lies a little above
    1/2 lowers E[p] to rho only by shutting at every step; E[g] is down at rho while the steps that matter most write.
    """
    if not bool(mask.any()):
        return probability.new_zeros(())
    counted = straight_through(probability) if rate_of == "writes" else probability
    excess = times * counted[mask].mean() - rho
    return (excess if two_sided else torch.relu(excess)).square()


def straight_through(probability: Tensor) -> Tensor:
    """The decision 0 or 1, with the probability's gradient."""
    return (probability > 0.5).to(probability.dtype) + (probability - probability.detach())


def ramp(progress: float, begin: float, end: float) -> float:
    """How much of a penalty counts at `progress` 0..1 of the training: 0 to `begin`, then linear, 1 from `end`."""
    return float(progress >= end) if end <= begin else min(1.0, max(0.0, (progress - begin) / (end - begin)))


def check_penalty(owner: str, begin: float, end: float, rate_of: str) -> None:
    """Raises ValueError naming the setting of `owner` that does not fit."""
    if not 0 <= begin <= end <= 1:
        raise ValueError(f"{owner}.ramp_from = {begin} and ramp = {end}: must rise within 0..1")
    if rate_of not in RATES:
        raise ValueError(f"{owner}.rate_of = {rate_of!r}: must be one of {', '.join(RATES)}")
