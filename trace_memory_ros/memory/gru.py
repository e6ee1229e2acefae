"""GRU over the visual-state content: the recurrent control of TRACE's table 2."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from trace_memory_ros.memory.base import Memory, MemoryDims, MemoryInput, Readout, State, WriteRecord, written_first


@dataclass(frozen=True)
class GruConfig:
    """hidden: width of the hidden vector, 0 for `MemoryDims.width`; where they differ, a linear layer maps it to d."""

    hidden: int = 0

    def __post_init__(self) -> None:
        if self.hidden < 0:
            raise ValueError(f"GruConfig.hidden = {self.hidden}: give a width, or 0 for MemoryDims.width")


class GruMemory(Memory):
    """One hidden vector h `(B, hidden)`, offered as one token and as the vector; no signature, no address."""

    name = "gru"
    slot_kind = "hidden vector"

    def __init__(self, dims: MemoryDims, config: GruConfig | None = None) -> None:
        config = config or GruConfig()
        super().__init__(dims, config)
        self.hidden = config.hidden or dims.width
        self.gru = nn.GRU(dims.content, self.hidden, batch_first=True)
        self.to_width = nn.Identity() if self.hidden == dims.width else nn.Linear(self.hidden, dims.width)

    @property
    def slot_count(self) -> int:
        """Always 1, whatever `dims.slots` says."""
        return 1

    def initial_state(self, batch: int) -> State:
        """Zero hidden vector `(B, hidden)`."""
        return (self._origin.new_zeros(batch, self.hidden),)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """One GRU step on the content."""
        (hidden,) = state
        output = self._run(x.content[:, None], hidden)
        return (output[:, 0],), self._record(x.content, hidden)

    def read(self, x: MemoryInput, state: State) -> Readout:
        """The hidden vector, at width d."""
        vector = self.to_width(state[0])
        batch = vector.shape[0]
        return Readout(vector[:, None], vector, vector.new_ones(batch, 1), vector.new_zeros(batch, 0))

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`, in one call of the recurrent kernel."""
        (initial,) = state
        # Written steps move to the front, where the kernel runs over them without a gap; each step
        # then takes the hidden vector that followed the last write at or before it.
        written = self._run(written_first(xs.content, mask), initial)
        history = torch.cat((initial[:, None], written), dim=1)
        count = mask.cumsum(dim=1)
        hidden = _along_time(history, count)
        before = _along_time(history, count - mask.long())
        batch, steps = mask.shape
        flat = self._record(xs.content.flatten(0, 1), before.flatten(0, 1))
        records = WriteRecord(*(field.reshape(batch, steps, *field.shape[1:]) for field in flat))
        return (hidden,), (hidden[:, -1],), records.only_where(mask)

    def _run(self, contents: Tensor, hidden: Tensor) -> Tensor:
        """Hidden vectors `(B, T, hidden)` after each of the contents `(B, T, d_e)`."""
        # cuDNN refuses a state that is a view, as the last of a sequence is.
        output: Tensor = self.gru(contents, hidden[None].contiguous())[0]
        return output

    @torch.no_grad()
    def _record(self, content: Tensor, hidden: Tensor) -> WriteRecord:
        """Share of the hidden vector that a step from `hidden` replaces: the mean of one minus the update gate."""
        gates = slice(self.hidden, 2 * self.hidden)
        w_input, w_hidden, b_input, b_hidden = self.gru.all_weights[0]
        update = torch.sigmoid(
            nn.functional.linear(content, w_input[gates], b_input[gates])
            + nn.functional.linear(hidden, w_hidden[gates], b_hidden[gates])
        )
        strength = (1 - update).mean(dim=-1, keepdim=True)
        return WriteRecord.ungated(torch.ones_like(strength), strength)


def _along_time(values: Tensor, index: Tensor) -> Tensor:
    """Rows `index` `(B, T)` of `values` `(B, T', c)` along time."""
    return values.gather(1, index[..., None].expand(-1, -1, values.shape[-1]))
