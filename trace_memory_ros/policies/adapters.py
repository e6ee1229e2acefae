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


class Adapter(nn.Module):
    """What every adapter has, whatever its family makes of a readout."""

    shape: ConditionShape

    def begin_near(self, constant: Tensor) -> None:
        """Start with an output near `constant` `(W,)`, which the policy was trained with, whatever the readout."""
        raise NotImplementedError

    def without_memory(self) -> Tensor:
        """Output `(W,)` for the readout of no memory: no tokens, no address, a zero vector."""
        raise NotImplementedError


class RegressionAdapter(Adapter):
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
    def begin_near(self, constant: Tensor) -> None:
        """Let every token that the policy is given start close to `constant` `(model,)`, whatever the readout."""
        for layer in (self.slot_map, cast("nn.Linear", self.summary[-1])):
            layer.weight.mul_(BEGINNING)
            layer.bias.copy_(constant)

    def without_memory(self) -> Tensor:
        nothing = self.slot_identity.new_zeros(1, 0)
        vector = nothing.new_zeros(1, self.shape.width)
        return self(nothing[..., None].expand(1, 0, self.shape.width), vector, nothing)[0, 0]

    def forward(self, tokens: Tensor, vector: Tensor, address: Tensor) -> Tensor:
        slots = self.slot_map(tokens) + self.slot_identity
        summary = self.summary(torch.cat([vector, address], dim=-1))
        return torch.cat([slots, summary[:, None]], dim=1)


class DiffusionAdapter(Adapter):
    """A readout as one vector that is added to the global condition (TRACE table 13, diffusion row).

    Slots are pooled by their read weights, [pool, z, g, delta g] goes through an MLP whose last layer begins at zero:
    a policy that is given a memory starts as the very policy that it was without. tokens `(B, N, d)`, read_weights
    `(B, N)`, vector `(B, d)`, address `(B, a)` -> `(B, condition)`.
    """

    def __init__(self, shape: ConditionShape, condition: int, hidden: int) -> None:
        super().__init__()
        self.shape = shape
        inputs = 2 * shape.width + shape.address
        self.maps = nn.Sequential(nn.LayerNorm(inputs), nn.Linear(inputs, hidden), nn.GELU())
        self.last = nn.Linear(hidden, condition)
        nn.init.zeros_(self.last.weight)
        nn.init.zeros_(self.last.bias)

    @torch.no_grad()
    def begin_near(self, constant: Tensor) -> None:
        """Begin with exactly `constant` `(condition,)`, whatever the readout."""
        self.last.weight.zero_()
        self.last.bias.copy_(constant)

    def without_memory(self) -> Tensor:
        nothing = self.last.weight.new_zeros(1, 0)
        tokens = nothing[..., None].expand(1, 0, self.shape.width)
        return self(tokens, nothing, nothing.new_zeros(1, self.shape.width), nothing)[0]

    def forward(self, tokens: Tensor, read_weights: Tensor, vector: Tensor, address: Tensor) -> Tensor:
        pool = torch.einsum("bn,bnd->bd", read_weights, tokens)
        return self.last(self.maps(torch.cat([pool, vector, address], dim=-1)))
