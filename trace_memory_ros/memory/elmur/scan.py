"""ELMUR over whole sequences: the tokens of a segment at once, the segments one after the other."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from trace_memory_ros.memory.base import written_first
from trace_memory_ros.memory.elmur.config import ElmurConfig
from trace_memory_ros.memory.elmur.layer import ElmurLayer
from trace_memory_ros.memory.elmur.least_recently_used import SlotTrack, filled, least_recent, next_segment, offsets


@dataclass(frozen=True)
class Line:
    """Every token of a scan in the order of writing, the buffer's first, so that segments begin at multiples of L.

    tokens `(B, segments * L, d)`, meaningless beyond the last one written. written `(B, T + 1)`: how many of them were
    there after each step, and after the last.
    """

    tokens: Tensor
    written: Tensor
    length: int

    @property
    def segment(self) -> Tensor:
        """Which segment runs after each step `(B, T + 1)`; a full one runs until the next token."""
        return (self.written - 1).clamp(min=0) // self.length

    @property
    def finished(self) -> int:
        """Segments that a further token follows, in the episode that has most."""
        return int(self.segment[:, -1].max())

    @property
    def count(self) -> Tensor:
        """How many tokens of the running segment are there after each step `(B, T + 1)`."""
        return self.written - self.segment * self.length

    def segments(self) -> Tensor:
        """The tokens segment by segment, `(B, segments, L, d)`."""
        return self.tokens.reshape(len(self.tokens), -1, self.length, self.tokens.shape[-1])

    def buffers(self) -> Tensor:
        """The buffer after each step `(B, T + 1, L, d)`, zero beyond its count."""
        place = torch.arange(self.length, device=self.tokens.device)
        rows = torch.arange(len(self.tokens), device=self.tokens.device)[:, None]
        tokens = self.segments()[rows, self.segment]
        return torch.where((place < self.count[..., None])[..., None], tokens, 0.0)


def line_up(buffer: Tensor, count: Tensor, tokens: Tensor, mask: Tensor) -> Line:
    """Append to the buffer `(B, L, d)` with count `(B, 1)` the tokens `(B, T, d)` at which `mask` holds."""
    batch, length, width = buffer.shape
    steps, device = mask.shape[1], mask.device
    start = count.long()
    source = torch.cat((buffer, written_first(tokens, mask)), dim=1)
    place = torch.arange(-(-(length + steps) // length) * length, device=device).expand(batch, -1)
    index = torch.where(place < start, place, place - start + length).clamp(max=length + steps - 1)
    written = start + torch.cat((mask.cumsum(dim=1), mask.sum(dim=1, keepdim=True)), dim=1)
    return Line(source.gather(1, index[..., None].expand(-1, -1, width)), written, length)


class SegmentHistory(NamedTuple):
    """S segments as they ran: `track` when each began, S after the batch; inner `(B, S, layers - 1, L, d)`.

    inner: the segment's tokens as every layer but the first took them.
    """

    track: SlotTrack
    inner: Tensor


def run_segments(
    layers: Sequence[ElmurLayer], initial: Tensor, settings: ElmurConfig, line: Line, track: SlotTrack, count: int
) -> SegmentHistory:
    """Run the first `count` segments of the line; those that a further token follows rewrite the slots.

    `track` has no S axis here; in what is returned it goes on to what the last segment left.
    """
    finished, length = line.segment[:, -1], line.length
    place = torch.arange(length, device=line.tokens.device)[None]
    biases = [layer.token_bias(place, place[:, :, None] < place[:, None]) for layer in layers]
    # What the first layer's tokens make of each other needs no memory.
    segments = line.segments()[:, :count]
    mixed = layers[0].attend_tokens(segments.flatten(0, 1), biases[0]).reshape(segments.shape)
    tracks, inner = [track], [segments.new_empty(len(finished), 0, len(layers) - 1, *segments.shape[2:])]
    for index in range(count):
        proposed, taken = _propose(layers, initial, mixed[:, index], biases, track)
        if index < line.finished:
            track = next_segment(track, proposed, finished > index, settings)
        tracks.append(track)
        inner.append(taken[:, None])
    stacked = SlotTrack(*(torch.stack(part, dim=1) for part in zip(*tracks, strict=True)))
    return SegmentHistory(stacked, torch.cat(inner, dim=1))


def _propose(
    layers: Sequence[ElmurLayer], initial: Tensor, tokens: Tensor, biases: Sequence[Tensor], track: SlotTrack
) -> tuple[Tensor, Tensor]:
    """What the slot that is due would become in each layer, `(B, layers, 1, d)`; tokens are past self-attention.

    Also what every layer but the first took, `(B, layers - 1, L, d)`.
    """
    rows, due = torch.arange(len(tokens), device=tokens.device), least_recent(track.age).int().argmax(dim=-1)
    memory = filled(track, initial)
    written = memory[rows, :, due]
    offset = offsets(track.age, torch.arange(tokens.shape[1], device=tokens.device)[None])
    proposed, taken = [], [tokens.new_empty(len(tokens), 0, *tokens.shape[1:])]
    for index, (layer, bias) in enumerate(zip(layers, biases, strict=True)):
        if index:
            taken.append(tokens[:, None])
            tokens = layer.attend_tokens(tokens, bias)
        read_bias = layer.memory_bias(offset)
        tokens = layer.read_memory(tokens, memory[:, index], read_bias)
        proposed.append(layer.propose(written[:, index, None], tokens, read_bias[rows, :, :, due][..., None]))
    return torch.stack(proposed, dim=1), torch.cat(taken, dim=1)


class Reads(NamedTuple):
    """Reads of a line. tokens `(B, R, d)`; segment `(B, R)`: which ran; place `(B, R)`: tokens of it before."""

    tokens: Tensor
    segment: Tensor
    place: Tensor

    def of(self, history: Tensor) -> Tensor:
        """What each read finds in its segment, `(B * R, ...)` of `(B, S, ...)`."""
        first = history.shape[1] * torch.arange(len(history), device=history.device)[:, None]
        # index_select, whose backward pass adds rows; that of advanced indexing adds numbers one by one.
        return history.flatten(0, 1).index_select(0, (first + self.segment).flatten())


def read_segments(
    layers: Sequence[ElmurLayer], initial: Tensor, line: Line, history: SegmentHistory, reads: Reads
) -> tuple[Tensor, Tensor]:
    """Pass reads through the layers, each behind its segment's tokens, which passed once for all of them.

    Returns the last layer's tokens `(B * R, d)` and the weights on all slots `(B * R, layers * M)`.
    """
    places = torch.arange(line.length, device=line.tokens.device)
    count = reads.place.reshape(-1, 1, 1)
    behind = torch.cat(((count - places).clamp(min=0), torch.zeros_like(count)), dim=-1)
    hidden = torch.cat((places >= count, torch.zeros_like(count, dtype=torch.bool)), dim=-1)[:, None]
    tracks = SlotTrack(*(part[:, : history.inner.shape[1]] for part in history.track))
    offset = offsets(reads.of(tracks.age), count[:, 0])
    began = SlotTrack(*(part.flatten(0, 1) for part in tracks))
    memory = filled(began, initial).reshape(tracks.slots.shape)
    taken = torch.cat((line.segments()[:, : history.inner.shape[1], None], history.inner), dim=2)
    tokens, weights = reads.tokens.flatten(0, 1)[:, None], []
    for index, layer in enumerate(layers):
        before, own = layer.self_attention.key_value(taken[:, :, index]), layer.self_attention.key_value(tokens)
        bias = layer.self_bias(behind).masked_fill(hidden, -math.inf)
        mixed, _ = layer.self_attention.weighed(tokens, torch.cat((reads.of(before), own), dim=1), bias)
        tokens = layer.self_norm(tokens, mixed)
        slots = reads.of(layer.mem2tok.key_value(memory[:, :, index]))
        recalled, shares = layer.mem2tok.weighed(tokens, slots, layer.memory_bias(offset))
        tokens = layer.token_ffn(layer.mem2tok_norm(tokens, recalled))
        weights.append(shares[:, :, 0].mean(dim=1))
    return tokens[:, 0], torch.cat(weights, dim=1) / len(weights)
