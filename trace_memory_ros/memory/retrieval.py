"""A bounded store of embeddings, the nearest of which become a prompt: the retrieval control of TRACE's table 2.

Symbols: e content, k and v key and value of a stored write, q query of the current tick. Every write is stored; a read
takes the top_k entries with the greatest cosine of key to query. In TRACE's table the store grows with the episode;
here it holds n entries and gives one up for each write beyond them, see `RetrievalConfig.evict`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord, write_steps
from trace_memory_ros.memory.layers import mlp

EVICTIONS = ("redundant", "oldest")
OLDEST_AGE = float(2**23)
"""Ages stop here, where float32 still counts by one."""


@dataclass(frozen=True)
class RetrievalConfig:
    """capacity: entries stored, n; top_k: entries that a read takes; hidden: of the networks, 0 for d.

    evict: which entry a write takes once all are full. redundant: of the two entries whose keys are most alike, the
    older, so that what was seen only once stays. oldest: the one written longest ago.
    sharpness: initial factor of the cosines.
    """

    capacity: int = 32
    top_k: int = 4
    hidden: int = 0
    evict: str = "redundant"
    sharpness: float = 10.0

    def __post_init__(self) -> None:
        if self.capacity < 2:
            raise ValueError(f"RetrievalConfig.capacity = {self.capacity}: must be at least 2")
        if not 1 <= self.top_k <= self.capacity:
            raise ValueError(f"RetrievalConfig.top_k = {self.top_k}: must be in 1 .. capacity = {self.capacity}")
        if self.hidden < 0:
            raise ValueError(f"RetrievalConfig.hidden = {self.hidden}: give a width, or 0 for MemoryDims.width")
        if self.evict not in EVICTIONS:
            raise ValueError(f"RetrievalConfig.evict = {self.evict!r}: choose from {', '.join(EVICTIONS)}")
        if self.sharpness <= 0:
            raise ValueError(f"RetrievalConfig.sharpness = {self.sharpness}: must be positive")


class Entry(NamedTuple):
    """A write before it is stored: unit key and value `(..., d)`."""

    key: Tensor
    value: Tensor


class RetrievalMemory(Memory):
    """Tokens are the values of the retrieved entries, each in its entry's place, and zero elsewhere; the vector is
    their normalised mix; no signature, no address.

    `dims.slots` is ignored: N is `capacity`. State: keys and values `(B, n, d)`; age `(B, n)`, writes since the entry's
    own, from 1, and 0 where nothing was stored yet.
    """

    name = "retrieval"
    slot_kind = "stored entry"

    def __init__(self, dims: MemoryDims, config: RetrievalConfig | None = None) -> None:
        config = config or RetrievalConfig()
        super().__init__(dims, config)
        self.settings = config
        hidden, width = config.hidden or dims.width, dims.width
        self.norm_content = nn.LayerNorm(dims.content)
        self.phi_key = mlp(dims.content, hidden, width)
        self.phi_value = mlp(dims.content, hidden, width)
        self.phi_query = mlp(dims.content, hidden, width)
        self.log_sharpness = nn.Parameter(torch.tensor(config.sharpness).log())
        self.out = nn.Linear(width, width)
        self.norm_out = nn.LayerNorm(width)

    @property
    def slot_count(self) -> int:
        """The capacity n."""
        return self.settings.capacity

    def initial_state(self, batch: int) -> State:
        """An empty store."""
        store = self._origin.new_zeros(batch, self.settings.capacity, self.dims.width)
        return store, store.clone(), store.new_zeros(batch, self.settings.capacity)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Store key and value in the first free place, or in that of the entry given up."""
        return self._store(self._entry(x), state)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """The entries nearest to the current content.

        Their weights are a softmax over these entries alone; its gradient is taken as that of the softmax over all
        entries (straight through), so that the key of an entry which should have been retrieved learns it, too.
        """
        keys, values, age = state
        stored = age > 0
        query = functional.normalize(self.phi_query(self.norm_content(x.content)), dim=-1)
        scores = self.log_sharpness.exp() * (keys @ query[..., None])[..., 0]
        scores = scores.masked_fill(~stored, torch.finfo(scores.dtype).min)
        nearest = torch.zeros_like(scores).scatter(1, scores.topk(self.settings.top_k, dim=1).indices, 1.0)
        weights = torch.softmax(scores.masked_fill(nearest == 0, torch.finfo(scores.dtype).min), dim=-1)
        soft = torch.softmax(scores, dim=-1)
        passed = soft - soft.detach()
        weights = weights.detach() + passed
        mixed = (weights[:, None] @ values)[:, 0]
        tokens = ((nearest * stored) + passed)[..., None] * values
        return Readout(tokens, self.norm_out(self.out(mixed)), weights, values.new_zeros(values.shape[0], 0))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, with keys and values computed for all steps at once."""
        entries = self._entry(xs)
        return write_steps(lambda t, held: self._store(Entry(*(part[:, t] for part in entries)), held), state, mask)

    def _entry(self, x: MemoryInput) -> Entry:
        content = self.norm_content(x.content)
        return Entry(functional.normalize(self.phi_key(content), dim=-1), self.phi_value(content))

    def _store(self, entry: Entry, state: State) -> tuple[State, WriteRecord]:
        keys, values, age = state
        place = self._place(keys, age)
        here = place[..., None] > 0
        older = torch.where(age > 0, torch.clamp(age + 1, max=OLDEST_AGE), age)
        state = (
            torch.where(here, entry.key[:, None], keys),
            torch.where(here, entry.value[:, None], values),
            torch.where(place > 0, torch.ones_like(age), older),
        )
        return state, WriteRecord.ungated(place, place)

    @torch.no_grad()
    def _place(self, keys: Tensor, age: Tensor) -> Tensor:
        """One-hot `(B, n)`: where the next write goes."""
        free = age == 0
        given_up = age.argmax(dim=-1) if self.settings.evict == "oldest" else _redundant(keys, age)
        chosen = torch.where(free.any(dim=-1), free.to(age.dtype).argmax(dim=-1), given_up)
        return functional.one_hot(chosen, age.shape[-1]).to(age.dtype)


def _redundant(keys: Tensor, age: Tensor) -> Tensor:
    """Index `(B,)` of the older of the two entries of `(B, n, d)` whose unit keys are most alike."""
    size = keys.shape[1]
    alike = (keys @ keys.transpose(-1, -2)).masked_fill(torch.eye(size, dtype=torch.bool, device=keys.device), -2.0)
    pair = alike.flatten(1).argmax(dim=1)
    one, other = pair // size, pair % size
    rows = torch.arange(keys.shape[0], device=keys.device)
    return torch.where(age[rows, one] >= age[rows, other], one, other)
