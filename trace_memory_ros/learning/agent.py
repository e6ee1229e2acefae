"""Encoder, memory and policy as one module that a whole-episode batch is pushed through."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from trace_memory_ros.learning.batches import EpisodeBatch
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.memory.base import Memory, MemoryInput, Readout
from trace_memory_ros.observation.encoder import ContentEncoder
from trace_memory_ros.policies.act import ActPolicy, chunk_l1


class Losses(NamedTuple):
    """The summed loss and its parts, for the optimiser and for people."""

    total: Tensor
    parts: dict[str, float]


class Agent(nn.Module):
    """What one checkpoint holds: `encoder`, `memory`, `policy`."""

    def __init__(self, encoder: ContentEncoder, memory: Memory, policy: ActPolicy) -> None:
        super().__init__()
        self.encoder = encoder
        self.memory = memory
        self.policy = policy

    def memory_inputs(self, batch: EpisodeBatch) -> MemoryInput:
        """What the memory is given at every write `(B, T, ...)`."""
        content = self.encoder(batch.writes.thumbnails, batch.writes.state)
        return MemoryInput(content, batch.writes.xi, batch.writes.delta, content[:, :1].expand_as(content))

    def recall(self, batch: EpisodeBatch) -> tuple[Readout, dict[str, Tensor]]:
        """Scan the writes, then read at every read tick: a `(B * R, ...)` readout and the memory's own losses."""
        xs = self.memory.embed(self.memory_inputs(batch))
        size, reads = batch.last_write.shape
        stacked, _, records = self.memory.scan(xs, self.memory.initial_state(size), batch.mask)
        rows = torch.arange(size)[:, None]
        state = tuple(part[rows, batch.last_write].flatten(0, 1) for part in stacked)
        seen = self.encoder(batch.reads.thumbnails, batch.reads.state).flatten(0, 1)
        start = xs.anchor[:, :1].expand(size, reads, -1).flatten(0, 1)
        query = MemoryInput(seen, batch.reads.xi.flatten(0, 1), batch.reads.delta.flatten(0, 1), start)
        return self.memory.read(query, state), self.memory.auxiliary(xs, stacked, records, batch.mask)

    def forward(self, batch: EpisodeBatch) -> Tensor:
        """Normalised action chunks `(B, R, H, A)` at every read tick, with the CVAE latent at its prior mean."""
        readout, _ = self.recall(batch)
        return self._act(batch, readout, None)

    def losses(self, batch: EpisodeBatch, recipe: Recipe) -> Losses:
        """Chunk L1, the optional KL, and the memory's weighted auxiliary terms (TRACE eq. 38)."""
        readout, auxiliary = self.recall(batch)
        target = self.policy.normalise_actions(batch.actions)
        parts = {}
        latent = None
        if self.policy.config.latent:
            latent, parts["kl"] = self.policy.infer_latent(target.flatten(0, 1), batch.raw_state.flatten(0, 1))
        parts["chunk_l1"] = chunk_l1(
            self._act(batch, readout, latent).flatten(0, 1), target.flatten(0, 1), batch.valid.flatten(0, 1)
        )
        parts |= auxiliary
        weights = {
            "chunk_l1": 1.0,
            "kl": recipe.kl_weight,
            "balance": recipe.balance_weight,
            "entropy": recipe.entropy_weight,
            "consistency": recipe.consistency_weight,
        }
        total = torch.stack([weights[name] * value for name, value in parts.items()]).sum()
        return Losses(total, {name: float(value.detach()) for name, value in parts.items()})

    def _act(self, batch: EpisodeBatch, readout: Readout, latent: Tensor | None) -> Tensor:
        memory = (readout.tokens, readout.vector, readout.address)
        chunks = self.policy(batch.images.flatten(0, 1), batch.raw_state.flatten(0, 1), memory, latent)
        return chunks.reshape(*batch.last_write.shape, *chunks.shape[1:])
