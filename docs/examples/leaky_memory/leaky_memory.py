"""A memory that fades: a leaky average of what the robot saw."""

from dataclasses import dataclass

import torch
from torch import nn

from trace_memory_ros import Mechanism, Memory, Readout, WriteRecord


@dataclass(frozen=True)
class LeakyConfig:
    """keep: share of the average that a write leaves, 0..1."""

    keep: float = 0.9


class LeakyMemory(Memory):
    """One average `(B, width)`, offered as one token and as the vector."""

    name = "leaky"
    slot_kind = "average"
    slot_count = 1

    def __init__(self, dims, config):
        super().__init__(dims, config)
        self.seen = nn.Linear(dims.content, dims.width)

    def initial_state(self, batch):
        return (self._origin.new_zeros(batch, self.dims.width),)

    def write(self, x, state):
        (average,) = state
        keep = self.config.keep
        strength = torch.full_like(average[:, :1], 1 - keep)
        return (keep * average + (1 - keep) * self.seen(x.content),), WriteRecord.ungated(
            torch.ones_like(strength), strength
        )

    def read(self, x, state):
        (average,) = state
        return Readout(average[:, None], average, torch.ones_like(average[:, :1]), average[:, :0])


LEAKY = Mechanism(LeakyConfig, LeakyMemory)
