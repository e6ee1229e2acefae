"""Transformer over the last n writes: the history-context control of TRACE's table 2.

Symbols: e content, x = W_x e entry, h residual stream of one tick, k and v its cached keys and values per layer.
A tick's h starts at its x and in each layer attends to what the last n writes left in that layer's cache, so causal
attention needs no recomputation. The cache is a ring; keys carry no position, a learned bias per age does.

One counter of writes tells which entry of the ring holds what: it rises to n while the ring fills and then goes round
n .. 2n - 1, so that it never overflows, changes at every write, and stays exact in float32.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord, written_first


@dataclass(frozen=True)
class TransformerConfig:
    """window: writes remembered, n; layers, heads: of the transformer; hidden: feed-forward width, 0 for twice d."""

    window: int = 32
    layers: int = 1
    heads: int = 2
    hidden: int = 0

    def __post_init__(self) -> None:
        if self.window < 2:
            raise ValueError(f"TransformerConfig.window = {self.window}: must be at least 2")
        if self.layers < 1 or self.heads < 1:
            raise ValueError(f"{self}: layers and heads must be at least 1")
        if self.hidden < 0:
            raise ValueError(f"TransformerConfig.hidden = {self.hidden}: give a width, or 0 for twice MemoryDims.width")


class Layer(nn.Module):
    """One pre-norm layer: attention to cached keys with a bias per age, then a feed-forward network."""

    def __init__(self, width: int, config: TransformerConfig) -> None:
        super().__init__()
        self.heads = config.heads
        hidden = config.hidden or 2 * width
        self.norm_attention = nn.LayerNorm(width)
        self.query_key_value = nn.Linear(width, 3 * width)
        self.age_bias = nn.Parameter(torch.zeros(config.heads, config.window))
        self.out = nn.Linear(width, width)
        self.feed_forward = nn.Sequential(
            nn.LayerNorm(width), nn.Linear(width, hidden), nn.GELU(), nn.Linear(hidden, width)
        )

    def project(self, h: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Query, key and value `(..., d)` of residual streams `(..., d)`."""
        query, key, value = self.query_key_value(self.norm_attention(h)).chunk(3, dim=-1)
        return query, key, value

    def attend(
        self, h: Tensor, query: Tensor, keys: Tensor, values: Tensor, age: Tensor, seen: Tensor
    ) -> tuple[Tensor, Tensor]:
        """Residual streams `(B, Q, d)` after the layer, and the heads' mean weights `(B, Q, M)`.

        keys, values `(B, M, d)`; age int64 and seen bool `(B, Q, M)` say which of them a query may see, and how old
        they are. A query that may see none attends to all alike.
        """
        q, k, v = (f.reshape(*f.shape[:2], self.heads, -1).transpose(1, 2) for f in (query, keys, values))
        scores = q @ k.transpose(-1, -2) / math.sqrt(q.shape[-1])
        bias = self.age_bias[:, age.clamp(0, self.age_bias.shape[1] - 1)].transpose(0, 1)
        weights = torch.softmax((scores + bias).masked_fill(~seen[:, None], torch.finfo(h.dtype).min), dim=-1)
        h = h + self.out((weights @ v).transpose(1, 2).flatten(-2))
        return h + self.feed_forward(h), weights.mean(dim=1)


