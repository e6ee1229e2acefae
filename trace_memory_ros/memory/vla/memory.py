"""VLA, variational linear attention: fast weights with a penalty inverse (VLA, eq. 8-11, algorithm 1).

Symbols: S state, A inverse penalty, z sum of key features, k_hat unit key, u penalty direction, alpha_hat unit write
direction, e residual. `write` and `read` are algorithm 1 line by line; `scan` solves chunks, see `scan.py` and
`rank_one_scan.py`.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import MemoryDims, MemoryInput, Readout, State, WriteRecord, states_after
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
from trace_memory_ros.memory.vla.scan import Refresh, penalty_scan

PENALTIES = ("unit", "unit_over_sqrt_d")
DIRECTIONS = ("unit", "recall")


@dataclass(frozen=True)
class VlaConfig(FastWeightConfig):
    """Settings of VLA; the defaults are section 3's.

    initial_penalty: lambda_0, A starts at I / lambda_0. penalty: length of u, `unit` (section 3) or `unit_over_sqrt_d`
    (algorithm 1). direction: the paper's alpha / |alpha|, `unit`, or alpha / (alpha . k), `recall`: an exact write.
    refresh_period, refresh_amount: identity refresh in writes and its size. floor: least denominator of a read.
    """

    initial_penalty: float = 0.1
    penalty: str = "unit"
    direction: str = "unit"
    refresh_period: int = 20
    refresh_amount: float = 1e-3
    floor: float = 1e-4

    def __post_init__(self) -> None:
        super().__post_init__()
        for name in ("initial_penalty", "floor"):
            if not getattr(self, name) > 0:
                raise ValueError(f"VlaConfig.{name} = {getattr(self, name)}: must be positive")
        if self.refresh_period < 1 or self.refresh_amount < 0:
            raise ValueError(
                f"VlaConfig.refresh_period = {self.refresh_period}, refresh_amount = {self.refresh_amount}: "
                "the period must be at least 1 write, the amount not negative (0 turns it off)"
            )
        for name, known in (("penalty", PENALTIES), ("direction", DIRECTIONS)):
            if getattr(self, name) not in known:
                raise ValueError(f"VlaConfig.{name} = {getattr(self, name)!r}: must be one of {', '.join(known)}")


class VlaInput(NamedTuple):
    """What a write stores: key feature k, unit key k_hat, penalty direction u `(..., d_k)`, value v `(..., d_v)`."""

    k: Tensor
    k_hat: Tensor
    u: Tensor
    v: Tensor


class VlaMemory(FastWeightMemory):
    """State S `(B, d_v, d_k)`, A `(B, d_k, d_k)`, z `(B, d_k)`, writes since the refresh `(B,)`; surprise is |e|."""

    name = "vla"

    def __init__(self, dims: MemoryDims, config: VlaConfig | None = None) -> None:
        config = config or VlaConfig()
        super().__init__(dims, config)
        self.vla = config
        # Begins at k + 1, which is phi(k) to first order, so that at first penalty and key point the same way.
        self.w_u = nn.Linear(config.key_width, config.key_width)
        nn.init.eye_(self.w_u.weight)
        nn.init.ones_(self.w_u.bias)

    def initial_state(self, batch: int) -> State:
        """S = 0, A = I / lambda_0, z = 0, count = 0."""
        width = self.vla.key_width
        eye = torch.eye(width, dtype=self._origin.dtype, device=self._origin.device) / self.vla.initial_penalty
        zeros = self._origin.new_zeros(batch, width)
        return self.empty_matrix(batch), eye.expand(batch, -1, -1).clone(), zeros, self._origin.new_zeros(batch)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Algorithm 1, lines 7-22 and 25."""
        return self.store(self.project(x.content), state)

    def store(self, x: VlaInput, state: State) -> tuple[State, WriteRecord]:
        """Eq. 9 and 10, for fields `(B, ...)`."""
        S, A, z, count = state
        z_sm = (A @ x.u[..., None])[..., 0]
        # At least 1, since A is positive definite; the paper clamps it all the same.
        delta = 1 + (x.u * z_sm).sum(dim=-1)
        A = A - z_sm[..., None] * z_sm[..., None, :] / delta[..., None, None]
        count = count + 1
        due = (count % self.vla.refresh_period == 0).to(A.dtype)[..., None, None]
        A = A + due * self.vla.refresh_amount * torch.eye(A.shape[-1], dtype=A.dtype, device=A.device)
        alpha_hat = self.write_direction((A @ x.k_hat[..., None])[..., 0], x.k_hat)
        e = x.v - (S @ x.k_hat[..., None])[..., 0]
        new = S + e[..., None] * alpha_hat[..., None, :]
        return (new, A, z + x.k, count % self.vla.refresh_period), _record(S, e, alpha_hat)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Eq. 11, at length 1: its denominator adds up over the writes, S does not, and the value read would fade."""
        S, _, z, _ = state
        q = elu_feature(self.w_q(self.features(x.content)))
        weight = (z * q).sum(dim=-1, keepdim=True).clamp(min=self.vla.floor)
        return self.readout(S, unit((S @ q[..., None])[..., 0] / weight))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, chunk by chunk."""
        stacked, record = self._written(xs, state, mask, every_step=True)
        return stacked, tuple(last(*parts) for parts in zip(state, stacked, strict=True)), record

    def unroll(
        self, xs: MemoryInput, mask: Tensor, queries: MemoryInput | None = None, at: Tensor | None = None
    ) -> tuple[Readout, State, WriteRecord]:
        """As `Memory.unroll`, without states: the penalty inverse of each step is what no read asks for."""
        xs = self.embed(xs)
        states, record = self._written(xs, self.initial_state(len(mask)), mask, every_step=False)
        if queries is not None and at is not None:
            xs, states = queries, states_after(states, at)
        return self.read_sequence(xs, states), (), record

    def _written(self, xs: MemoryInput, state: State, mask: Tensor, every_step: bool) -> tuple[State, WriteRecord]:
        """State after every step, in which A is empty without `every_step`, and records."""
        S, A, z, count = state
        k, k_hat, u, v = self.project(xs.content)
        refresh = Refresh(self.vla.refresh_period, self.vla.refresh_amount)
        penalty = penalty_scan(A, count, u, k_hat, mask, refresh, every_step)
        alpha_hat = self.write_direction(penalty.alpha, k_hat)
        directions = torch.where(mask[..., None], alpha_hat, torch.zeros_like(alpha_hat))
        states, e = rank_one_states(S, Writes(k_hat, directions, v))
        keys = z[:, None] + torch.where(mask[..., None], k, torch.zeros_like(k)).cumsum(dim=1)
        inverse = penalty.inverse if every_step else S.new_empty(*mask.shape, 0)
        record = _record(preceding(S, states), e, alpha_hat).only_where(mask)
        return (states, inverse, keys, penalty.written), record

    def write_direction(self, alpha: Tensor, k_hat: Tensor) -> Tensor:
        """alpha_hat of alpha = A k_hat."""
        if self.vla.direction == "unit":
            return unit(alpha)
        return alpha / (alpha * k_hat).sum(dim=-1, keepdim=True)

    def project(self, content: Tensor) -> VlaInput:
        """Algorithm 1, lines 7-10, and the value."""
        features = self.features(content)
        raw = self.w_k(features)
        k = elu_feature(raw)
        u = unit(self.w_u(raw))
        if self.vla.penalty == "unit_over_sqrt_d":
            u = u / math.sqrt(self.vla.key_width)
        return VlaInput(k, unit(k), u, self.w_v(features))


@torch.no_grad()
def _record(before: Tensor, e: Tensor, alpha_hat: Tensor) -> WriteRecord:
    size = e.norm(dim=-1)
    return write_record(before, e * alpha_hat.norm(dim=-1, keepdim=True), torch.ones_like(size), size)
