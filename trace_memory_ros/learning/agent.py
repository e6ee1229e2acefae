"""Encoder, memory and policy as one module that a whole-episode batch is pushed through."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from trace_memory_ros.learning.batches import EpisodeBatch
from trace_memory_ros.memory.base import Memory, MemoryInput, Readout
from trace_memory_ros.policies.act.policy import chunk_l1
from trace_memory_ros.policies.module import ChunkModule
from trace_memory_ros.vision.base import Features
from trace_memory_ros.vision.encoder import ContentEncoder

Losses = dict[str, Tensor]


class Agent(nn.Module):
    """What one checkpoint holds: `encoder`, `memory`, `policy`."""

    def __init__(self, encoder: ContentEncoder, memory: Memory, policy: ChunkModule) -> None:
        super().__init__()
        self.encoder = encoder
        self.memory = memory
        self.policy = policy

    def memory_inputs(self, batch: EpisodeBatch) -> MemoryInput:
        """What the memory is given at every write `(B, T, ...)`."""
        content = self.encoder(batch.writes.thumbnails, batch.writes.state)
        return MemoryInput(content, batch.writes.xi, batch.writes.delta, content[:, :1].expand_as(content))

    def memory_parameters(self) -> list[nn.Parameter]:
        """What encoder and memory learn and the policy has no part in."""
        theirs = {id(one) for one in self.policy.parameters()}
        own = [*self.encoder.parameters(), *self.memory.parameters()]
        return [one for one in own if id(one) not in theirs]

    def policy_features(self, batch: EpisodeBatch) -> Features | None:
        """What the policy's backbone sees at every read tick `(B, R, C, ...)`, where the memory shares it."""
        shared = self.encoder.config.shared and batch.images.shape[2] > 0
        return self.policy.image_features(batch.images) if shared else None

    def recall(self, batch: EpisodeBatch, seen_now: Features | None = None) -> tuple[Readout, Losses]:
        """Scan the writes, then read at every read tick: a `(B * R, ...)` readout and the memory's own losses.

        seen_now: features of the read ticks' images, where they are there already.
        """
        xs = self.memory.embed(self.memory_inputs(batch))
        size, reads = batch.last_write.shape
        stacked, _, records = self.memory.scan(xs, self.memory.initial_state(size), batch.mask)
        rows = torch.arange(size)[:, None]
        state = tuple(part[rows, batch.last_write].flatten(0, 1) for part in stacked)
        now = batch.reads.thumbnails if seen_now is None else seen_now
        seen = self.encoder(now, batch.reads.state).flatten(0, 1)
        start = xs.anchor[:, :1].expand(size, reads, -1).flatten(0, 1)
        query = MemoryInput(seen, batch.reads.xi.flatten(0, 1), batch.reads.delta.flatten(0, 1), start)
        return self.memory.read(query, state), self.memory.auxiliary(xs, stacked, records, batch.mask)

    def forward(self, batch: EpisodeBatch) -> Tensor:
        """Normalised action chunks `(B, R, H, A)` at every read tick, as they would be executed."""
        seen = self.policy_features(batch)
        readout, _ = self.recall(batch, seen)
        images: Any = batch.images.flatten(0, 1) if seen is None else seen.flatten()
        chunks = self.policy.predict(images, batch.raw_state.flatten(0, 1), readout)
        return chunks.reshape(*batch.last_write.shape, *chunks.shape[1:])

    def losses(self, batch: EpisodeBatch) -> Losses:
        """The policy family's objective and the memory's auxiliary terms, unweighted (TRACE eq. 38)."""
        seen = self.policy_features(batch)
        readout, losses = self.recall(batch, seen)
        images: Any = batch.images.flatten(0, 1) if seen is None else seen.flatten()
        state, actions, valid = (part.flatten(0, 1) for part in (batch.raw_state, batch.actions, batch.valid))
        return losses | self.policy.losses(images, state, readout, self.policy.normalise_actions(actions), valid)


class AuxiliaryHead(nn.Module):
    """An agent's encoder and memory under an auxiliary head that predicts the chunk from the read vector and the state.

    A two-layer perceptron of `hidden` units, discarded after the memory-first phase; it makes the path from cue to loss
    short.
    """

    def __init__(self, agent: Agent, hidden: int = 128) -> None:
        super().__init__()
        self.agent = agent
        self.shape = (agent.policy.config.chunk, len(agent.policy.config.action_names))
        inputs = agent.memory.dims.width + agent.memory.address_width + agent.encoder.config.state_dim
        outputs = self.shape[0] * self.shape[1]
        self.head = nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, outputs))

    def forward(self, batch: EpisodeBatch) -> Tensor:
        """Normalised action chunks `(B, R, H, A)`."""
        readout, _ = self.agent.recall(batch)
        return self._predict(batch, readout)

    def losses(self, batch: EpisodeBatch) -> Losses:
        """Chunk L1 of the head and the memory's auxiliary terms, unweighted."""
        readout, losses = self.agent.recall(batch)
        target = self.agent.policy.normalise_actions(batch.actions)
        losses["chunk_l1"] = chunk_l1(self._predict(batch, readout), target, batch.valid)
        return losses

    def _predict(self, batch: EpisodeBatch, readout: Readout) -> Tensor:
        state = batch.reads.state.flatten(0, 1)
        chunks = self.head(torch.cat([readout.vector, readout.address, state], dim=-1))
        return chunks.reshape(*batch.last_write.shape, *self.shape)
