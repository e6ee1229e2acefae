"""Content-blind decisions to write: the controls of a learned gate (AURA-Mem, section 5.2)."""

from __future__ import annotations

import torch
from torch import Tensor

SCHEDULES = ("always", "random", "periodic", "never")
COUNTED = ("random", "periodic")
"""Schedules that need to know how many chances to write an episode has had."""


def scheduled(kind: str, count: Tensor, rho: float, seed: int = 0, fresh: bool = False) -> Tensor:
    """Whether to write `(B,)`, at a share `rho` of the chances, given the number of earlier chances `(B,)`.

    `random` draws anew where `fresh`; otherwise it is a fixed function of the count and `seed`, alike in every episode,
    so that a replay writes where the robot did.
    """
    if kind == "always":
        return torch.ones_like(count, dtype=torch.bool)
    if kind == "never":
        return torch.zeros_like(count, dtype=torch.bool)
    if kind == "periodic":
        done = count.double()
        return torch.floor((done + 1) * rho) > torch.floor(done * rho)
    drawn = torch.rand_like(count) if fresh else _hashed(count.long() + 1 + 7919 * seed)
    return drawn < rho


def _hashed(number: Tensor) -> Tensor:
    """A multiply-and-shift hash of integers to 0..1."""
    mixed = (number * 2654435761) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 15)) * 2246822519) & 0xFFFFFFFF
    mixed = ((mixed ^ (mixed >> 13)) * 3266489917) & 0xFFFFFFFF
    return (mixed ^ (mixed >> 16)).double() / 2.0**32