class TransformerMemory(Memory):
    """Tokens are the n entries x with their age, the vector is the last h; no signature, no address.

    `dims.slots` is ignored: N is `window`. State: cache `(B, n, (1 + 2 layers) d)`, x and every layer's k and v of
    each entry; and the write counter `(B,)`. Each layer reaches n - 1 writes further back, since cached keys of a layer
    hold what the layers below saw; with one layer nothing older than the last n writes matters.
    """

    name = "transformer"
    slot_kind = "ring entry"

    def __init__(self, dims: MemoryDims, config: TransformerConfig | None = None) -> None:
        config = config or TransformerConfig()
        super().__init__(dims, config)
        if dims.width % config.heads:
            raise ValueError(f"TransformerConfig.heads = {config.heads}: must divide MemoryDims.width = {dims.width}")
        self.settings = config
        self.embedding = nn.Linear(dims.content, dims.width)
        self.layers = nn.ModuleList(Layer(dims.width, config) for _ in range(config.layers))
        self.norm_out = nn.LayerNorm(dims.width)
        self.age_token = nn.Parameter(0.02 * torch.randn(config.window, dims.width))

    @property
    def slot_count(self) -> int:
        """The window n."""
        return self.settings.window

    @property
    def reach(self) -> int:
        """n, and n - 1 more for each further layer: an entry's keys were made from those before it."""
        return self.settings.window + (self.settings.layers - 1) * (self.settings.window - 1)

    def initial_state(self, batch: int) -> State:
        """An empty ring."""
        size = (1 + 2 * self.settings.layers) * self.dims.width
        return self._origin.new_zeros(batch, self.settings.window, size), self._origin.new_zeros(batch)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Put the entry and its keys and values where the ring is oldest."""
        cache, count = state
        size = self.settings.window
        place = _next_entry(count, size)
        count = _wrapped(count + 1, size)
        entry = self.embedding(x.content)
        parts, h = [entry], entry[:, None]
        for number, layer in enumerate(self._layers()):
            query, key, value = layer.project(h)
            parts += [key[:, 0], value[:, 0]]
            keys, values = (
                torch.where(place[..., None] > 0, new, old)
                for new, old in zip((key, value), self._layer_cache(cache, number), strict=True)
            )
            h, _ = layer.attend(h, query, keys, values, _ages(count, size)[:, None], _filled(count, size)[:, None])
        cache = torch.where(place[..., None] > 0, torch.cat(parts, dim=-1)[:, None], cache)
        return (cache, count), WriteRecord.ungated(place, place)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """The current content as the newest token, attending to the cache without entering it."""
        cache, count = state
        size = self.settings.window
        age, seen = _ages(count, size), _filled(count, size)
        h, weights = self.embedding(x.content)[:, None], seen.to(cache.dtype)[:, None]
        for number, layer in enumerate(self._layers()):
            keys, values = self._layer_cache(cache, number)
            h, weights = layer.attend(h, layer.project(h)[0], keys, values, age[:, None], seen[:, None])
        entries = cache[..., : self.dims.width] + self.age_token[age]
        tokens = torch.where(seen[..., None], entries, torch.zeros_like(entries))
        return Readout(tokens, self.norm_out(h[:, 0]), weights[:, 0], cache.new_zeros(cache.shape[0], 0))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, layer by layer for all steps at once."""
        cache, start = state
        size = self.settings.window
        # Written steps move to the front, so that neighbours in this order are neighbours in the ring.
        content = written_first(xs.content, mask)
        history = self._extend(_oldest_first(cache, start), start, content)
        done = mask.cumsum(dim=1)
        count = _wrapped(start[:, None] + done, size)
        # Of the n + T entries in order of age, the one that ring entry j holds after each step.
        held = size + done[..., None] - 1 - _ages(count, size)
        rows = torch.arange(mask.shape[0], device=mask.device)[:, None, None]
        caches = history[rows, held]
        before = _wrapped(start[:, None] + done - mask.long(), size)
        place = _next_entry(before, size)
        return (caches, count), (caches[:, -1], count[:, -1]), WriteRecord.ungated(place, place).only_where(mask)

    def _extend(self, history: Tensor, start: Tensor, content: Tensor) -> Tensor:
        """Caches `(B, n + T, ...)` of the n entries there were, oldest first, and of T further writes `(B, T, d_e)`."""
        size, steps = self.settings.window, content.shape[1]
        index = torch.arange(size + steps, device=content.device)
        age = (index[size:, None] - index)[None].expand(content.shape[0], -1, -1)
        written = index >= size - torch.clamp(start, max=size)[:, None]
        seen = (age >= 0) & (age < size) & written[:, None]
        h = self.embedding(content)
        parts = [h]
        for number, layer in enumerate(self._layers()):
            query, key, value = layer.project(h)
            parts += [key, value]
            keys, values = (
                torch.cat((old, new), dim=1)
                for old, new in zip(self._layer_cache(history, number), (key, value), strict=True)
            )
            h, _ = layer.attend(h, query, keys, values, age, seen)
        return torch.cat((history, torch.cat(parts, dim=-1)), dim=1)

    def _layers(self) -> list[Layer]:
        return [layer for layer in self.layers if isinstance(layer, Layer)]

    def _layer_cache(self, cache: Tensor, number: int) -> tuple[Tensor, Tensor]:
        """Keys and values `(B, n, d)` of one layer."""
        parts = cache.chunk(1 + 2 * self.settings.layers, dim=-1)
        return parts[1 + 2 * number], parts[2 + 2 * number]


def _oldest_first(cache: Tensor, count: Tensor) -> Tensor:
    """Ring entries `(B, n, c)` in order of age, the newest last."""
    size = cache.shape[1]
    index = (count.long()[:, None] + torch.arange(size, device=cache.device)) % size
    return cache.gather(1, index[..., None].expand_as(cache))


def _wrapped(count: Tensor, size: int) -> Tensor:
    """The bounded counter for a number of writes that may have run past 2n - 1."""
    return torch.where(count < size, count, size + count % size)


def _next_entry(count: Tensor, size: int) -> Tensor:
    """One-hot `(..., n)`: the entry that the next write goes to, for a counter `(...)`."""
    entries = torch.arange(size, device=count.device, dtype=count.dtype)
    return (entries == (count % size)[..., None]).to(count.dtype)


def _ages(count: Tensor, size: int) -> Tensor:
    """Writes since each entry's own, int64 `(..., n)`, newest 0; meaningless for entries that `_filled` excludes."""
    entries = torch.arange(size, device=count.device, dtype=count.dtype)
    return ((count[..., None] - 1 - entries) % size).long()


def _filled(count: Tensor, size: int) -> Tensor:
    """Whether each entry was ever written, bool `(..., n)`."""
    return torch.arange(size, device=count.device, dtype=count.dtype) < count[..., None]
