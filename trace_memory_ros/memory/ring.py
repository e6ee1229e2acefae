"""Which entry of a ring of n holds what, told by one bounded counter of writes.

The counter rises to n while the ring fills and then goes round n .. 2n - 1, so that it never overflows, changes at
every write, and stays exact in float32.
"""

from __future__ import annotations

import torch
from torch import Tensor


def wrapped(count: Tensor, size: int) -> Tensor:
    """The bounded counter for a number of writes that may have run past 2n - 1."""
    return torch.where(count < size, count, size + count % size)


def next_entry(count: Tensor, size: int) -> Tensor:
    """One-hot `(..., n)`: the entry that the next write goes to, for a counter `(...)`."""
    entries = torch.arange(size, device=count.device, dtype=count.dtype)
    return (entries == (count % size)[..., None]).to(count.dtype)


def ages(count: Tensor, size: int) -> Tensor:
    """Writes since each entry's own, int64 `(..., n)`, newest 0; meaningless for entries that `filled` excludes."""
    entries = torch.arange(size, device=count.device, dtype=count.dtype)
    return ((count[..., None] - 1 - entries) % size).long()


def filled(count: Tensor, size: int) -> Tensor:
    """Whether each entry was ever written, bool `(..., n)`."""
    return torch.arange(size, device=count.device, dtype=count.dtype) < count[..., None]
