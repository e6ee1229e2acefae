"""ELMUR: layers with slots of their own, read by tokens and rewritten once a segment (ELMUR, algorithms 1 and 2).

Symbols: h tokens, m slots `(B, layers, M, d)`, p anchors, t token times, L segment length, lambda blend.

`write` and `read` are the paper's equations for one tick; `scan.py` runs many segments at once.
A segment is L writes. Its tokens wait in a buffer, see the memory as it was when the segment began, and rewrite it when
the next segment's first token arrives. Between and during writes a read is one more token, which is not kept.
"""

from __future__ import annotations

from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord
from trace_memory_ros.memory.elmur.config import ElmurConfig
from trace_memory_ros.memory.elmur.layer import ElmurLayer
from trace_memory_ros.memory.elmur.least_recently_used import SlotTrack, filled, least_recent, next_segment, offsets
from trace_memory_ros.memory.elmur.scan import Line, Reads, line_up, read_segments, run_segments


class ElmurState(NamedTuple):
    """One episode's memory; whole numbers are kept as floats, which are exact here: none exceeds M L + 1.

    buffer `(B, L, d)`: embedded tokens of the running segment, zero beyond fill `(B, 1)`. slots `(B, layers, M, d)`,
    age `(B, M)`, carried `(B, 1)`: see `SlotTrack`.
    """

    buffer: Tensor
    fill: Tensor
    slots: Tensor
    age: Tensor
    carried: Tensor

    @property
    def track(self) -> SlotTrack:
        """Slots and what belongs to them."""
        return SlotTrack(self.slots, self.age, self.carried)


