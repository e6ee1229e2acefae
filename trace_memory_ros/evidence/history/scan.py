"""A memory over a recorded history whose path is not the one that its contents were seen along."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.evidence.history.transforms import Path
from trace_memory_ros.memory.base import MemoryInput, Readout, WriteRecord
from trace_memory_ros.observation.frames import Cameras, resized, stacked
from trace_memory_ros.runtime.address import AddressStream
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig
from trace_memory_ros.runtime.clock import UpdateClock
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.vision.encoder import pixels_of

ENCODED_AT_ONCE = 64


class ScannedHistory(NamedTuple):
    """What an open-loop scan of a history of T ticks gave, batch 1.

    due: `(D,)` ticks at which the clock asked for a write; evidence: the inputs there `(1, D, ...)`; record: of those
    writes `(1, D, ...)`; now: the input at the last tick `(1, ...)`; readout: what is recalled there.
    """

    due: NDArray[np.int64]
    evidence: MemoryInput
    record: WriteRecord
    now: MemoryInput
    readout: Readout

    @property
    def writes(self) -> NDArray[np.int64]:
        """`(W,)` ticks that wrote: those due, less what a gate refused."""
        return self.due[self.record.wrote[0].numpy()]

    @property
    def routes(self) -> NDArray[np.float64]:
        """`(W, N)` write routes."""
        return self._written(self.record.route)

    @property
    def strengths(self) -> NDArray[np.float64]:
        """`(W, N)` write strengths."""
        return self._written(self.record.write_strength)

    def _written(self, field: Tensor) -> NDArray[np.float64]:
        rows: NDArray[np.float64] = field[0][self.record.wrote[0]].numpy().astype(np.float64)
        return rows


class HistoryScanner:
    """Scans histories into a checkpoint's memory, open loop, with contents and path given apart.

    With the identity path its readout is that of `MemoryRuntime` over the same ticks, to 1e-5: the writes are one scan
    here.
    """

    def __init__(self, config: CheckpointConfig, model: MemoryModel) -> None:
        self.config = config
        self.model = model

    @property
    def spread(self) -> NDArray[np.float64]:
        """Standard deviation of each state channel, SI units `(d_s,)`; 0 for channels that are masked."""
        return np.where(self.model.state.active, self.model.state.std, 0.0)

    @torch.inference_mode()
    def contents(self, images: Cameras, states: NDArray[np.float64]) -> Tensor:
        """Content features `(T, d_e)` of T ticks' images and states `(T, d_s)` in SI units."""
        parts = []
        small = resized(images, self.config.observation.thumbnail_px)
        for start in range(0, len(states), ENCODED_AT_ONCE):
            some = slice(start, start + ENCODED_AT_ONCE)
            seen = pixels_of(stacked(small, some))
            parts.append(self.model.encoder(seen, torch.from_numpy(self.model.state.apply(states[some]))))
        return torch.cat(parts)

    @torch.inference_mode()
    def scan(self, contents: Tensor, path: Path) -> ScannedHistory:
        """Write `contents` `(T, d_e)` along `path` of T ticks, T >= 1, as the clock says, and recall at the last tick.

        Raises ValueError where the two are not of one length.
        """
        if len(contents) != len(path) or not path:
            raise ValueError(f"{len(contents)} contents along a path of {len(path)} ticks: give as many, at least one")
        due, memory = self.due(path), self.model.memory
        xi, delta = self.addresses(path, due)
        anchor = contents[:1]
        at_writes = MemoryInput(contents[due], xi[:-1], delta[:-1], anchor.expand(len(due), -1))
        evidence = memory.embed(at_writes.map(lambda f: f[None]))
        now = memory.embed(MemoryInput(contents[-1:], xi[-1:], delta[-1:], anchor))
        everywhere = torch.ones(1, len(due), dtype=torch.bool)
        _, state, record = memory.scan(evidence, memory.initial_state(1), everywhere)
        return ScannedHistory(due, evidence, record, now, memory.read(now, state))

    def due(self, path: Path) -> NDArray[np.int64]:
        """The ticks at which the update clock asks for a write, a tick period apart."""
        stands = self._path(np.stack([points[-1] for points in path]))
        stamps_ns = np.arange(len(stands)) * self.config.observation.period_ns
        return np.flatnonzero(UpdateClock(self.config.clock).write_mask(stands, stamps_ns))

    def _path(self, states: NDArray[np.float64]) -> NDArray[np.float32]:
        return self.config.observation.path_of(self.model.state.apply(states))

    def addresses(self, path: Path, due: NDArray[np.int64]) -> tuple[Tensor, Tensor]:
        """Standardised xi and delta at the ticks `due` `(D,)` and at the last tick, `(D + 1, S)`; S may be 0.

        delta is measured from the tick due before.
        """
        xi, delta, config = self.model.xi, self.model.delta, self.config
        if xi is None or delta is None:
            nothing = torch.zeros(len(due) + 1, config.signature_dim)
            return nothing, nothing
        stream = AddressStream(config.observation.path_dim, config.signature_depth, xi, delta, config.signature_window)
        found = []
        start = 0
        for tick in (*due, len(path) - 1):
            some = path[start : tick + 1]
            if some:
                states = self._path(np.concatenate(some))
                stream.walk(states[:-1])
                now = stream.advance(states[-1])
            found.append(now)
            stream.mark_write()
            start = tick + 1
        first, second = (torch.from_numpy(np.stack(parts)) for parts in zip(*found, strict=True))
        return first, second
