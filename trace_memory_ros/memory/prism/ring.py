"""PRISM's global encoder over a ring of the last n written ticks: tick by tick, and a whole sequence at once.

**Window.** In every layer the tick of write t attends to the keys of the writes t - n + 1 .. t, itself among them. A
key is made once, when its tick is written, from what its tick had attended to then, and is never made again. A whole
sequence is therefore the same computation under a band of width n in every layer, and with L layers a tick depends
on the writes back to t - L (n - 1): on those before t - n + 1 only through what younger ones took over from them.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.prism.layers import GatedLayer, split


class Ring(NamedTuple):
    """keys, values `(B, L, n, w)` of every layer; outputs `(B, n, w)` of the encoder; cursor `(B, 2)`.

    The cursor holds the entry that the next write goes to and how many entries are filled: both bounded for ever.
    """

    keys: Tensor
    values: Tensor
    outputs: Tensor
    cursor: Tensor

    @property
    def next_entry(self) -> Tensor:
        """`(B,)`."""
        return self.cursor[:, 0]

    @property
    def filled(self) -> Tensor:
        """`(B,)`."""
        return self.cursor[:, 1]

    def ages(self) -> Tensor:
        """Writes since each entry's own `(B, n)`, 0 for the newest; an empty entry's is at least `filled`."""
        return ages_at(self.next_entry, self.outputs.shape[1])


class Output(NamedTuple):
    """Of one tick or a sequence: y `(B, (T,) w)`; keys, values `(B, L, (T,) w)`."""

    y: Tensor
    keys: Tensor
    values: Tensor


class GlobalEncoder(nn.Module):
    """`layers` gated causal blocks over the summaries of ticks."""

    def __init__(
        self, width: int, heads: int, hidden: int, layers: int, window: int, gate: str, gate_hidden: int
    ) -> None:
        super().__init__()
        self.heads, self.window = heads, window
        self.layers = nn.ModuleList(GatedLayer(width, heads, hidden, gate, gate_hidden) for _ in range(layers))
        self.norm = nn.RMSNorm(width)
        self.width = width

    def empty(self, batch: int, like: Tensor) -> Ring:
        """A ring with nothing in it, of the dtype and device of `like`."""
        count, width, layers = self.window, self.width, len(self.layers)
        cache = (batch, layers, count, width)
        return Ring(*(like.new_zeros(s) for s in (cache, cache, (batch, count, width), (batch, 2))))

    def push(self, summary: Tensor, ring: Ring) -> tuple[Ring, Tensor]:
        """Write one tick's summary `(B, w)`; returns the ring after it and the one-hot entry written `(B, n)`."""
        count = self.window
        at = functional.one_hot(ring.next_entry.long(), count).bool()
        cursor = torch.stack(((ring.next_entry + 1).remainder(count), (ring.filled + 1).clamp(max=count)), dim=1)
        after = ring._replace(cursor=cursor)
        h, keys, values = summary, [], []
        for index, layer in enumerate(self._gated()):
            query, key, value = layer.project(h)
            keys.append(torch.where(at[..., None], key[:, None], ring.keys[:, index]))
            values.append(torch.where(at[..., None], value[:, None], ring.values[:, index]))
            h, _ = self._look(layer, h, query, keys[-1], values[-1], after)
        outputs = torch.where(at[..., None], self.norm(h)[:, None], ring.outputs)
        return Ring(torch.stack(keys, dim=1), torch.stack(values, dim=1), outputs, cursor), at

    def look(self, summary: Tensor, ring: Ring) -> tuple[Tensor, Tensor]:
        """Output y `(B, w)` of one tick's summary over the ring as it is, and the mean attention `(B, n)`.

        For the tick just pushed this is the encoder's output; for a later one, what it retrieves without being kept.
        Attention is averaged over heads and layers; it sums to 1, or to 0 where the ring is empty.
        """
        h, shares = summary, []
        for index, layer in enumerate(self._gated()):
            query, _, _ = layer.project(h)
            h, share = self._look(layer, h, query, ring.keys[:, index], ring.values[:, index], ring)
            shares.append(share)
        y: Tensor = self.norm(h)
        return y, torch.stack(shares).mean(dim=0)

    def look_back(self, summaries: Tensor, written: Output, counts: Tensor) -> tuple[Tensor, Tensor]:
        """What `look` finds for summaries `(B, R, w)`, each after `counts` `(B, R)` of the T writes of an episode.

        Returns y `(B, R, w)` and the mean attention on each write `(B, R, T)`.
        """
        where = torch.arange(written.y.shape[1], device=counts.device)
        here = (where < counts[..., None]) & (where >= counts[..., None] - self.window)
        h, shares = summaries, []
        for index, layer in enumerate(self._gated()):
            query = layer.turn(split(layer.query(layer.norm(h)), self.heads), counts - 1)
            keys = layer.turn(split(written.keys[:, index], self.heads), where)
            weights = _weights(query, keys, here)
            h = layer.finish(h, weights @ split(written.values[:, index], self.heads))
            shares.append(weights.mean(dim=1))
        y: Tensor = self.norm(h)
        return y, torch.stack(shares).mean(dim=0)

    def whole(self, summaries: Tensor, ring: Ring | None = None) -> Output:
        """Push `(B, T, w)` all at once after `ring` (None: an empty one): what T pushes compute."""
        batch, steps, _ = summaries.shape
        past = None if ring is None else unroll(ring)
        where = torch.arange(1 - self.window if past else 1, steps + 1, device=summaries.device)
        position, mask = where[-steps:] if steps else where[:0], None
        if past is not None or steps > self.window:
            mask = (where <= position[:, None]) & (where > position[:, None] - self.window)
            mask = mask.expand(batch, 1, -1, -1)
        if ring is not None and mask is not None:
            mask = mask & (where > -ring.filled[:, None])[:, None, None]
        h, keys, values = summaries, [], []
        for index, layer in enumerate(self._gated()):
            query, key, value = layer.project(h)
            keys.append(key)
            values.append(value)
            if past is not None:
                key = torch.cat((past.keys[:, index], key), dim=1)
                value = torch.cat((past.values[:, index], value), dim=1)
            attended = functional.scaled_dot_product_attention(
                layer.turn(split(query, self.heads), position),
                layer.turn(split(key, self.heads), where),
                split(value, self.heads),
                attn_mask=mask,
                is_causal=mask is None,
            )
            h = layer.finish(h, attended)
        return Output(self.norm(h), torch.stack(keys, dim=1), torch.stack(values, dim=1))

    def _gated(self) -> list[GatedLayer]:
        return [layer for layer in self.layers if isinstance(layer, GatedLayer)]

    def _look(
        self, layer: GatedLayer, h: Tensor, query: Tensor, keys: Tensor, values: Tensor, ring: Ring
    ) -> tuple[Tensor, Tensor]:
        """One layer of one tick over the ring's `(B, n, w)`: its output `(B, w)` and the heads' mean attention."""
        ages = ring.ages()
        heads = split(query[:, None], self.heads)
        turned = layer.turn(split(keys, self.heads), -ages)
        weights = _weights(heads, turned, (ages < ring.filled[:, None])[:, None])
        attended = weights @ split(values, self.heads)
        return layer.finish(h[:, None], attended)[:, 0], weights[:, :, 0].mean(dim=1)


