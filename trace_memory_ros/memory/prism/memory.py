"""PRISM: gated attention over a hierarchy of local summaries and a ring of the last n ticks (PRISM, section 3).

Symbols: u the k local tokens of a tick `(k, w)`, s its summary `(w,)`, y the global encoder's output `(w,)`,
n ring entries, L global layers. `layers.py` holds the gated blocks, `ring.py` the encoder over the ring.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord, written_first
from trace_memory_ros.memory.prism.layers import GATES, LocalEncoder
from trace_memory_ros.memory.prism.ring import GlobalEncoder, Ring, ages_at, rings_after, rows


@dataclass(frozen=True)
class PrismConfig:
    """window n: ring entries. local_tokens k: what a tick's content is projected to. layers L: global blocks.

    width w: inside the encoders (None: `MemoryDims.width` rounded up to a multiple of 2 * heads). hidden and
    gate_hidden: of every feed-forward layer (None: 2 w) and gate (None: w). gate: `feature`, `blind` or `none`.
    """

    window: int = 32
    local_tokens: int = 4
    layers: int = 2
    heads: int = 2
    width: int | None = None
    hidden: int | None = None
    gate_hidden: int | None = None
    gate: str = "feature"

    def __post_init__(self) -> None:
        for name, least in (("window", 2), ("local_tokens", 1), ("layers", 1), ("heads", 1)):
            if getattr(self, name) < least:
                raise ValueError(f"PrismConfig.{name} = {getattr(self, name)}: must be at least {least}")
        for name in ("hidden", "gate_hidden"):
            value = getattr(self, name)
            if value is not None and value < 1:
                raise ValueError(f"PrismConfig.{name} = {value}: must be at least 1, or None")
        if self.width is not None and (self.width < 1 or self.width % (2 * self.heads)):
            raise ValueError(
                f"PrismConfig.width = {self.width}: rotary positions turn pairs of features in each of {self.heads} "
                f"heads; give a multiple of {2 * self.heads}"
            )
        if self.gate not in GATES:
            raise ValueError(f"PrismConfig.gate = {self.gate!r}: known are {', '.join(GATES)}")

    def width_at(self, readout: int) -> int:
        """w where the readout is `readout` wide."""
        step = 2 * self.heads
        return self.width or -(-readout // step) * step


class PrismMemory(Memory):
    """Tokens are the ring's entries, the vector is the tick's own fused token; no signature, no address.

    The ring has `PrismConfig.window` entries whatever `dims.slots` says. Entry i of tokens, route and read weights is
    always the same place in the ring, which means nothing: a token carries its age. An entry that nothing was written
    to has the learned token `nothing` and read weight 0.
    """

    name = "prism"
    slot_kind = "ring entry"
    ages: Tensor

    def __init__(self, dims: MemoryDims, config: PrismConfig | None = None) -> None:
        config = config or PrismConfig()
        super().__init__(dims, config)
        self.settings = config
        self.width = width = config.width_at(dims.width)
        hidden, gate_hidden = config.hidden or 2 * width, config.gate_hidden or width
        self.tokenise = nn.Linear(dims.content, config.local_tokens * width)
        self.token_norm = nn.RMSNorm(width)
        self.local = LocalEncoder(width, config.heads, hidden, config.gate, gate_hidden)
        self.encoder = GlobalEncoder(
            width, config.heads, hidden, config.layers, config.window, config.gate, gate_hidden
        )
        self.fuse_norm = nn.RMSNorm(width)
        self.fuse = nn.Linear(width, dims.width)
        self.token_out = nn.Linear(width, dims.width)
        self.nothing = nn.Parameter(torch.zeros(dims.width))
        self.register_buffer("ages", age_codes(config.window, dims.width), persistent=False)

    @property
    def slot_count(self) -> int:
        """N = n."""
        return self.settings.window

    @property
    def reach(self) -> int:
        """n, and n - 1 more for each layer: an entry's output was made from those before it."""
        return self.settings.window + self.settings.layers * (self.settings.window - 1)

    def initial_state(self, batch: int) -> State:
        """An empty ring: keys and values `(B, L, n, w)`, outputs `(B, n, w)`, cursor `(B, 2)`, all zero."""
        return tuple(self.encoder.empty(batch, self._origin))

    def embed(self, x: MemoryInput) -> MemoryInput:
        """Fill `x.embedded` with the local encoder's work: summary s, then the k tokens u, side by side."""
        if x.embedded is not None:
            return x
        tokens = self.token_norm(self._apart(self.tokenise(x.content)))
        return x._replace(embedded=torch.cat((self.local(tokens), tokens.flatten(-2)), dim=-1))

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Put the tick's summary into the ring, over the oldest entry once all are filled."""
        after, at = self.encoder.push(self._summary(x), Ring(*state))
        place = at.to(after.outputs.dtype)
        return tuple(after), WriteRecord.ungated(place, place)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Global attention of this tick over the ring, fused with its local tokens."""
        ring = Ring(*state)
        y, weights = self.encoder.look(self._summary(x), ring)
        tokens = self._aged(self.token_out(ring.outputs), ring.ages(), ring.filled)
        return self._readout(x, y, tokens, weights)

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`: one causal pass over the written ticks under a band of width n."""
        ring, summaries = Ring(*state), self._summary(xs)
        # Written ticks move to the front; how many of them there were by a step says which ring it had.
        new = self.encoder.whole(written_first(summaries, mask), ring if ring.cursor.any() else None)
        counts = nn.functional.pad(mask.cumsum(dim=1), (1, 0))
        rings = rings_after(ring, new, counts)
        entry = rings.cursor[:, :-1, 0].long()
        route = nn.functional.one_hot(entry, self.settings.window).to(summaries.dtype)
        states, final = tuple(part[:, 1:] for part in rings), tuple(part[:, -1] for part in rings)
        return states, final, WriteRecord.ungated(route, route).only_where(mask)

    def unroll(
        self, xs: MemoryInput, mask: Tensor, queries: MemoryInput | None = None, at: Tensor | None = None
    ) -> tuple[Readout, State, WriteRecord]:
        """As `Memory.unroll`, without states: reads look back along the episode, and no ring is copied for them."""
        xs = self.embed(xs)
        asked = xs if queries is None else self.embed(queries)
        written = self.encoder.whole(written_first(self._summary(xs), mask))
        counts, size = mask.cumsum(dim=1), self.settings.window
        after = counts if at is None else counts.gather(1, at)
        y, weights = self.encoder.look_back(self._summary(asked), written, after)
        ages = ages_at(after, size)
        # The number of the write in each entry, behind `size` that never were.
        number = after[..., None] + size - 1 - ages
        tokens = rows(nn.functional.pad(self.token_out(written.y), (0, 0, size, 0)), number)
        shares = nn.functional.pad(weights, (size, 0)).gather(2, number)
        readout = self._readout(asked, y, self._aged(tokens, ages, after.clamp(max=size)), shares)
        route = nn.functional.one_hot((counts - mask.long()) % size, size).to(y.dtype)
        return readout, (), WriteRecord.ungated(route, route).only_where(mask)

    def _summary(self, x: MemoryInput) -> Tensor:
        return self._embedded(x)[..., : self.width]

    def _local_tokens(self, x: MemoryInput) -> Tensor:
        return self._apart(self._embedded(x)[..., self.width :])

    def _embedded(self, x: MemoryInput) -> Tensor:
        embedded = self.embed(x).embedded
        assert embedded is not None
        return embedded

    def _apart(self, side_by_side: Tensor) -> Tensor:
        return side_by_side.reshape(*side_by_side.shape[:-1], self.settings.local_tokens, self.width)

    def _readout(self, x: MemoryInput, y: Tensor, tokens: Tensor, weights: Tensor) -> Readout:
        """Leading dimensions `(B,)` or `(B, R)`; y is broadcast back to the tick's local tokens and fused with them."""
        fused = self.fuse(self.fuse_norm(self._local_tokens(x) + y[..., None, :]).mean(dim=-2))
        return Readout(tokens, fused, weights, y.new_zeros(*y.shape[:-1], 0))

    def _aged(self, tokens: Tensor, ages: Tensor, filled: Tensor) -> Tensor:
        """Tokens of entries `(..., n, d_e)` with codes of their ages `(..., n)`; `nothing` from age `filled` on."""
        return torch.where((ages < filled[..., None])[..., None], tokens + self.ages[ages.long()], self.nothing)


def age_codes(count: int, width: int) -> Tensor:
    """Sinusoids of ages 0 .. count - 1, `(count, width)`, fixed."""
    channel = torch.arange(width)
    rate = torch.exp(-math.log(10_000.0) * (channel // 2 * 2) / width)
    angle = torch.arange(count)[:, None] * rate
    return torch.where(channel % 2 == 0, angle.sin(), angle.cos())
