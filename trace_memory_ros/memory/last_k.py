"""The newest k writes, stacked as frames are for a policy without a memory: the control for short delays."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord


@dataclass(frozen=True)
class LastKConfig:
    """frames: k, how many writes are kept. Raises ValueError for less than one."""

    frames: int = 8

    def __post_init__(self) -> None:
        if self.frames < 1:
            raise ValueError(f"LastKConfig.frames = {self.frames}: must be at least 1")


class LastKMemory(Memory):
    """Keeps the contents of the newest k writes, newest first; what is older is gone.

    The vector is a linear map of all of them side by side, a token one of each, with a learned embedding of its age; no
    signature, no address.
    """

    name = "last_k"
    slot_kind = "newest frames"
    config: LastKConfig

    def __init__(self, dims: MemoryDims, config: LastKConfig | None = None) -> None:
        config = config or LastKConfig()
        super().__init__(dims, config)
        self.stacked = nn.Linear(config.frames * dims.content, dims.width)
        self.to_width = nn.Linear(dims.content, dims.width)
        self.ages = nn.Parameter(0.02 * torch.randn(config.frames, dims.width))

    @property
    def slot_count(self) -> int:
        """k, whatever `dims.slots` says."""
        return self.config.frames

    @property
    def reach(self) -> int:
        """k."""
        return self.config.frames

    def initial_state(self, batch: int) -> State:
        """No contents yet, `(B, k, d_e)`, and whether there is any, `(B, k)`."""
        frames = self.config.frames
        return self._origin.new_zeros(batch, frames, self.dims.content), self._origin.new_zeros(batch, frames)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """Put the content before the others; the oldest falls out."""
        contents, held = state
        new = torch.cat([x.content[:, None], contents[:, :-1]], dim=1)
        newest = torch.zeros_like(held)
        newest[:, 0] = 1.0
        return (new, torch.cat([newest[:, :1], held[:, :-1]], dim=1)), WriteRecord.ungated(newest, newest)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """All that is held, each counting alike; zero for what is not."""
        contents, held = state
        tokens = (self.to_width(contents) + self.ages) * held[..., None]
        weights = held / held.sum(dim=1, keepdim=True).clamp(min=1.0)
        batch = len(contents)
        return Readout(tokens, self.stacked(contents.flatten(1)), weights, tokens.new_zeros(batch, 0))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, without a step per tick."""
        contents, held = state
        frames = self.config.frames
        # Written ticks first, in their order: the n-th of them is what the n-th write put in.
        order = torch.argsort((~mask).to(torch.int8), dim=1, stable=True)
        written = xs.content.gather(1, order[..., None].expand_as(xs.content))
        line = torch.cat([contents.flip(1), written], dim=1)
        full = torch.cat([held.flip(1), torch.ones_like(written[..., 0])], dim=1)
        ages = torch.arange(frames, device=mask.device)
        at = frames - 1 + mask.cumsum(dim=1)[..., None] - ages
        rows = torch.arange(len(mask), device=mask.device)[:, None, None]
        states = line[rows, at], full[rows, at]
        newest = torch.zeros_like(states[1])
        newest[..., 0] = 1.0
        return states, (states[0][:, -1], states[1][:, -1]), WriteRecord.ungated(newest, newest).only_where(mask)