class ElmurMemory(Memory):
    """Tokens are the slots of all layers, layer by layer; the vector is the last layer's token of the tick."""

    name = "elmur"

    def __init__(self, dims: MemoryDims, config: ElmurConfig | None = None) -> None:
        config = config or ElmurConfig()
        super().__init__(dims, config)
        self.settings = config
        width = config.model or dims.width
        if width % config.heads:
            raise ValueError(f"width {width} of elmur's tokens: must be a multiple of the {config.heads} heads")
        reach = config.reach or dims.slots * config.segment + 1
        self.embed_content = nn.Linear(dims.content, width)
        self.layers = nn.ModuleList(
            ElmurLayer(width, config.hidden or 2 * width, config.heads, config.segment, reach)
            for _ in range(config.layers)
        )
        self.initial = nn.Parameter(config.initial_scale * torch.randn(config.layers, dims.slots, width))
        self.out = nn.Linear(width, dims.width)
        self.show = nn.Linear(width, dims.width)

    @property
    def slot_count(self) -> int:
        """`dims.slots` in each layer."""
        return self.settings.layers * self.dims.slots

    def initial_state(self, batch: int) -> State:
        """An empty buffer and empty slots."""
        settings, zeros = self.settings, self._origin.new_zeros
        width = self.initial.shape[-1]
        return ElmurState(
            buffer=zeros(batch, settings.segment, width),
            fill=zeros(batch, 1),
            slots=zeros(batch, settings.layers, self.dims.slots, width),
            age=zeros(batch, self.dims.slots),
            carried=zeros(batch, 1),
        )

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Keep one token; if the buffer is full, rewrite the slots from it first (algorithm 1, lines 11-15)."""
        held = ElmurState(*state)
        full = held.fill[:, 0] == self.settings.segment
        record = self._record(held.age, full)
        track = next_segment(held.track, self._propose(held), full, self.settings) if full.any() else held.track
        begun = full[:, None, None]
        kept, count = torch.where(begun, 0.0, held.buffer), torch.where(begun[:, 0], 0.0, held.fill)
        here = torch.arange(self.settings.segment, device=count.device) == count
        buffer = torch.where(here[..., None], self.embed_content(x.content)[:, None], kept)
        return ElmurState(buffer, count + 1, *track), record

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Pass the tick's token through the token track behind the buffer (algorithm 1, lines 2-8)."""
        held = ElmurState(*state)
        place = torch.arange(self.settings.segment, device=held.buffer.device)
        position = torch.cat((place.expand(len(held.fill), -1), held.fill.long()), dim=1)
        kept = torch.cat((place < held.fill, held.fill < 0), dim=1)[:, None]
        sees = (position[:, None] < position[:, :, None]) & kept
        hidden = ~(sees | torch.eye(sees.shape[1], dtype=torch.bool, device=sees.device))
        tokens = torch.cat((held.buffer, self.embed_content(x.content)[:, None]), dim=1)
        memory, offset, weights = filled(held.track, self.initial), offsets(held.age, position), []
        for index, layer in enumerate(self._layers()):
            tokens = layer.attend_tokens(tokens, layer.token_bias(position, hidden))
            slots, read_bias = memory[:, index], layer.memory_bias(offset)
            kept = layer.mem2tok.key_value(slots)
            _, shares = layer.mem2tok.weighed(tokens[:, -1:], kept, read_bias[:, :, -1:])
            weights.append(shares[:, :, 0].mean(dim=1))
            tokens = layer.read_memory(tokens, slots, read_bias)
        read_weights = torch.cat(weights, dim=1) / len(weights)
        return self._readout(self._shown(held.track), tokens[:, -1], read_weights)

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, segment by segment."""
        held = ElmurState(*state)
        line = line_up(held.buffer, held.fill, self.embed_content(xs.content), mask)
        track = run_segments(self._layers(), self.initial, self.settings, line, held.track, line.finished).track
        rows = torch.arange(len(mask), device=mask.device)[:, None]
        counts = line.count[..., None].to(held.fill.dtype)
        states = ElmurState(line.buffers(), counts, *(part[rows, line.segment] for part in track))
        records = self._records(line, track.age, mask)
        return tuple(p[:, :-1] for p in states), tuple(p[:, -1] for p in states), records

    def unroll(
        self, xs: MemoryInput, mask: Tensor, queries: MemoryInput | None = None, at: Tensor | None = None
    ) -> tuple[Readout, State, WriteRecord]:
        """As `Memory.unroll`, without states: a segment's tokens pass through the layers once for all its reads."""
        held = ElmurState(*self.initial_state(len(mask)))
        line = line_up(held.buffer, held.fill, self.embed_content(xs.content), mask)
        history = run_segments(self._layers(), self.initial, self.settings, line, held.track, line.finished + 1)
        steps = torch.arange(mask.shape[1], device=mask.device).expand(mask.shape) if at is None else at
        tokens = self.embed_content((xs if queries is None else queries).content)
        reads = Reads(tokens, line.segment.gather(1, steps), line.count.gather(1, steps))
        last, weights = read_segments(self._layers(), self.initial, line, history, reads)
        flat = SlotTrack(*(part.flatten(0, 1) for part in history.track))
        shown = reads.of(self._shown(flat).reshape(*history.track.age.shape[:2], self.slot_count, -1))
        read = self._readout(shown, last, weights)
        readout = Readout(*(part.reshape(*steps.shape, *part.shape[1:]) for part in read))
        return readout, (), self._records(line, history.track.age, mask)

    def _shown(self, track: SlotTrack) -> Tensor:
        """The slots as tokens, layer by layer, `(B, layers * M, d_e)`."""
        return torch.where(track.age[:, None, :, None] > 0, self.show(track.slots), 0.0).flatten(1, 2)

    def _readout(self, shown: Tensor, token: Tensor, weights: Tensor) -> Readout:
        return Readout(shown, self.out(token), weights, shown.new_zeros(len(shown), 0))

    def _records(self, line: Line, ages: Tensor, mask: Tensor) -> WriteRecord:
        """Of every step; ages `(B, S, M)` when each segment began.

        A step's record tells of the write that it makes or, masked, would have made.
        """
        rows = torch.arange(len(mask), device=mask.device)[:, None]
        before = line.written[:, :-1] - mask.long()
        full = (before > 0) & (before % line.length == 0)
        age = ages[rows, (before - 1).clamp(min=0) // line.length]
        record = self._record(age.flatten(0, 1), full.flatten())
        return WriteRecord(*(field.reshape(*mask.shape, *field.shape[1:]) for field in record)).only_where(mask)

    def _layers(self) -> list[ElmurLayer]:
        return cast("list[ElmurLayer]", list(self.layers))

    def _propose(self, held: ElmurState) -> Tensor:
        """What every slot would become by the buffer's tokens, `(B, layers, M, d)` (algorithm 1, lines 4-14)."""
        position = torch.arange(self.settings.segment, device=held.buffer.device)[None]
        hidden = position[:, :, None] < position[:, None]
        tokens, memory, offset = held.buffer, filled(held.track, self.initial), offsets(held.age, position)
        proposed = []
        for index, layer in enumerate(self._layers()):
            tokens = layer.attend_tokens(tokens, layer.token_bias(position, hidden))
            read_bias = layer.memory_bias(offset)
            tokens = layer.read_memory(tokens, memory[:, index], read_bias)
            proposed.append(layer.propose(memory[:, index], tokens, read_bias))
        return torch.stack(proposed, dim=1)

    def _record(self, age: Tensor, full: Tensor) -> WriteRecord:
        """The slot that the running segment goes to, the same in each layer; strength 0 until it gets there."""
        count = self.settings.layers
        due = least_recent(age).to(age.dtype)
        alpha = torch.where(age > 0, torch.full_like(age, self.settings.blend), 1.0)
        ones = due.new_ones(len(due))
        strength = torch.where(full[:, None], due * alpha, 0.0)
        return WriteRecord(due.repeat(1, count) / count, strength.repeat(1, count), ones, 0 * ones, ones.bool())
