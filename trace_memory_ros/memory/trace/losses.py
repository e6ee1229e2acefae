"""Stabilising losses of routed slots (TRACE, eq. 39-41), unweighted scalars over the valid steps.

`mask` `(B, T)` is True on the steps that count; without any such step a loss is 0.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor


def balance_loss(route: Tensor, mask: Tensor) -> Tensor:
    """Squared deviation of the mean route `(B, T, K)` from 1/K, averaged over slots (eq. 39)."""
    if not bool(mask.any()):
        return route.new_zeros(())
    return (route[mask].mean(dim=0) - 1 / route.shape[-1]).square().mean()


def entropy_loss(route: Tensor, mask: Tensor) -> Tensor:
    """Mean entropy of the routes `(B, T, K)` over log K, 0..1 (eq. 40); 0 for a single slot."""
    slots = route.shape[-1]
    if slots == 1 or not bool(mask.any()):
        return route.new_zeros(())
    valid = route[mask]
    # A route that underflowed to 0 contributes 0, and its gradient has to stay finite.
    logs = valid.clamp_min(torch.finfo(valid.dtype).tiny).log()
    return -(valid * logs).sum(dim=-1).mean() / math.log(slots)


def consistency_loss(readout: Tensor, proposal: Tensor, mask: Tensor) -> Tensor:
    """Mean squared difference of tanh(z) and tanh(u), both `(B, T, d)` (eq. 41)."""
    if not bool(mask.any()):
        return readout.new_zeros(())
    return (torch.tanh(readout[mask]) - torch.tanh(proposal[mask])).square().mean()
