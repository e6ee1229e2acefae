"""Signatures of all prefixes of many paths at once, in torch, with gradients.

Level n of prefix t is a running sum of the Horner increments B_(n-1)(t) z_t, and these need the lower levels alone: so
each level is one cumulative sum over time, and no loop over time remains.
"""

from __future__ import annotations

import torch
from torch import Tensor

from .layout import check_layout


def batch_signature(paths: Tensor, depth: int, mask: Tensor | None = None) -> Tensor:
    """Signatures `(B, T, S)`, canonical order, of every prefix of `paths` `(B, T, d)`; prefix 0 is all zeros.

    mask: `(B, T)` bool, False on padding at the end of a row. Padded steps, whatever they hold, repeat the last
    signature and get no gradient. float32 or float64 as `paths`; ValueError for other shapes, types or masks.
    """
    if paths.ndim != 3 or paths.shape[1] == 0 or paths.dtype not in (torch.float32, torch.float64):
        raise ValueError(f"paths {tuple(paths.shape)} {paths.dtype}: expected (B, T, d), T >= 1, float32 or float64")
    check_layout(paths.shape[2], depth)
    steps = _steps(paths, mask)
    before: list[Tensor] = []
    levels: list[Tensor] = []
    for n in range(1, depth + 1):
        level = torch.cumsum(_increments(steps, before, n), dim=1)
        level = torch.cat([level.new_zeros(level.shape[0], 1, level.shape[2]), level], dim=1)
        levels.append(level)
        before.append(level[:, :-1])
    return torch.cat(levels, dim=2)


def _increments(steps: Tensor, before: list[Tensor], n: int) -> Tensor:
    """What each step adds to level n, `(B, T-1, d**n)`; before: levels 1..n-1 ahead of the step."""
    product = steps / n
    for m in range(1, n):
        product = _append(before[m - 1] + product, steps / (n - m))
    return product


def _append(words: Tensor, letters: Tensor) -> Tensor:
    """Outer product over the last dimensions, flattened with the newest letter fastest."""
    return (words.unsqueeze(-1) * letters.unsqueeze(-2)).flatten(-2)


def _steps(paths: Tensor, mask: Tensor | None) -> Tensor:
    """Segments `(B, T-1, d)`, zero where they lead into padding."""
    if mask is None:
        return paths.diff(dim=1)
    if mask.shape != paths.shape[:2] or mask.dtype != torch.bool:
        raise ValueError(f"mask {tuple(mask.shape)} {mask.dtype}: expected bool of shape {tuple(paths.shape[:2])}")
    if not bool(mask[:, 0].all()) or bool((mask[:, 1:] & ~mask[:, :-1]).any()):
        raise ValueError("mask: every row needs at least one valid step and padding at its end only")
    steps = torch.where(mask[..., None], paths, 0.0).diff(dim=1)
    return torch.where(mask[:, 1:, None], steps, 0.0)
