"""VLA's penalty inverse for many steps at once.

`A_t = (M_0 + u_1 u_1^T + ... + u_t u_t^T)^-1`. The denominators of successive Sherman-Morrison steps depend on one
another, but they are the pivots of one matrix: with U the rows u_t of a chunk, `I + U A_0 U^T = L L^T` (Cholesky) has
`L_tt^2 = delta_t`, and the rows of `L^-1 U A_0` are `A_{t-1} u_t / sqrt(delta_t)`. So a chunk needs no loop. A chunk
ends where an episode of the batch has its identity refresh.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor

LONGEST = 64
"""Most steps per chunk where no refresh comes first."""


class Refresh(NamedTuple):
    """Identity refresh of A: `amount` is added to its diagonal at every `period`-th write."""

    period: int
    amount: float


class Penalty(NamedTuple):
    """alpha `(B, T, d_k)`, the write direction A_t k_t before normalisation.

    inverse: A after every step `(B, T, d_k, d_k)`, or only the last. written `(B, T)`: writes since the last refresh.
    """

    alpha: Tensor
    inverse: Tensor
    written: Tensor


def penalty_scan(
    start: Tensor, count: Tensor, u: Tensor, keys: Tensor, mask: Tensor, refresh: Refresh, every_step: bool = True
) -> Penalty:
    """Run A from `start` `(B, d_k, d_k)` over penalty directions u and unit keys `(B, T, d_k)`.

    Where `mask` is False nothing is written. Without `every_step` only the last A is kept, `(B, 1, d_k, d_k)`.
    """
    u = torch.where(mask[..., None], u, torch.zeros_like(u))
    written = count[:, None] + mask.cumsum(dim=1)
    due = mask & (written % refresh.period == 0)
    alphas, inverses = [keys[:, :0]], [start[:, None][:, :0]]
    for first, end in _chunks(due):
        U, K = u[:, first:end], keys[:, first:end]
        UA = U @ start
        eye = torch.eye(end - first, dtype=u.dtype, device=u.device)
        Z = torch.linalg.solve_triangular(torch.linalg.cholesky(eye + UA @ U.mT), UA, upper=False)
        added = refresh.amount * due[:, end - 1].to(u.dtype)
        alpha = K @ start - (K @ Z.mT).tril() @ Z
        alphas.append(torch.cat((alpha[:, :-1], alpha[:, -1:] + added[:, None, None] * K[:, -1:]), dim=1))
        boost = added[:, None, None] * torch.eye(u.shape[-1], dtype=u.dtype, device=u.device)
        if every_step:
            inside = start[:, None] - (Z[..., None] * Z[..., None, :]).cumsum(dim=1)
            start = inside[:, -1] + boost
            inverses += [inside[:, :-1], start[:, None]]
        else:
            start = start - Z.mT @ Z + boost
    inverse = torch.cat(inverses, dim=1) if every_step else start[:, None]
    return Penalty(torch.cat(alphas, dim=1), inverse, written % refresh.period)


def _chunks(due: Tensor) -> list[tuple[int, int]]:
    """First and past-last step of each chunk."""
    chunks, first, steps = [], 0, due.shape[1]
    for t, ends in enumerate(due.any(dim=0).tolist(), start=1):
        if ends or t == steps or t - first == LONGEST:
            chunks.append((first, t))
            first = t
    return chunks