def unroll(ring: Ring) -> Output:
    """The ring's entries from oldest to newest, time as in `Output`; the empty ones, zeros, come first."""
    count = ring.outputs.shape[1]
    order = (ring.next_entry[:, None] + torch.arange(count, device=ring.cursor.device)).remainder(count).long()
    index = order[..., None].expand(-1, -1, ring.outputs.shape[-1])
    layers = index[:, None].expand(-1, ring.keys.shape[1], -1, -1)
    return Output(ring.outputs.gather(1, index), ring.keys.gather(2, layers), ring.values.gather(2, layers))


def rings_after(ring: Ring, new: Output, counts: Tensor) -> Ring:
    """The ring after `counts` `(B, S)` of the pushes that `new` holds, each tensor with S after its batch."""
    past, size = unroll(ring), ring.outputs.shape[1]
    end = (ring.next_entry[:, None] + counts).remainder(size)
    index = (counts[..., None] + size - 1 - ages_at(end, size)).long()
    filled = (ring.filled[:, None] + counts).clamp(max=size)
    layers = ring.keys.shape[1]
    keys, values = (
        torch.stack([rows(torch.cat((a[:, i], b[:, i]), dim=1), index) for i in range(layers)], dim=2)
        for a, b in ((past.keys, new.keys), (past.values, new.values))
    )
    outputs = rows(torch.cat((past.y, new.y), dim=1), index)
    return Ring(keys, values, outputs, torch.stack((end, filled), dim=-1))


def ages_at(next_entry: Tensor, size: int) -> Tensor:
    """Writes since that of each entry `(..., n)` of a ring whose next write goes to `next_entry` `(...)`."""
    return (next_entry[..., None] - 1 - torch.arange(size, device=next_entry.device)).remainder(size)


def rows(history: Tensor, index: Tensor) -> Tensor:
    """Rows `index` `(B, S, n)` of `history` `(B, R, w)`: `(B, S, n, w)`."""
    batch, rows, width = history.shape
    flat = index + rows * torch.arange(batch, device=index.device)[:, None, None]
    return history.reshape(-1, width).index_select(0, flat.flatten()).reshape(*index.shape, width)


def _weights(query: Tensor, keys: Tensor, here: Tensor) -> Tensor:
    """Attention `(B, H, Q, K)` of turned queries over turned keys `(B, H, Q or K, c)`, where `here` `(B, Q, K)`."""
    scores = (query @ keys.transpose(-1, -2)) / math.sqrt(query.shape[-1])
    here = here[:, None]
    # With nothing to look at there is nothing to share out: the weights become 0, not the softmax of nothing.
    return torch.softmax(scores.masked_fill(~here, torch.finfo(scores.dtype).min), dim=-1) * here
