"""Nothing but the first write: the control for tasks that show their cue at the start."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord


@dataclass(frozen=True)
class FirstFrameConfig:
    """Nothing to set."""


class FirstFrameMemory(Memory):
    """Keeps the content of the episode's first write; a table in which it is as good as the others tells nothing.

    Offered, through a linear layer, as one token and as the vector; no signature, no address.
    """

    name = "first_frame"
    delay_matters = False
    slot_kind = "first frame"

    def __init__(self, dims: MemoryDims, config: FirstFrameConfig | None = None) -> None:
        super().__init__(dims, config or FirstFrameConfig())
        self.to_width = nn.Linear(dims.content, dims.width)

    @property
    def slot_count(self) -> int:
        """Always 1, whatever `dims.slots` says."""
        return 1

    def initial_state(self, batch: int) -> State:
        """No content yet, `(B, d_e)`, and whether there is any, `(B, 1)`."""
        return self._origin.new_zeros(batch, self.dims.content), self._origin.new_zeros(batch, 1)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Keep the content, if it is the first."""
        kept, full = state
        first = 1.0 - full
        record = WriteRecord.ungated(first, first)._replace(wrote=first[:, 0] > 0)
        return (torch.where(full > 0, kept, x.content), torch.ones_like(full)), record

    def read(self, x: MemoryInput, state: State) -> Readout:
        """The first content, at width d; zero before it."""
        kept, full = state
        vector = self.to_width(kept) * full
        batch = vector.shape[0]
        return Readout(vector[:, None], vector, vector.new_ones(batch, 1), vector.new_zeros(batch, 0))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, without a step per tick."""
        kept, full = state
        count = full + mask.cumsum(dim=1)
        before = count - mask.to(count.dtype)
        firsts = mask & (before == 0)
        at = firsts.to(torch.int64).argmax(dim=1)
        found = xs.content.gather(1, at[:, None, None].expand(-1, 1, xs.content.shape[-1]))
        seen = (count > 0)[..., None]
        contents = torch.where(full[:, None] > 0, kept[:, None], torch.where(seen, found, torch.zeros_like(found)))
        flags = seen.to(kept.dtype)
        strength = firsts.to(kept.dtype)[..., None]
        record = WriteRecord.ungated((before == 0).to(kept.dtype)[..., None], strength)._replace(wrote=firsts)
        return (contents, flags), (contents[:, -1], flags[:, -1]), record
