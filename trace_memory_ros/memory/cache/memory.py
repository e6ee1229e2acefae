"""An attention cache behind any mechanism: `NAME+cache` in a configuration.

The inner mechanism keeps what is older than the cache, or has to be worked out; the cache keeps the first writes of the
episode and the last ones as they were, n in all. Each write leaves an entry of its content and of the vector that the
inner mechanism then reads, so an entry knows what came before it.

State: the inner mechanism's, entries `(B, n, d_k + d_v)`, the first ones and then a ring of the last, and a
counter of writes `(B,)` that wraps long before float32 loses count, at a multiple of the ring and of the codes' cycle.
"""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import (
    Memory,
    MemoryInput,
    Readout,
    State,
    WriteRecord,
    states_after,
    written_first,
)
from trace_memory_ros.memory.cache.attention import CYCLE, CacheAttention
from trace_memory_ros.memory.cache.config import CachedConfig
from trace_memory_ros.memory.wrapped import WrappedMemory

BLOCK = 64
"""Queries of a sequence that are answered at once, among those entries that any of them may see."""


class CachedMemory(WrappedMemory):
    """A mechanism and n writes as they were. The vector is the inner one plus what the heads recall.

    Entries of the readout are age bands, newest first: 1 write, the 2 before it, the 4 before those and so on, the
    episode's first ones; then the inner mechanism's own entries. A band's token is what the choosing heads find in it.
    """

    suffix = "+cache"
    slot_kind = "age band"

    def __init__(self, inner: Memory, config: CachedConfig | None = None) -> None:
        config = config or CachedConfig()
        super().__init__(inner, config)
        self.settings = config
        self.ring = config.window - config.first
        self.bands = int(math.log2(self.ring)) + 2
        self.attention = CacheAttention(inner.dims.content, inner.dims.width, config)
        self.to_token = nn.Linear(config.value, inner.dims.width, bias=False)

    @property
    def slot_count(self) -> int:
        """Age bands and N of the inner mechanism."""
        return self.bands + self.inner.slot_count

    def initial_state(self, batch: int) -> State:
        """The inner mechanism's, and an empty ring."""
        size = self.settings.key + self.settings.value
        ring = self._origin.new_zeros(batch, self.settings.window, size)
        return *self.inner.initial_state(batch), ring, self._origin.new_zeros(batch)

    def auxiliary(self, xs: MemoryInput, states: State, records: WriteRecord, mask: Tensor) -> dict[str, Tensor]:
        """The inner losses; of the states only the inner mechanism's are needed, which come first."""
        inner = states[: len(self.inner.initial_state(1))]
        return self.inner.auxiliary(xs, inner, self._without_cache(records), mask)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """The inner write, then its entry where the ring is oldest."""
        x = self.embed(x)
        *held, entries, count = state
        new, record = self.inner.write(x, tuple(held))
        entry = self.attention.entry(x.content, self.inner.read(x, new).vector)
        if self.training:
            self.attention.lived(count)
        numbers, _ = self._held(count.long())
        places = (numbers == count[:, None])[..., None]
        return (*new, torch.where(places, entry[:, None], entries), self._wrapped(count + 1)), self._with_cache(record)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """What the inner mechanism reads, and what the heads find among the entries."""
        *held, entries, count = state
        inner = Readout(*(part[:, None] for part in self.inner.read(x, tuple(held))))
        newest = count.long() - 1
        numbers, seen = self._held(newest)
        found = self._recall(x.content[:, None], inner, newest[:, None], entries, numbers, seen[:, None])
        return Readout(*(part[:, 0] for part in found))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, with the inner mechanism's own scan."""
        xs = self.embed(xs)
        *held, old, count = state
        states, final, record = self.inner.scan(xs, tuple(held), mask)
        entries = self._entries(xs, self.inner.read_sequence(xs, states).vector, mask)
        start = count.long()[:, None]
        newest = start + mask.cumsum(dim=1) - 1
        if self.training:
            self.attention.lived(newest)
        # A place holds an entry of this scan if its number is not from before.
        numbers, seen = self._held(newest)
        since = numbers - start[..., None]
        rows = torch.arange(len(old), device=old.device)[:, None, None]
        new = (since >= 0) & seen
        caches = torch.where(new[..., None], entries[rows, since.clamp(0, entries.shape[1] - 1)], old[:, None])
        counts = self._wrapped((newest + 1).to(count))
        records = self._with_cache(record).only_where(mask)
        return (*states, caches, counts), (*final, caches[:, -1], counts[:, -1]), records

    def unroll(
        self, xs: MemoryInput, mask: Tensor, queries: MemoryInput | None = None, at: Tensor | None = None
    ) -> tuple[Readout, State, WriteRecord]:
        """As `Memory.unroll`, of whose states it returns the inner mechanism's: no step's entries are copied."""
        xs = self.embed(xs)
        states, _, record = self.inner.scan(xs, self.inner.initial_state(len(mask)), mask)
        left = self.inner.read_sequence(xs, states)
        entries = self._entries(xs, left.vector, mask)
        newest = mask.cumsum(dim=1) - 1
        if self.training:
            self.attention.lived(newest)
        asked, inner = xs, left
        if queries is not None and at is not None:
            asked, newest = queries, newest.gather(1, at)
            inner = self.inner.read_sequence(queries, states_after(states, at))
        first = entries.new_zeros(len(mask), self.settings.first, entries.shape[2])
        first[:, : mask.shape[1]] = entries[:, : self.settings.first]
        blocks = (torch.split(part, BLOCK, dim=1) for part in (asked.content, *inner, newest))
        found = [
            self._recall_at_once(content, Readout(*read), last, first, entries)
            for content, *read, last in zip(*blocks, strict=True)
        ]
        readout = Readout(*(torch.cat(parts, dim=1) for parts in zip(*found, strict=True)))
        return readout, states, self._with_cache(record).only_where(mask)

    def _recall_at_once(
        self, content: Tensor, inner: Readout, newest: Tensor, first: Tensor, entries: Tensor
    ) -> Readout:
        """The readout of some queries, from the episode's first entries and what any of the queries may see of all."""
        low, high = max(int(newest.min()) - self.ring + 1, 0), int(newest.max()) + 1
        counted = (torch.arange(*span, device=newest.device) for span in ((0, self.settings.first), (low, high)))
        numbers = torch.cat(tuple(counted)).expand(len(newest), -1)
        age = newest[..., None] - numbers[:, None]
        seen = (age >= 0) & ((age < self.ring) | self._kept(age.shape[2], age.device))
        return self._recall(content, inner, newest, torch.cat((first, entries[:, low:high]), dim=1), numbers, seen)

    def _held(self, newest: Tensor) -> tuple[Tensor, Tensor]:
        """Number at each place, int64 `(..., n)`, once number `newest` `(...)` is written, and whether it is there."""
        places = torch.arange(self.settings.window, device=newest.device)
        last = newest[..., None] - (newest[..., None] - places + self.settings.first) % self.ring
        numbers = torch.where(places < self.settings.first, places, last)
        return numbers, (numbers >= 0) & (numbers <= newest[..., None])

    def _kept(self, entries: int, device: torch.device) -> Tensor:
        """Which of so many entries are the episode's first."""
        return torch.arange(entries, device=device) < self.settings.first

    def _entries(self, xs: MemoryInput, vector: Tensor, mask: Tensor) -> Tensor:
        """Entries `(B, T, d_k + d_v)` of a sequence, the written ones first."""
        return written_first(self.attention.entry(xs.content, vector), mask)

    def _recall(
        self, content: Tensor, inner: Readout, newest: Tensor, entries: Tensor, numbers: Tensor, seen: Tensor
    ) -> Readout:
        """The whole readout `(B, Q, ...)`; arguments are those of `CacheAttention.forward`."""
        kept = self._kept(numbers.shape[1], numbers.device)
        # Entries of an age that training never met are not shown.
        seen = seen & (kept | (newest[..., None] - numbers[:, None] < self.attention.known))
        recalled, weights = self.attention(content, inner.vector, newest, entries, numbers, seen)
        band = (newest[..., None] - numbers[:, None] + 1).clamp(min=1).log2().long().clamp(max=self.bands - 2)
        band = torch.where(kept, self.bands - 1, band)
        each = torch.arange(self.bands, device=band.device)[:, None]
        by_band = torch.where(band[:, :, None] == each, weights[:, :, None], torch.zeros_like(weights[:, :, None]))
        found = by_band.flatten(1, 2) @ entries[..., self.settings.key :]
        tokens = self.to_token(found).unflatten(1, by_band.shape[1:3])
        return Readout(
            torch.cat((tokens, inner.tokens), dim=2),
            inner.vector + recalled,
            self._read_weights(by_band.sum(dim=-1), inner.read_weights),
            inner.address,
        )

    def _read_weights(self, bands: Tensor, inner: Tensor) -> Tensor:
        """Half for what the heads find in each band; what they leave and the other half for the inner entries."""
        left = 1 - bands.sum(dim=-1, keepdim=True)
        if not self.inner.slot_count:
            return bands + left / self.bands
        return torch.cat((bands / 2, (1 + left) / 2 * inner), dim=-1)

    def _with_cache(self, record: WriteRecord) -> WriteRecord:
        """The inner record behind the bands': every write fills the newest band, whatever the inner mechanism does."""
        newest = torch.zeros_like(record.gate)[..., None].expand(*record.gate.shape, self.bands).clone()
        newest[..., 0] = 1.0
        share = 0.5 if self.inner.slot_count else 0.0
        return WriteRecord(
            torch.cat(((1 - share) * newest, share * record.route), dim=-1),
            torch.cat((newest, record.write_strength), dim=-1),
            record.gate,
            record.surprise,
            torch.ones_like(record.wrote),
        )

    def _without_cache(self, record: WriteRecord) -> WriteRecord:
        route, strength = record.route[..., self.bands :], record.write_strength[..., self.bands :]
        return record._replace(route=2 * route, write_strength=strength)

    def _wrapped(self, count: Tensor) -> Tensor:
        """The counter for a number of writes, which goes round beyond every number that has a code of its own."""
        size = max(self.settings.window, CYCLE) + 1  # the newest number, one less, is none of them either
        return torch.where(count < size, count, size + (count - size) % math.lcm(self.ring, CYCLE))
