"""External memory written by content or by least use: the LRU control of TRACE's table 2.

Follows Santoro et al., "Meta-learning with memory-augmented neural networks", 2016, section 3.2. Symbols: e content,
k key and v value of a write, q read query; K_j, V_j, u_j key, value and usage of slot j; c_j cosine of K_j to k.

Three changes: whether a write goes to what it resembles or to the least used slot is decided from the best resemblance,
not by one number for all writes; how much of a slot it replaces is learned from the content; and usage moves at writes
only, since reads happen at every tick and change nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord, write_steps
from trace_memory_ros.memory.layers import mlp

TIE_BREAK = 1e-6
"""Of equally used slots the first is taken."""
LEAST_USAGE = 1e-3
"""Of a slot that was ever written, so that decay never makes it look empty and unreadable."""


@dataclass(frozen=True)
class LruConfig:
    """slots: 0 for `MemoryDims.slots`; hidden: of the networks, 0 for d; decay: what usage keeps over a write.

    sharpness: initial factor of the cosines. match_slope, match_bias: initial log odds that a write goes to what it
    resembles are slope * cosine + bias.
    """

    slots: int = 0
    hidden: int = 0
    decay: float = 0.95
    sharpness: float = 10.0
    match_slope: float = 4.0
    match_bias: float = 0.0

    def __post_init__(self) -> None:
        if self.slots < 0 or self.hidden < 0:
            raise ValueError(f"{self}: slots and hidden must not be negative; 0 takes the sizes of MemoryDims")
        if not 0.0 <= self.decay < 1.0:
            raise ValueError(f"LruConfig.decay = {self.decay}: must be in 0..1, below 1")
        if self.sharpness <= 0:
            raise ValueError(f"LruConfig.sharpness = {self.sharpness}: must be positive")


class Evidence(NamedTuple):
    """What a tick brings, computed without the slots: unit key, value, unit query `(..., d)`, strength `(..., 1)`."""

    key: Tensor
    value: Tensor
    query: Tensor
    strength: Tensor


class LruMemory(Memory):
    """Tokens are the values V, the vector is the normalised mix that attention reads; no signature, no address.

    State: keys and values `(B, K, d)`, usage `(B, K)`, zero in slots that were never written.
    """

    name = "lru"

    def __init__(self, dims: MemoryDims, config: LruConfig | None = None) -> None:
        config = config or LruConfig()
        super().__init__(dims, config)
        self.settings = config
        hidden, width = config.hidden or dims.width, dims.width
        self.norm_content = nn.LayerNorm(dims.content)
        self.phi_key = mlp(dims.content, hidden, width)
        self.phi_value = mlp(dims.content, hidden, width)
        self.phi_query = mlp(dims.content, hidden, width)
        self.phi_strength = nn.Linear(dims.content, 1)
        self.log_sharpness = nn.Parameter(torch.full((2,), config.sharpness).log())
        self.match_slope = nn.Parameter(torch.tensor(float(config.match_slope)))
        self.match_bias = nn.Parameter(torch.tensor(float(config.match_bias)))
        self.out = nn.Linear(width, width)
        self.norm_out = nn.LayerNorm(width)

    @property
    def slot_count(self) -> int:
        """K."""
        return self.settings.slots or self.dims.slots

    def initial_state(self, batch: int) -> State:
        """Empty, unused slots."""
        slots = self._origin.new_zeros(batch, self.slot_count, self.dims.width)
        return slots, slots.clone(), slots.new_zeros(batch, self.slot_count)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Blend key and value into the slot they resemble or the least used one."""
        return self._update(self._evidence(x), state)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Attention over the keys of used slots."""
        keys, values, usage = state
        weights = self._attend(self._evidence(x).query, keys, usage)
        mixed = (weights[:, None] @ values)[:, 0]
        return Readout(values, self.norm_out(self.out(mixed)), weights, values.new_zeros(values.shape[0], 0))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, with what does not need the slots computed for all steps at once."""
        evidence = self._evidence(xs)
        return write_steps(
            lambda t, held: self._update(Evidence(*(part[:, t] for part in evidence)), held), state, mask
        )

    def _evidence(self, x: MemoryInput) -> Evidence:
        content = self.norm_content(x.content)
        key, query = (functional.normalize(phi(content), dim=-1) for phi in (self.phi_key, self.phi_query))
        return Evidence(key, self.phi_value(content), query, torch.sigmoid(self.phi_strength(content)))

    def _update(self, new: Evidence, state: State) -> tuple[State, WriteRecord]:
        keys, values, usage = state
        used = usage > 0
        any_used = used.any(dim=-1, keepdim=True)
        resemblance = _cosines(new.key, keys)
        match = torch.softmax(_only(used, self.log_sharpness[0].exp() * resemblance), dim=-1)
        best = (match * resemblance).sum(dim=-1, keepdim=True)
        familiar = torch.sigmoid(self.match_slope * best + self.match_bias) * any_used
        route = familiar * match + (1 - familiar) * _least(usage)
        strength = route * new.strength
        share = strength[..., None]
        reads = self._attend(new.query, keys, usage) * any_used
        usage = self.settings.decay * usage + strength + reads
        state = (
            (1 - share) * keys + share * new.key[:, None],
            (1 - share) * values + share * new.value[:, None],
            torch.where(usage > 0, usage.clamp(min=LEAST_USAGE), usage),
        )
        return state, WriteRecord.ungated(route, strength)

    def _attend(self, query: Tensor, keys: Tensor, usage: Tensor) -> Tensor:
        """Read weights `(B, K)`; alike over all slots while none is used."""
        return torch.softmax(_only(usage > 0, self.log_sharpness[1].exp() * _cosines(query, keys)), dim=-1)


def _cosines(query: Tensor, keys: Tensor) -> Tensor:
    """Cosines `(B, K)` of a unit query `(B, d)` to keys `(B, K, d)`."""
    return (functional.normalize(keys, dim=-1) @ query[..., None])[..., 0]


def _only(allowed: Tensor, scores: Tensor) -> Tensor:
    return scores.masked_fill(~allowed, torch.finfo(scores.dtype).min)


def _least(usage: Tensor) -> Tensor:
    """One-hot `(B, K)` at the least used slot, an unused one before any other."""
    order = usage.detach() + TIE_BREAK * torch.arange(usage.shape[-1], device=usage.device, dtype=usage.dtype)
    return functional.one_hot(order.argmin(dim=-1), usage.shape[-1]).to(usage.dtype)
