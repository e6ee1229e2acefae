"""ELMUR's slot management (ELMUR, algorithm 2, eq. 3).

A slot's age is the number of writes from its anchor p to the running segment's first token, 0 while it is empty. Ages
order slots as anchors do, and do not grow with the episode: every segment rewrites one slot, the oldest.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from trace_memory_ros.memory.elmur.config import ElmurConfig


class SlotTrack(NamedTuple):
    """slots `(B, layers, M, d)`, zero while empty; age `(B, M)`; carried `(B, 1)`: segments since the last detachment.

    Every layer writes the same slot at the same time, so that they share ages and anchors.
    """

    slots: Tensor
    age: Tensor
    carried: Tensor


def least_recent(age: Tensor) -> Tensor:
    """Which slot is written next, one-hot `(B, M)` bool: the first empty one, or the oldest; ages `(B, M)`."""
    rank = torch.where(age > 0, age, torch.inf)
    return functional.one_hot(rank.argmax(dim=-1), age.shape[-1]).bool()


def filled(track: SlotTrack, initial: Tensor) -> Tensor:
    """The slots `(B, layers, M, d)` with the initial embeddings `(layers, M, d)` in the empty ones."""
    return torch.where((track.age > 0)[:, None, :, None], track.slots, initial)


def next_segment(track: SlotTrack, proposed: Tensor, where: Tensor, settings: ElmurConfig) -> SlotTrack:
    """Algorithm 2 for the episodes at which `where` `(B,)` holds: the due slot of each layer takes its proposal.

    proposed `(B, layers, M or 1, d)`. An empty slot takes all of it, another the share `blend`; its anchor becomes the
    last token of the segment that ends. After `gradient_segments` of them the slots are detached.
    """
    slots, age, carried = track
    is_empty, due = age == 0, least_recent(age)
    alpha = torch.where(is_empty, 1.0, torch.full_like(age, settings.blend))[:, None, :, None]
    rewritten = torch.where(due[:, None, :, None], alpha * proposed + (1 - alpha) * slots, slots)
    older = torch.where(is_empty, age, age + settings.segment)
    newest = torch.where(due, torch.ones_like(age), older)
    if settings.gradient_segments:
        cut = carried + 1 == settings.gradient_segments
        rewritten = torch.where(cut[..., None, None], rewritten.detach(), rewritten)
        carried = torch.where(where[:, None], torch.where(cut, torch.zeros_like(carried), carried + 1), carried)
    return SlotTrack(
        torch.where(where[:, None, None, None], rewritten, slots), torch.where(where[:, None], newest, age), carried
    )


def offsets(age: Tensor, position: Tensor) -> Tensor:
    """t - p `(B, n, M)` of tokens at positions `(B or 1, n)` of the segment; 0 stands for an empty slot."""
    return torch.where(age[:, None] > 0, age[:, None] + position[..., None], 0.0)
