"""No memory: the control that every mechanism is compared with."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord


@dataclass(frozen=True)
class NoneConfig:
    """Nothing to set."""


class NoneMemory(Memory):
    """Keeps nothing and offers no tokens: N = 0, the vector is zero, the state has no bytes."""

    name = "none"
    delay_matters = False

    def __init__(self, dims: MemoryDims, config: NoneConfig | None = None) -> None:
        super().__init__(dims, config or NoneConfig())

    @property
    def slot_count(self) -> int:
        """Always 0, whatever `dims.slots` says."""
        return 0

    def initial_state(self, batch: int) -> State:
        """One tensor `(B, 0)`."""
        return (self._origin.new_zeros(batch, 0),)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Write nothing, and say so."""
        batch = x.content.shape[0]
        empty = x.content.new_zeros(batch, 0)
        wrote = torch.zeros(batch, dtype=torch.bool, device=empty.device)
        return state, WriteRecord(empty, empty, empty.new_ones(batch), empty.new_zeros(batch), wrote)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """Tokens `(B, 0, d)`, vector zeros `(B, d)`, read weights and address `(B, 0)`."""
        batch, empty = x.content.shape[0], x.content.new_zeros(x.content.shape[0], 0)
        return Readout(
            empty.new_zeros(batch, 0, self.dims.width), empty.new_zeros(batch, self.dims.width), empty, empty
        )

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, without a step per tick."""
        empty = xs.content.new_zeros(*mask.shape, 0)
        gate = empty.new_ones(mask.shape)
        return (empty,), state, WriteRecord(empty, empty, gate, torch.zeros_like(gate), torch.zeros_like(mask))
