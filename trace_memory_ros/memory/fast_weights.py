"""What the fast-weight mechanisms share: projections of the content, what is offered of the state, the write record.

State: a matrix S `(B, d_v, d_k)` that maps keys to values. Its d_v rows are what RViz draws and a policy attends to.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from trace_memory_ros.memory.base import Memory, MemoryDims, Readout, WriteRecord

TINY = 1e-12


@dataclass(frozen=True)
class FastWeightConfig:
    """Sizes of the state. key_width d_k, rows d_v; hidden: width of the layer before the projections, 0 for none."""

    key_width: int = 32
    rows: int = 32
    hidden: int = 0

    def __post_init__(self) -> None:
        for name, least in (("key_width", 1), ("rows", 1), ("hidden", 0)):
            if getattr(self, name) < least:
                raise ValueError(f"{type(self).__name__}.{name} = {getattr(self, name)}: must be at least {least}")


def elu_feature(x: Tensor) -> Tensor:
    """ELU + 1: the positive feature map phi of linear attention."""
    return functional.elu(x) + 1


def unit(x: Tensor) -> Tensor:
    """`x` divided by its length along the last dimension; zero stays zero."""
    return functional.normalize(x, dim=-1, eps=TINY)


class FastWeightMemory(Memory):
    """Base of VLA, DeltaNet and linear attention. Tokens are the rows of S, the vector is the value read for the query.

    `MemoryDims.slots` is ignored: N is `rows`. Keys, values and queries are projections of the content alone.
    """

    slot_kind = "fast-weight row"

    def __init__(self, dims: MemoryDims, config: FastWeightConfig) -> None:
        super().__init__(dims, config)
        self.settings = config
        inner = config.hidden or dims.content
        self.trunk = nn.Sequential(nn.Linear(dims.content, inner), nn.SiLU()) if config.hidden else nn.Identity()
        self.norm = nn.LayerNorm(inner)
        self.w_k = nn.Linear(inner, config.key_width)
        self.w_q = nn.Linear(inner, config.key_width)
        self.w_v = nn.Linear(inner, config.rows)
        self.norm_read = nn.LayerNorm(config.rows)
        self.read_map = nn.Linear(config.rows, dims.width)
        self.norm_row = nn.LayerNorm(config.key_width)
        self.row_map = nn.Linear(config.key_width, dims.width)
        self.row_identity = nn.Parameter(0.02 * torch.randn(config.rows, dims.width))

    @property
    def slot_count(self) -> int:
        """The rows of S, whatever `dims.slots` says."""
        return self.settings.rows

    def features(self, content: Tensor) -> Tensor:
        """What keys, values and queries are projected from."""
        out: Tensor = self.norm(self.trunk(content))
        return out

    def empty_matrix(self, batch: int) -> Tensor:
        """S before the first write."""
        return self._origin.new_zeros(batch, self.settings.rows, self.settings.key_width)

    def readout(self, S: Tensor, value: Tensor) -> Readout:
        """Readout of a state S and the value `(B, d_v)` that was read from it."""
        with torch.no_grad():
            share = value.abs() + TINY
            share = share / share.sum(dim=-1, keepdim=True)
        tokens = self.row_map(self.norm_row(S)) + self.row_identity
        return Readout(tokens, self.read_map(self.norm_read(value)), share, value.new_zeros(value.shape[0], 0))


@torch.no_grad()
def write_record(before: Tensor, change: Tensor, gate: Tensor, surprise: Tensor) -> WriteRecord:
    """Record of a write that changed row i of S by a vector of length `change` `(..., d_v)`.

    route: each row's share of the change. write_strength: the change beside what the row of `before` held.
    """
    change = change.abs() + TINY
    held = before.norm(dim=-1)
    wrote = torch.ones(change.shape[:-1], dtype=torch.bool, device=change.device)
    return WriteRecord(change / change.sum(dim=-1, keepdim=True), change / (change + held), gate, surprise, wrote)


def preceding(start: Tensor, states: Tensor) -> Tensor:
    """The state before each step, from the first one and the states after each step `(B, T, ...)`."""
    return torch.cat((start[:, None], states[:, :-1]), dim=1)


def last(start: Tensor, states: Tensor) -> Tensor:
    """The state after the last step, which is the first one where there is no step."""
    return states[:, -1] if states.shape[1] else start
