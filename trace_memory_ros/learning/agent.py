"""Encoder, memory and policy as one module that a whole-episode batch is pushed through."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.learning.data.batches import EpisodeBatch, Evidence
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.engine.processes import ALONE, Group
from trace_memory_ros.memory.base import Memory, MemoryInput, Readout, State, WriteRecord
from trace_memory_ros.memory.write_gate import RunningScale
from trace_memory_ros.policies.module import ChunkModule
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.encoder import ContentEncoder

Losses = dict[str, Tensor]
PER_READ = ("kl", "future", "answer", "recognition")
"""Losses that are means over reads; the others are over the ticks of their chunks."""


class Agent(nn.Module):
    """What one checkpoint holds: `encoder`, `memory`, `policy`.

    Batches may lie anywhere: losses are where the agent is, predictions where the batch is.
    """

    def __init__(self, encoder: ContentEncoder, memory: Memory, policy: ChunkModule) -> None:
        super().__init__()
        self.encoder = encoder
        self.memory = memory
        self.policy = policy
        self.hardware, self.group = CPU, ALONE

    def place(self, hardware: Hardware, group: Group = ALONE) -> Agent:
        """Move to a device, to be trained there, by a group of processes; returns itself."""
        self.hardware, self.group = hardware, group
        for part in self.memory.modules():
            if isinstance(part, RunningScale):
                part.of_all = group.whole
        hardware.compile([self.encoder, self.policy])
        return self.to(hardware.device)

    def memory_inputs(self, batch: EpisodeBatch) -> MemoryInput:
        """What the memory is given at every write `(B, T, ...)`."""
        content = self._seen(batch.writes)
        return MemoryInput(content, batch.writes.xi, batch.writes.delta, content[:, :1].expand_as(content))

    def memory_parameters(self) -> list[nn.Parameter]:
        """What the memory's own phase learns: encoder and memory, but for eyes of the policy, and places of the policy
        where it shares its eyes.
        """
        theirs = {id(one) for one in self.policy.parameters()}
        own = [*self.encoder.parameters(), *self.memory.parameters()]
        places = self.policy.places if self.encoder.config.shared else None
        return [*(one for one in own if id(one) not in theirs), *(() if places is None else places.parameters())]

    def look(self, evidence: Evidence) -> Features:
        """What the memory's backbone sees, to be used more than once."""
        if isinstance(evidence.thumbnails, Features):
            return evidence.thumbnails
        with self.hardware.half():
            return self.encoder.features(evidence.thumbnails)

    def policy_features(self, batch: EpisodeBatch) -> Features | None:
        """What the policy's backbone sees at every read tick `(B, R, C, ...)`, where the memory shares it."""
        if not self.encoder.config.shared:
            return None
        if isinstance(batch.reads.thumbnails, Features):
            return batch.reads.thumbnails
        if not batch.images.shape[2]:
            return None
        with self.hardware.half():
            return self.policy.image_features(batch.images)

    def recall(self, batch: EpisodeBatch, looked: Features | None = None) -> tuple[Readout, Losses]:
        """Scan the writes, then read at every read tick: a `(B * R, ...)` readout and the memory's own losses.

        looked: features of the read ticks' images, where they are there already.
        """
        batch = batch.to(self.hardware.device)
        with self.hardware.whole():
            xs = self._written(batch)
            readout, states, records = self._unroll(batch, xs, looked)
            if type(self.memory).auxiliary is Memory.auxiliary:
                return readout, {}
            xs, states, records, steps = self.group.gathered(xs, states, records, batch.steps)
            self.memory.demonstrated(self.group.whole(batch.mask).sum(), self.group.whole(batch.seconds).sum())
            return readout, self.memory.auxiliary(xs, states, records, steps)

    def read(self, batch: EpisodeBatch, looked: Features | None = None) -> Readout:
        """The `(B * R, ...)` readout of `recall`."""
        batch = batch.to(self.hardware.device)
        with self.hardware.whole():
            return self._unroll(batch, self._written(batch), looked)[0]

    def remember(self, batch: EpisodeBatch) -> tuple[MemoryInput, State, WriteRecord]:
        """Scan the writes: what the memory was given, its state after each, and the records, `(B, T', ...)`."""
        xs = self._written(batch)
        stacked, _, records = self.memory.scan(xs, self.memory.initial_state(len(batch.mask)), batch.steps)
        return xs, stacked, records

    def forward(self, batch: EpisodeBatch) -> Tensor:
        """Normalised action chunks `(B, R, H, A)` at every read tick, as they would be executed."""
        here = batch.to(self.hardware.device)
        looked = self.policy_features(here)
        readout = self.read(here, looked)
        with self.hardware.half():
            chunks = self.policy.predict(_shown(here, looked), here.raw_state.flatten(0, 1), readout)
        return chunks.reshape(*here.last_write.shape, *chunks.shape[1:]).to(batch.actions)

    def losses(self, batch: EpisodeBatch) -> Losses:
        """The policy family's objective and the memory's auxiliary terms, unweighted (TRACE eq. 38)."""
        batch = batch.to(self.hardware.device)
        looked = self.policy_features(batch)
        readout, losses = self.recall(batch, looked)
        state, actions, valid = (part.flatten(0, 1) for part in (batch.raw_state, batch.actions, batch.valid))
        with self.hardware.half():
            own = self.policy.losses(
                _shown(batch, looked), state, readout, self.policy.normalise_actions(actions), valid
            )
        return losses | shared(own, valid, self.group)

    def _seen(self, evidence: Evidence, looked: Features | None = None) -> Tensor:
        """Content features, in float32."""
        with self.hardware.half():
            content: Tensor = self.encoder(evidence.thumbnails if looked is None else looked, evidence.state)
        return content.float() if self.hardware.bf16 else content

    def _written(self, batch: EpisodeBatch) -> MemoryInput:
        """Embedded inputs of all writes, in the order in which they are written."""
        xs = self.memory.embed(self.memory_inputs(batch))
        if batch.order is None:
            return xs
        rows, order = torch.arange(len(batch.order), device=batch.order.device)[:, None], batch.order.clamp(min=0)
        return xs.map(lambda field: field[rows, order])

    def _unroll(
        self, batch: EpisodeBatch, xs: MemoryInput, looked: Features | None
    ) -> tuple[Readout, State, WriteRecord]:
        """A `(B * R, ...)` readout, and what the memory's `auxiliary` needs of states and records."""
        seen = self._seen(batch.reads, looked)
        start = xs.anchor[:, :1].expand(*batch.last_write.shape, -1)
        queries = MemoryInput(seen, batch.reads.xi, batch.reads.delta, start)
        readout, states, records = self.memory.unroll(xs, batch.steps, queries, batch.last_write)
        return Readout(*(part.flatten(0, 1) for part in readout)), states, records


def _shown(batch: EpisodeBatch, looked: Features | None) -> Any:
    """What the policy takes for images at the reads `(B * R, C, ...)`: these, or their features."""
    return batch.images.flatten(0, 1) if looked is None else looked.flatten()


def shared(losses: Losses, valid: Tensor, group: Group) -> Losses:
    """Means over one process's ticks that exist `(N, H)`, or its reads, as shares of the mean over all processes'."""
    if group.size == 1:
        return losses
    ticks, reads = group.share_of(valid), group.share_of(torch.ones_like(valid[:, 0]))
    return {name: value * (reads if name in PER_READ else ticks) for name, value in losses.items()}
