"""The memory contract: what a mechanism receives, keeps, offers and reports.

A mechanism implements `initial_state`, `write` and `read`; `step`, `scan` and `forward` follow from them
and may be overridden by a faster path that is tested against these naive ones.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor, nn

State = tuple[Tensor, ...]
"""Fixed-shape tensors, batch first. Their sizes never depend on how much was remembered."""


class MemoryInput(NamedTuple):
    """Evidence and address of one control tick; leading dimensions are `(B,)` or `(B, T)`.

    content: `(..., d_e)` visual-state feature e_t. xi: `(..., S)` standardised signature. delta: `(..., S)`
    standardised signature increment since the last write. anchor: `(..., d_e)` content of the episode's first tick.
    """

    content: Tensor
    xi: Tensor
    delta: Tensor
    anchor: Tensor

    def at(self, t: int) -> MemoryInput:
        """The inputs of time index `t` of a `(B, T, ...)` sequence."""
        return MemoryInput(*(field[:, t] for field in self))


class Readout(NamedTuple):
    """What a policy may condition on. tokens `(B, N, d)`, vector `(B, d)`, read_weights `(B, N)`, address `(B, a)`."""

    tokens: Tensor
    vector: Tensor
    read_weights: Tensor
    address: Tensor


class WriteRecord(NamedTuple):
    """What a write did. route, write_strength `(B, N)`; gate, surprise `(B,)`; wrote `(B,)` bool."""

    route: Tensor
    write_strength: Tensor
    gate: Tensor
    surprise: Tensor
    wrote: Tensor


@dataclass(frozen=True)
class MemoryDims:
    """Sizes a mechanism is built for. content d_e, signature S (may be 0), width d, slots N."""

    content: int
    signature: int
    width: int
    slots: int

    def __post_init__(self) -> None:
        for name in ("content", "width", "slots"):
            if getattr(self, name) < 1:
                raise ValueError(f"MemoryDims.{name} = {getattr(self, name)}: must be at least 1")
        if self.signature < 0:
            raise ValueError(f"MemoryDims.signature = {self.signature}: must not be negative")


def where_state(keep_new: Tensor, new: State, old: State) -> State:
    """Select `new` where the `(B,)` flag holds and `old`, bit for bit, elsewhere."""
    return tuple(
        torch.where(keep_new.reshape(-1, *([1] * (n.ndim - 1))), n, o) for n, o in zip(new, old, strict=True)
    )


class Memory(nn.Module):
    """Base of all mechanisms."""

    name: str = "abstract"

    def __init__(self, dims: MemoryDims) -> None:
        super().__init__()
        self.dims = dims

    def initial_state(self, batch: int) -> State:
        """State before the first tick, for `batch` episodes."""
        raise NotImplementedError

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Put one tick's evidence, fields `(B, ...)`, into the state."""
        raise NotImplementedError

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Query the state with one tick's input, without changing it."""
        raise NotImplementedError

    def step(self, x: MemoryInput, state: State, write: Tensor) -> tuple[Readout, State, WriteRecord]:
        """One control tick: write where the `(B,)` flag says so, then read.

        Where `write` is False the state stays bit-identical and the record reports no write.
        """
        written, record = self.write(x, state)
        new = where_state(write, written, state)
        zero = torch.zeros_like(record.write_strength)
        record = record._replace(
            write_strength=torch.where(write[:, None], record.write_strength, zero), wrote=record.wrote & write
        )
        return self.read(x, new), new, record

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """Write a `(B, T, ...)` sequence; `mask` `(B, T)` is False on padding.

        Returns the state after every step (each tensor `(B, T, ...)`), the final state, and the records `(B, T, ...)`.
        """
        states: list[State] = []
        records: list[WriteRecord] = []
        for t in range(mask.shape[1]):
            written, record = self.write(xs.at(t), state)
            state = where_state(mask[:, t], written, state)
            states.append(state)
            records.append(record._replace(wrote=record.wrote & mask[:, t]))
        stacked = tuple(torch.stack(parts, dim=1) for parts in zip(*states, strict=True))
        return stacked, state, WriteRecord(*(torch.stack(f, dim=1) for f in zip(*records, strict=True)))

    def forward(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[Readout, State, WriteRecord]:
        """Write and read at every valid step of a `(B, T, ...)` sequence: equals repeated `step` with `write=mask`."""
        stacked, final, records = self.scan(xs, state, mask)
        batch, steps = mask.shape
        flat_x = MemoryInput(*(f.reshape(batch * steps, *f.shape[2:]) for f in xs))
        flat_state = tuple(s.reshape(batch * steps, *s.shape[2:]) for s in stacked)
        readout = self.read(flat_x, flat_state)
        return Readout(*(f.reshape(batch, steps, *f.shape[1:]) for f in readout)), final, records

    @property
    def state_bytes(self) -> int:
        """Bytes of the state of one episode; constant in time."""
        return sum(t.element_size() * t.nelement() for t in self.initial_state(1))
