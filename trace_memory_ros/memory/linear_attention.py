"""Linear attention (Katharopoulos et al. 2020; VLA, eq. 3): the additive baseline of VLA and DeltaNet.

S_t = S_{t-1} + v_t phi(k_t)^T, z_t = z_{t-1} + phi(k_t), o_t = S_t phi(q_t) / (phi(q_t)^T z_t), phi = ELU + 1.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trace_memory_ros.memory.base import MemoryDims, MemoryInput, Readout, State, WriteRecord
from trace_memory_ros.memory.fast_weights import (
    FastWeightConfig,
    FastWeightMemory,
    elu_feature,
    last,
    preceding,
    write_record,
)

FLOOR = 1e-4
"""Least denominator of a read, which is 0 before the first write (VLA, eq. 11)."""


@dataclass(frozen=True)
class LinearAttentionConfig(FastWeightConfig):
    """Sizes only."""


class LinearAttentionMemory(FastWeightMemory):
    """State S `(B, d_v, d_k)` and the sum of keys z `(B, d_k)`; both grow with the number of writes."""

    name = "linear_attention"

    def __init__(self, dims: MemoryDims, config: LinearAttentionConfig | None = None) -> None:
        super().__init__(dims, config or LinearAttentionConfig())

    def initial_state(self, batch: int) -> State:
        """Zero S and z."""
        return self.empty_matrix(batch), self._origin.new_zeros(batch, self.settings.key_width)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Eq. 3, first two parts."""
        S, z = state
        features = self.features(x.content)
        k, v = elu_feature(self.w_k(features)), self.w_v(features)
        return (S + v[..., None] * k[..., None, :], z + k), self._record(S, k, v)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Eq. 3, last part."""
        S, z = state
        q = elu_feature(self.w_q(self.features(x.content)))
        weight = (z * q).sum(dim=-1, keepdim=True)
        return self.readout(S, (S @ q[..., None])[..., 0] / weight.clamp(min=FLOOR))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`: running sums."""
        S, z = state
        features = self.features(xs.content)
        k, v = elu_feature(self.w_k(features)), self.w_v(features)
        kept = torch.where(mask[..., None], k, torch.zeros_like(k))
        states = S[:, None] + (v[..., None] * kept[..., None, :]).cumsum(dim=1)
        keys = z[:, None] + kept.cumsum(dim=1)
        record = self._record(preceding(S, states), k, v).only_where(mask)
        return (states, keys), (last(S, states), last(z, keys)), record

    def _record(self, before: Tensor, k: Tensor, v: Tensor) -> WriteRecord:
        ones = torch.ones_like(v[..., 0])
        return write_record(before, v * k.norm(dim=-1, keepdim=True), ones, torch.zeros_like(ones))
