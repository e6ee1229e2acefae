"""Layers that several mechanisms are made of."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from typing import Any

import torch
from torch import Tensor, nn


def mlp(inputs: int, hidden: int, outputs: int) -> nn.Sequential:
    """Two linear layers with SiLU between them, `(..., inputs)` to `(..., outputs)`."""
    return nn.Sequential(nn.Linear(inputs, hidden), nn.SiLU(), nn.Linear(hidden, outputs))


def full_precision(state: Tensor) -> AbstractContextManager[Any]:
    """Autocast off for the device of a recurrence's state, where it is on: sums over an episode keep their precision.

    What was computed before it may be of a shorter type, and has to be brought to that of the state.
    """
    kind = state.device.type
    mixed = torch.amp.is_autocast_available(kind) and torch.is_autocast_enabled(kind)
    return torch.autocast(kind, enabled=False) if mixed else nullcontext()
