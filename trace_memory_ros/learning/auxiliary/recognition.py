"""To know again what was seen: readouts are to ask for sights of their own episode, not of others."""

from __future__ import annotations

import torch
from torch import Tensor

from trace_memory_ros.learning.data.batches import EpisodeBatch
from trace_memory_ros.policies.places import Places
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.placed import there

APART = 1e4
"""Taken from the score of what is not to be compared."""


def recognition_loss(places: Places, asked: Tensor, batch: EpisodeBatch, written: Features) -> Tensor:
    """Cross-entropy of finding, among sights of all episodes, any of one's own (MIL-NCE, Miech et al. 2020).

    asked: what each read's readout asks with `(B * R, w)`. written: what the writes saw `(B, T, C, K, d)`. A sight is
    any token of any write before the read and before the first decision, drawn anew at each call: what comes later is
    seen by whoever decides. Of several that were seen each decision may ask for another. An answer is learned by heart
    as well as by looking; of which sight is whose nothing can be learned but to look. A mean over reads and cameras, of
    all reads.
    """
    episodes, reads = batch.last_write.shape
    sights, some = _drawn(written.tokens, batch)
    query, key = places.queries(asked), places.keys(sights)
    alike = torch.einsum("nchd,mchd->cnmh", query, key) * places.sharpness.exp()[:, 0]
    of = torch.arange(episodes, device=asked.device).repeat_interleave(reads)
    same, last = of[:, None] == of, batch.last_write.flatten()
    # What another read of the same episode drew may not have been seen yet.
    own = same & (last[:, None] >= last)
    scores = alike.mean(dim=-1) - APART * ((same & ~own) | ~some.T[:, None])
    losses = scores.logsumexp(dim=2) - (scores - APART * ~own).logsumexp(dim=2)
    return (losses * some.T).sum() / some.numel()


def _drawn(tokens: Tensor, batch: EpisodeBatch) -> tuple[Tensor, Tensor]:
    """A sight for each read and camera `(B * R, C, d)` of tokens `(B, T, C, K, d)`, and whether there is one.

    Any write first, then any token of it, so that a picture of many things counts no more than one of a single thing.
    """
    seen = there(tokens)
    before = (_first_steps(batch)[:, None] <= batch.last_write[..., None]) & (batch.mask & batch.early)[:, None]
    shown = before[..., None] & seen.any(dim=-1)[:, None]
    some = shown.any(dim=2).flatten(0, 1)
    write = _any(shown.transpose(2, 3))
    episode = torch.arange(len(tokens), device=tokens.device)[:, None, None]
    camera = torch.arange(tokens.shape[2], device=tokens.device)
    of_write = seen[episode, write, camera]
    return tokens[episode, write, camera, _any(of_write)].flatten(0, 1), some


def _first_steps(batch: EpisodeBatch) -> Tensor:
    """The step of the scan at which each write `(B, T)` comes first."""
    writes = batch.mask.shape[1]
    if batch.order is None:
        return torch.arange(writes, device=batch.mask.device).expand(batch.mask.shape)
    steps = torch.arange(batch.order.shape[1], device=batch.order.device).expand(batch.order.shape)
    # What is no write goes to one more place.
    of = torch.where(batch.order < 0, writes, batch.order)
    never = torch.full((len(of), writes + 1), batch.order.shape[1], device=of.device)
    return never.scatter_reduce(1, of, steps, "amin")[:, :-1]


def _any(choices: Tensor) -> Tensor:
    """The index of any that is True of `(..., n)`; the first where none is."""
    return (choices * (1.0 + torch.rand(choices.shape, device=choices.device))).argmax(dim=-1)
