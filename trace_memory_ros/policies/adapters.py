"""Memory readout to policy condition: the only policy-specific part of a memory (TRACE eq. 7, table 13)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import cast

import torch
from torch import Tensor, nn

BEGINNING = 0.1
"""Share of an adapter's usual spread that is left where it begins near a token that its policy is used to."""


@dataclass(frozen=True)
class ConditionShape:
    """Shape of a memory's readout: N tokens of width d, a vector of width d and an address of width a."""

    tokens: int
    width: int
    address: int

    def __post_init__(self) -> None:
        if self.tokens < 0 or self.width < 1 or self.address < 0:
            raise ValueError(f"{self}: tokens and address must not be negative and width must be at least 1")


class RegressionAdapter(nn.Module):
    """Slots and a summary of [z, g, delta g] as attention tokens (TRACE table 13, regression row).

    tokens `(B, N, d)`, vector `(B, d)`, address `(B, a)` -> `(B, N + 1, model)`.
    """

    def __init__(self, shape: ConditionShape, model: int, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        self.slot_map = nn.Linear(shape.width, model)
        self.summary = nn.Sequential(
            nn.LayerNorm(shape.width + shape.address),
            nn.Linear(shape.width + shape.address, hidden),
            nn.GELU(),
            nn.Linear(hidden, model),
        )
        self.slot_identity = nn.Parameter(torch.randn(shape.tokens, model) * 0.02)

    @torch.no_grad()
    def begin_near(self, token: Tensor) -> None:
        """Let every token that the policy is given start close to `token` `(model,)`, whatever the readout."""
        for layer in (self.slot_map, cast("nn.Linear", self.summary[-1])):
            layer.weight.mul_(BEGINNING)
            layer.bias.copy_(token)

    def forward(self, tokens: Tensor, vector: Tensor, address: Tensor) -> Tensor:
        slots = self.slot_map(tokens) + self.slot_identity
        summary = self.summary(torch.cat([vector, address], dim=-1))
        return torch.cat([slots, summary[:, None]], dim=1)
