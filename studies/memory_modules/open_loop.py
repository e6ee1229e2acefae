"""Open loop: a trained memory scans the expert's episodes, and its own policy decides at the branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from studies.memory_modules.expert_episodes import ExpertEpisode
from trace_memory_ros.learning.data.dataset import increments
from trace_memory_ros.learning.data.path_signatures import signatures
from trace_memory_ros.learning.decisions.branch_accuracy import nearer
from trace_memory_ros.memory.base import MemoryInput, Readout
from trace_memory_ros.observation.images import shrunk
from trace_memory_ros.policies.act.policy import ActConfig, ActPolicy
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.clock import UpdateClock
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.vision.encoder import pixels_of

SCANNED = 32
"""Writes taken at a time: a scan keeps the state after each of them."""


@dataclass(frozen=True)
class OpenLoopDecision:
    """What came of one episode: whether the chunk at the branch was nearer to the own expert's than to the twin's."""

    right: bool
    writes: int
    ticks: int


class OpenLoop:
    """Encoder, memory and policy of a checkpoint, for episodes of its own normaliser and update clock."""

    def __init__(self, checkpoint: Path) -> None:
        self.checkpoint = load(checkpoint)
        options = self.checkpoint.policy.options
        self.model = MemoryModel.from_checkpoint(self.checkpoint)
        self.policy = ActPolicy(ActConfig(**options))
        self.checkpoint.load_into(self.policy, "policy.")
        self.policy.eval()

    @torch.inference_mode()
    def decide(
        self, episodes: Sequence[ExpertEpisode], address_override: Sequence[ExpertEpisode] | None = None
    ) -> list[OpenLoopDecision]:
        """Decide at the branch of each; episodes `2i` and `2i + 1` are twins.

        address_override: read with the signature that these others have at their branch, to tell a memory that has
        lost the cue from one that is asked wrongly. Raises ValueError for episodes that were recorded for another clock
        or normaliser.
        """
        readout, wrote = self.scan(episodes, address_override)
        images = pixels_of(np.stack([r.images for r in episodes]))
        state = torch.from_numpy(np.stack([r.state[-1] for r in episodes]).astype(np.float32))
        chunks = self.policy(images, state, (readout.tokens, readout.vector, readout.address))
        own = self.policy.normalise_actions(torch.from_numpy(np.stack([r.actions for r in episodes])))
        twin = own.unflatten(0, (-1, 2)).flip(1).flatten(0, 1)
        right = nearer(chunks, own, twin)
        ticks = [len(r.state) for r in episodes]
        return [OpenLoopDecision(*each) for each in zip(right.tolist(), wrote.tolist(), ticks, strict=True)]

    @torch.inference_mode()
    def scan(
        self, episodes: Sequence[ExpertEpisode], address_override: Sequence[ExpertEpisode] | None = None
    ) -> tuple[Readout, Tensor]:
        """Readout at the branch after all writes before it, `(B, ...)`, and how often the memory wrote `(B,)`."""
        memory = self.model.memory
        evidence = [self._evidence(episode) for episode in episodes]
        writes = _Evidence._make(_padded(fields) for fields in zip(*(e[0] for e in evidence), strict=True))
        branch = _Evidence._make(np.stack(fields) for fields in zip(*(e[1] for e in evidence), strict=True))
        if address_override is not None:
            addresses = [self._evidence(episode)[1] for episode in address_override]
            xi, delta = (np.stack([getattr(a, name) for a in addresses]) for name in ("xi", "delta"))
            branch = branch._replace(xi=xi, delta=delta)
        counts = torch.tensor([len(episode.writes) for episode in episodes])
        anchor = self._content(_Evidence._make(f[:, 0] for f in writes))
        state = memory.initial_state(len(episodes))
        wrote = torch.zeros(len(episodes), dtype=torch.int64)
        for start in range(0, int(counts.max()), SCANNED):
            part = _Evidence._make(f[:, start : start + SCANNED] for f in writes)
            steps = torch.arange(start, start + part.state.shape[1])
            xs = memory.embed(self._input(part, anchor[:, None].expand(-1, len(steps), -1)))
            _, state, records = memory.scan(xs, state, steps < counts[:, None])
            wrote += records.wrote.sum(dim=1)
        return memory.read(memory.embed(self._input(branch, anchor)), state), wrote

    def _evidence(self, episode: ExpertEpisode) -> tuple[_Evidence, _Evidence]:
        """At the writes `(W, ...)`, and at the branch."""
        writes, branch = episode.writes, episode.branch_tick
        state = self.model.state.apply(episode.state)
        config = self.checkpoint.config
        stamps_ns = np.arange(len(state)) * config.observation.period_ns
        path = config.observation.path_of(state)
        due = np.flatnonzero(UpdateClock(config.clock).write_mask(path, stamps_ns))
        if not np.array_equal(due, writes):
            raise ValueError(
                f"the episode has {len(writes)} writes, {self.checkpoint.folder} would make {len(due)}, elsewhere: "
                "record again with this checkpoint's normaliser and clock"
            )
        config = self.checkpoint.config
        xi = signatures(path, config.signature_depth or 1, config.signature_window)
        # A tick that writes reads with the increment of that same write, so its base is the write before.
        base = writes[max(int(np.searchsorted(writes, branch)) - 1, 0)]
        now = shrunk(episode.images, self.checkpoint.config.observation.thumbnail_px)
        return (
            _Evidence(episode.thumbnails, state[writes], xi[writes], increments(xi, writes)),
            _Evidence(now, state[branch], xi[branch], xi[branch] - xi[base]),
        )

    def _content(self, at: _Evidence) -> Tensor:
        content: Tensor = self.model.encoder(pixels_of(at.thumbnails), torch.from_numpy(at.state))
        return content

    def _input(self, at: _Evidence, anchor: Tensor) -> MemoryInput:
        content = self._content(at)
        if self.model.xi is None or self.model.delta is None:
            return MemoryInput(content, content[..., :0], content[..., :0], anchor)
        xi, delta = self.model.xi.apply(at.xi), self.model.delta.apply(at.delta)
        return MemoryInput(content, torch.from_numpy(xi), torch.from_numpy(delta), anchor)


class _Evidence(NamedTuple):
    """thumbnails `(..., C, p, p, 3)` uint8, standardised state `(..., 17)`, raw xi and delta `(..., S)`."""

    thumbnails: NDArray[np.uint8]
    state: NDArray[np.float32]
    xi: NDArray[np.float64]
    delta: NDArray[np.float64]


def _padded(arrays: Sequence[NDArray[Any]]) -> NDArray[Any]:
    """Arrays of several lengths as one, zeros after the end of each."""
    longest = max(len(array) for array in arrays)
    out = np.zeros((len(arrays), longest, *arrays[0].shape[1:]), arrays[0].dtype)
    for row, array in zip(out, arrays, strict=True):
        row[: len(array)] = array
    return out
