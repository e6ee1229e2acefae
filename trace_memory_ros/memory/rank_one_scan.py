"""Chunked form of a fast-weight state that takes one rank-one write per step.

`S_t = b_t S_{t-1} + e_t a_t^T` with `e_t = v_t - S_{t-1} k_t`, or `e_t = v_t` for a plain sum. Inside a chunk that
starts from S_0 all residuals follow from one unit triangular system, with `B_t = b_1 ... b_t`:
`e_t + sum_{s<t} (B_{t-1} / B_s) (a_s . k_t) e_s = v_t - B_{t-1} S_0 k_t`. No step waits for the one before.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

from trace_memory_ros.memory.layers import full_precision

CHUNK = 64
"""Steps solved together; the triangular system grows with its square."""


class Writes(NamedTuple):
    """The writes of a sequence, leading dimensions `(B, T)`: keys k, directions a `(..., d_k)`, values v `(..., d_v)`.

    log_decay: `(B, T)` logarithm of b_t, None where nothing decays. residual: store v_t - S k_t rather than v_t.
    A step whose direction and log_decay are zero writes nothing.
    """

    keys: Tensor
    directions: Tensor
    values: Tensor
    log_decay: Tensor | None = None
    residual: bool = True

    def between(self, first: int, end: int) -> Writes:
        """The writes of steps `first` to `end - 1`."""
        decay = None if self.log_decay is None else self.log_decay[:, first:end]
        keys, directions, values = (field[:, first:end] for field in self[:3])
        return Writes(keys, directions, values, decay, self.residual)

    def in_type(self, dtype: torch.dtype) -> Writes:
        """The same writes as numbers of another type."""
        decay = None if self.log_decay is None else self.log_decay.to(dtype)
        keys, directions, values = (field.to(dtype) for field in self[:3])
        return Writes(keys, directions, values, decay, self.residual)


def rank_one_states(start: Tensor, writes: Writes) -> tuple[Tensor, Tensor]:
    """State after every step `(B, T, d_v, d_k)` and residuals e `(B, T, d_v)`, from `start` `(B, d_v, d_k)`."""
    with full_precision(start):
        return _states(start, writes.in_type(start.dtype))


def rank_one_reads(start: Tensor, writes: Writes, queries: Tensor) -> tuple[Tensor, Tensor]:
    """`S_t q_t` for every step `(B, T, d_v)` and the last state, without a state per step in memory."""
    with full_precision(start):
        return _reads(start, writes.in_type(start.dtype), queries.to(start.dtype))


def _states(start: Tensor, writes: Writes) -> tuple[Tensor, Tensor]:
    states, residuals = [start[:, None][:, :0]], [writes.values[:, :0]]
    for chunk in _chunks(writes):
        error = _residuals(start, chunk)
        products = (error[..., None] * chunk.directions[..., None, :]).flatten(2)
        added = (_decays(chunk) @ products).reshape(*error.shape[:2], *start.shape[1:])
        states.append(_faded(start, chunk)[..., None, None] * start[:, None] + added)
        residuals.append(error)
        start = states[-1][:, -1]
    return torch.cat(states, dim=1), torch.cat(residuals, dim=1)


def _reads(start: Tensor, writes: Writes, queries: Tensor) -> tuple[Tensor, Tensor]:
    reads = [writes.values[:, :0]]
    first = 0
    for chunk in _chunks(writes):
        query = queries[:, first : first + chunk.keys.shape[1]]
        first += chunk.keys.shape[1]
        error, decays = _residuals(start, chunk), _decays(chunk)
        inside = (query @ chunk.directions.mT * decays) @ error
        reads.append(_faded(start, chunk)[..., None] * (query @ start.mT) + inside)
        added = (error * decays[:, -1, :, None]).mT @ chunk.directions
        start = _faded(start, chunk)[:, -1, None, None] * start + added
    return torch.cat(reads, dim=1), start


def _chunks(writes: Writes) -> list[Writes]:
    steps = writes.keys.shape[1]
    return [writes.between(first, min(first + CHUNK, steps)) for first in range(0, steps, CHUNK)]


def _residuals(start: Tensor, chunk: Writes) -> Tensor:
    if not chunk.residual:
        return chunk.values
    overlap = chunk.keys @ chunk.directions.mT
    seen = chunk.keys @ start.mT
    if chunk.log_decay is not None:
        total = chunk.log_decay.cumsum(dim=1)
        before = total - chunk.log_decay
        overlap = overlap * (before[:, :, None] - total[:, None]).clamp(max=0.0).exp()
        seen = seen * before.exp()[..., None]
    error: Tensor = torch.linalg.solve_triangular(
        overlap.tril(-1), chunk.values - seen, upper=False, unitriangular=True
    )
    return error


def _decays(chunk: Writes) -> Tensor:
    """What is left at step t of a write of step s: `(B, C, C)`, zero for s > t."""
    if chunk.log_decay is None:
        steps = chunk.keys.shape[1]
        return chunk.keys.new_ones(steps, steps).tril().expand(chunk.keys.shape[0], -1, -1)
    total = chunk.log_decay.cumsum(dim=1)
    return (total[:, :, None] - total[:, None]).clamp(max=0.0).exp().tril()


def _faded(start: Tensor, chunk: Writes) -> Tensor:
    """What is left of the chunk's first state after each step, `(B, C)`."""
    if chunk.log_decay is None:
        return start.new_ones(chunk.keys.shape[:2])
    return chunk.log_decay.cumsum(dim=1).exp()
