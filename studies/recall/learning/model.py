"""Symbols to answers around any registered memory: embed, remember, read where asked, classify."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Memory, MemoryInput, State, WriteRecord


class Recalled(NamedTuple):
    """logits `(n, classes)` and vectors `(n, d)`, one row per asked step in stream order; what the scan returned."""

    logits: Tensor
    vectors: Tensor
    inputs: MemoryInput
    states: State
    records: WriteRecord


class SymbolModel(nn.Module):
    """What is trained: an embedding per symbol field, whose sum is the content; the memory; a linear head.

    read_first: an answer is read before its step is written, as in AURA's algorithm 1, and not after it.
    """

    def __init__(self, fields: tuple[int, ...], classes: int, memory: Memory, read_first: bool = False) -> None:
        super().__init__()
        self.read_first = read_first
        self.embeddings = nn.ModuleList(nn.Embedding(size, memory.dims.content) for size in fields)
        self.memory = memory
        self.head = nn.Linear(memory.dims.width, classes)

    def inputs(self, symbols: Tensor) -> MemoryInput:
        """What the memory is given for symbols `(B, T, F)`: the content; no trajectory, so the signature is zero."""
        content = torch.stack([embed(symbols[..., i]) for i, embed in enumerate(self.embeddings)]).sum(dim=0)
        none = content.new_zeros(*content.shape[:2], self.memory.dims.signature)
        return MemoryInput(content, none, none, content[:, :1].expand_as(content))

    def forward(self, symbols: Tensor, asked: Tensor, state: State | None = None) -> Recalled:
        """Scan `(B, T, F)` symbols from `state` (by default the initial one) and read where `asked` `(B, T)` holds."""
        xs = self.memory.embed(self.inputs(symbols))
        start = state or self.memory.initial_state(len(symbols))
        states, _, records = self.memory.scan(xs, start, torch.ones_like(asked))
        held = states
        if self.read_first:
            held = tuple(torch.cat((s[:, None], p[:, :-1]), dim=1) for s, p in zip(start, states, strict=True))
        readout = self.memory.read(xs.map(lambda field: field[asked]), tuple(part[asked] for part in held))
        return Recalled(self.head(readout.vector), readout.vector, xs, states, records)
