"""DeltaNet: a linear-attention state that stores prediction errors (Schlag et al. 2021; Yang et al. 2024; VLA, eq. 4).

rule "delta": S_t = S_{t-1} + beta_t (v_t - S_{t-1} k_t) k_t^T: beta_t is the strength of the write. This is DeltaNet.
rule "decay": S_t = beta_t S_{t-1} + (v_t - S_{t-1} k_t) k_t^T: beta_t fades the whole state. This is VLA's equation 4.
Keys and queries have unit length; o_t = S_t q_t.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.base import MemoryDims, MemoryInput, Readout, State, WriteRecord
from trace_memory_ros.memory.fast_weights import (
    FastWeightConfig,
    FastWeightMemory,
    elu_feature,
    last,
    preceding,
    unit,
    write_record,
)
from trace_memory_ros.memory.rank_one_scan import Writes, rank_one_states

RULES = ("delta", "decay")
FEATURES: dict[str, Callable[[Tensor], Tensor]] = {"silu": functional.silu, "elu": elu_feature}
OPEN = 3.0
"""Logit at which beta starts: 0.95, so that a fresh memory writes fully and forgets little."""


@dataclass(frozen=True)
class DeltaNetConfig(FastWeightConfig):
    """rule: `delta` or `decay`; feature: map before the unit length, `silu` (keys of any sign) or `elu` (positive)."""

    rule: str = "delta"
    feature: str = "silu"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.rule not in RULES:
            raise ValueError(f"DeltaNetConfig.rule = {self.rule!r}: must be one of {', '.join(RULES)}")
        if self.feature not in FEATURES:
            raise ValueError(f"DeltaNetConfig.feature = {self.feature!r}: must be one of {', '.join(FEATURES)}")


class DeltaNetMemory(FastWeightMemory):
    """State S `(B, d_v, d_k)`. The record's surprise is |v - S k|, its gate beta."""

    name = "deltanet"

    def __init__(self, dims: MemoryDims, config: DeltaNetConfig | None = None) -> None:
        config = config or DeltaNetConfig()
        super().__init__(dims, config)
        self.decays = config.rule == "decay"
        self.feature = FEATURES[config.feature]
        self.w_beta = nn.Linear(self.w_k.in_features, 1)
        nn.init.zeros_(self.w_beta.weight)
        nn.init.constant_(self.w_beta.bias, OPEN)

    def initial_state(self, batch: int) -> State:
        """Zero S."""
        return (self.empty_matrix(batch),)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Eq. 4, in either rule."""
        (S,) = state
        k, v, beta = self.project(x.content)
        error = v - (S @ k[..., None])[..., 0]
        fade, strength = (beta, torch.ones_like(beta)) if self.decays else (torch.ones_like(beta), beta)
        new = fade[..., None, None] * S + (strength[..., None] * error)[..., None] * k[..., None, :]
        return (new,), _record(S, error, strength, beta)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """o = S q."""
        (S,) = state
        q = unit(self.feature(self.w_q(self.features(x.content))))
        return self.readout(S, (S @ q[..., None])[..., 0])

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, chunk by chunk."""
        (S,) = state
        k, v, beta = self.project(xs.content)
        strength = torch.ones_like(beta) if self.decays else beta
        directions = torch.where(mask[..., None], strength[..., None] * k, torch.zeros_like(k))
        log_decay = None
        if self.decays:
            least = torch.finfo(beta.dtype).tiny
            log_decay = torch.where(mask, beta.clamp(min=least).log(), torch.zeros_like(beta))
        states, error = rank_one_states(S, Writes(k, directions, v, log_decay))
        record = _record(preceding(S, states), error, strength, beta).only_where(mask)
        return (states,), (last(S, states),), record

    def project(self, content: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        features = self.features(content)
        beta = torch.sigmoid(self.w_beta(features))[..., 0]
        return unit(self.feature(self.w_k(features))), self.w_v(features), beta


@torch.no_grad()
def _record(before: Tensor, error: Tensor, strength: Tensor, beta: Tensor) -> WriteRecord:
    return write_record(before, strength[..., None] * error, beta, error.norm(dim=-1))
