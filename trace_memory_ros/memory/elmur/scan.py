"""ELMUR over whole sequences: the tokens of a segment at once, the segments one after the other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

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
    def count(self) -> Tensor:
        """How many tokens of the running segment are there after each step `(B, T + 1)`."""
        return self.written - self.segment * self.length

    def buffers(self) -> Tensor:
        """The buffer after each step `(B, T + 1, L, d)`, zero beyond its count."""
        place = torch.arange(self.length, device=self.tokens.device)
        rows = torch.arange(len(self.tokens), device=self.tokens.device)[:, None]
        segments = self.tokens.reshape(len(rows), -1, self.length, self.tokens.shape[-1])
        tokens = segments[rows, self.segment]
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


def run_segments(
    layers: Sequence[ElmurLayer], initial: Tensor, settings: ElmurConfig, line: Line, track: SlotTrack
) -> SlotTrack:
    """Rewrite the slots from every segment of the line that a further token follows; `track` has no S axis here."""
    finished, length = line.segment[:, -1], line.length
    count = int(finished.max())
    place = torch.arange(length, device=line.tokens.device)[None]
    biases = [layer.token_bias(place, place[:, :, None] < place[:, None]) for layer in layers]
    # What the first layer's tokens make of each other needs no memory.
    segments = line.tokens[:, : count * length].reshape(len(finished) * count, length, line.tokens.shape[-1])
    mixed = layers[0].attend_tokens(segments, biases[0]).reshape(len(finished), count, *segments.shape[1:])
    history = [track]
    for index in range(count):
        proposed = _propose(layers, initial, mixed[:, index], biases, track)
        track = next_segment(track, proposed, finished > index, settings)
        history.append(track)
    return SlotTrack(*(torch.stack(part, dim=1) for part in zip(*history, strict=True)))


def _propose(
    layers: Sequence[ElmurLayer], initial: Tensor, tokens: Tensor, biases: Sequence[Tensor], track: SlotTrack
) -> Tensor:
    """What the slot that is due would become in each layer, `(B, layers, 1, d)`; tokens are past self-attention."""
    rows, due = torch.arange(len(tokens), device=tokens.device), least_recent(track.age).int().argmax(dim=-1)
    memory = filled(track, initial)
    written = memory[rows, :, due]
    offset = offsets(track.age, torch.arange(tokens.shape[1], device=tokens.device)[None])
    proposed = []
    for index, (layer, bias) in enumerate(zip(layers, biases, strict=True)):
        if index:
            tokens = layer.attend_tokens(tokens, bias)
        read_bias = layer.memory_bias(offset)
        tokens = layer.read_memory(tokens, memory[:, index], read_bias)
        proposed.append(layer.propose(written[:, index, None], tokens, read_bias[rows, :, :, due][..., None]))
    return torch.stack(proposed, dim=1)
