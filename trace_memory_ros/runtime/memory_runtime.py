"""One memory tick, the same for training export, bag replay and the live node."""

from __future__ import annotations

import time
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.memory.base import MemoryInput, State
from trace_memory_ros.observation.images import shrunk
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.address import AddressStream
from trace_memory_ros.runtime.checkpoint import Checkpoint, load
from trace_memory_ros.runtime.clock import UpdateClock
from trace_memory_ros.runtime.condition import Condition, ConditionStatus, FloatArray, TickRecord
from trace_memory_ros.runtime.kept import LastOutputs, TickCounts
from trace_memory_ros.runtime.model import MemoryModel, one_thread
from trace_memory_ros.runtime.snapshot import Arrays, SnapshotError, pack, unpack
from trace_memory_ros.runtime.write_statistics import WriteStatistics
from trace_memory_ros.vision.encoder import pixels_of

STAGES = ("encode", "signature", "memory")
DUE = torch.ones(1, dtype=torch.bool)
NO_FLOATS: FloatArray = np.zeros(0, dtype=np.float32)


class MemoryRuntime:
    """A checkpoint's memory at work on one robot: float32, batch 1, one thread (process-wide), no gradients.

    The state is standardised once, to float32 as in training; the encoder takes that, signature and clock its path.
    The same observations give bit-identical conditions on the same machine and library versions.
    """

    _memory: State
    _anchor: Tensor
    _last: LastOutputs
    _counts: TickCounts

    def __init__(self, checkpoint: Checkpoint) -> None:
        one_thread()
        self.config = checkpoint.config
        self.model_id = checkpoint.model_id
        self.model = MemoryModel.from_checkpoint(checkpoint)
        self._state_bytes = self.model.memory.state_bytes
        fitted = (self.model.state, self.model.xi, self.model.delta)
        self._standardised = sum(int(one.active.sum()) for one in fitted if one is not None)
        self._clock = UpdateClock(self.config.clock)
        self._address = self._build_address()
        self._no_address = torch.zeros(1, self.config.signature_dim)
        self._statistics = WriteStatistics(self.model.memory.slot_count)
        self._begin(TickCounts())

    @classmethod
    def from_checkpoint(cls, folder: str | Path) -> MemoryRuntime:
        """Load and check a checkpoint folder. Raises CheckpointError."""
        return cls(load(folder))

    @property
    def fresh(self) -> bool:
        """Whether no tick came since the episode began."""
        return not (self._counts.ok or self._counts.stale or self._counts.invalid)

    def reset(self) -> None:
        """Begin the next episode: nothing of the past is left but the episode's number."""
        self._begin(TickCounts(episode=self._counts.episode + 1))

    def tick(self, observation: Observation) -> tuple[Condition, TickRecord]:
        """Remember what is due of an observation and recall; an unusable one leaves the memory untouched."""
        fault = self._fault(observation)
        if fault:
            return self._repeat(observation, fault)
        with torch.inference_mode():
            return self._advance(observation)

    def warm_up(self, ticks: int = 3) -> None:
        """Compile and allocate what a first tick would pay for; the episode stays as it is."""
        here = self.snapshot()
        seen = self.config.observation
        images = seen.black_images()
        for k in range(ticks):
            self.tick(Observation(k, k * seen.period_ns, images, np.full(seen.state_dim, 0.1 * k), {}, {}))
        self.restore(here)

    def snapshot(self) -> Arrays:
        """Everything the next tick depends on, as named arrays that any tensor file can hold."""
        memory = {str(i): part.numpy().copy() for i, part in enumerate(self._memory)}
        parts: dict[str, Mapping[str, NDArray[Any]]] = {
            "memory": {**memory, "anchor": self._anchor.numpy().copy()},
            "clock": self._clock.snapshot(),
            "writes": self._statistics.snapshot(),
            "last": self._last.snapshot(),
            "ticks": self._counts.snapshot(),
        }
        if self._address is not None:
            parts["address"] = self._address.snapshot()
        return pack(self.model_id, parts)

    def restore(self, arrays: Mapping[str, NDArray[Any]]) -> None:
        """Go on, bit for bit, where `snapshot` was taken, by this runtime or another one of the same model.

        Raises SnapshotError naming version, model or array, and then changes nothing.
        """
        parts = unpack(arrays, self.snapshot())
        if self._address is not None:
            try:
                self._address.restore(parts["address"])
            except ValueError as error:
                raise SnapshotError(f"snapshot: address: {error}") from error
        memory = parts["memory"]
        self._anchor = torch.from_numpy(memory["anchor"].copy())
        self._memory = tuple(torch.from_numpy(memory[str(i)].copy()) for i in range(len(self._memory)))
        self._clock.restore(parts["clock"])
        self._statistics.restore(parts["writes"])
        self._last.restore(parts["last"])
        self._counts.restore(parts["ticks"])

    def _begin(self, counts: TickCounts) -> None:
        memory = self.model.memory
        with torch.inference_mode():
            self._memory = memory.initial_state(1)
        self._anchor = torch.zeros(1, self.config.encoder.content_dim)
        self._last = LastOutputs.empty(memory.slot_count, memory.dims.width, memory.address_width)
        self._counts = counts
        self._clock.reset()
        self._statistics.reset()
        if self._address is not None:
            self._address.reset()

    def _build_address(self) -> AddressStream | None:
        xi, delta = self.model.xi, self.model.delta
        if xi is None or delta is None:
            return None
        config = self.config
        return AddressStream(config.observation.path_dim, config.signature_depth, xi, delta, config.signature_window)

    def _fault(self, observation: Observation) -> str:
        """Why `observation` cannot be used, empty if it can."""
        if observation.faults:
            return "; ".join(observation.faults.values())
        seen, state = self.config.observation, observation.state
        if state is None or state.shape != (seen.state_dim,):
            shape = None if state is None else state.shape
            return f"observation's state is {shape}, the model needs ({seen.state_dim},): use the checkpoint's config"
        if not np.isfinite(state).all():
            bad = [seen.state[i] for i in np.flatnonzero(~np.isfinite(state))]
            return f"state of {', '.join(bad)} is not finite: check its sensor"
        for name in seen.camera_names:
            image, side = observation.images.get(name), seen.px_of(name)
            size = (side, side, 3)
            if image is None or image.shape != size or image.dtype != np.uint8:
                found = None if image is None else (image.shape, str(image.dtype))
                return f"image of {name} is {found}, the model needs {size} uint8: use the checkpoint's config"
        return ""

    def _advance(self, observation: Observation) -> tuple[Condition, TickRecord]:
        marks = [time.perf_counter()]
        assert observation.state is not None
        state = self.model.state.apply(observation.state)
        content = self._encode(observation, state)
        marks.append(time.perf_counter())
        path = self.config.observation.path_of(state)
        xi, delta = self._addresses(path)
        due = self._clock.due(path, observation.stamp_ns)
        marks.append(time.perf_counter())
        if self._counts.ok == 0:
            self._anchor, self._counts.first_ns = content, observation.stamp_ns
        evidence = MemoryInput(content, xi, delta, self._anchor)
        wrote = self._remember(evidence, due)
        self._counts.ok += 1
        marks.append(time.perf_counter())
        spent = (1e3 * (end - begin) for begin, end in pairwise(marks))
        condition = self._condition(observation, ConditionStatus.OK, "", wrote)
        stage_ms = dict(zip(STAGES, spent, strict=True))
        return condition, self._record(observation, due, stage_ms, *self._clipped(state, xi, delta))

    def _remember(self, evidence: MemoryInput, due: bool) -> bool:
        """Write where it is due, and read; returns whether the memory wrote."""
        memory = self.model.memory
        if not due:
            # What a step with nothing to write gives, without the work of the write.
            self._last.take_read(memory.read(evidence, self._memory))
            return False
        readout, self._memory, record = memory.step(evidence, self._memory, DUE)
        self._last.take_read(readout)
        self._last.take_write(record)
        self._counts.due += 1
        if self._address is not None:
            self._address.mark_write()
        wrote = bool(record.wrote[0])
        if wrote:
            self._statistics.add(self._last.route)
        return wrote

    def _encode(self, observation: Observation, state: FloatArray) -> Tensor:
        seen = self.config.observation
        small = pixels_of(np.stack([shrunk(observation.images[name], seen.thumbnail_px) for name in seen.camera_names]))
        content: Tensor = self.model.encoder(small[None], torch.from_numpy(state)[None])
        return content

    def _addresses(self, path: FloatArray) -> tuple[Tensor, Tensor]:
        if self._address is None:
            return self._no_address, self._no_address
        xi, delta = self._address.advance(path)
        return torch.from_numpy(xi)[None], torch.from_numpy(delta)[None]

    def _clipped(self, state: FloatArray, xi: Tensor, delta: Tensor) -> tuple[float, tuple[str, ...]]:
        """Of standardised state and signatures the share at the limit; names of the state's."""
        model = self.model
        at = model.state.at_limit(state)
        clipped = int(at.sum())
        for standardiser, numbers in ((model.xi, xi), (model.delta, delta)):
            if standardiser is not None:
                clipped += int(standardiser.at_limit(numbers.numpy()).sum())
        names = tuple(self.config.observation.state[i] for i in np.flatnonzero(at))
        return clipped / max(self._standardised, 1), names

    def _repeat(self, observation: Observation, fault: str) -> tuple[Condition, TickRecord]:
        """The last usable tick's arrays under a new stamp."""
        status = ConditionStatus.STALE if self._counts.ok else ConditionStatus.INVALID
        self._counts.stale += status is ConditionStatus.STALE
        self._counts.invalid += status is ConditionStatus.INVALID
        condition = self._condition(observation, status, fault, wrote=False)
        return condition, self._record(observation, False, dict.fromkeys(STAGES, 0.0))

    def _condition(self, observation: Observation, status: ConditionStatus, reason: str, wrote: bool) -> Condition:
        valid, last = status is not ConditionStatus.INVALID, self._last
        return Condition(
            episode=self._counts.episode,
            tick=observation.tick,
            stamp_ns=observation.stamp_ns,
            status=status,
            reason=reason,
            mechanism=self.config.mechanism,
            model_id=self.model_id,
            tokens=last.tokens if valid else NO_FLOATS.reshape(0, last.tokens.shape[1]),
            vector=last.vector if valid else NO_FLOATS,
            read_weights=last.read_weights if valid else NO_FLOATS,
            address=last.address if valid else NO_FLOATS,
            wrote=wrote,
            input_stamps_ns=dict(observation.input_stamps_ns),
        )

    def _record(
        self,
        observation: Observation,
        due: bool,
        stage_ms: dict[str, float],
        clipped_share: float = 0.0,
        clipped_state: tuple[str, ...] = (),
    ) -> TickRecord:
        last, writes, counts = self._last, self._statistics, self._counts
        # Counted in ticks: a snapshot may be gone on from at any time, and by another clock.
        elapsed_ns = (counts.ok + counts.stale) * self.config.observation.period_ns
        return TickRecord(
            slot_kind=self.model.memory.slot_kind,
            route=last.route,
            write_strength=last.write_strength,
            slot_norms=np.sqrt(np.square(last.tokens).mean(axis=1)),
            gate=float(last.gate[0]),
            surprise=float(last.surprise[0]),
            due=due,
            path_length=self._clock.path_length,
            write_entropy=writes.entropy,
            slot_churn=writes.churn,
            slot_occupancy=writes.occupancy,
            write_count=writes.count,
            due_count=counts.due,
            write_rate_hz=writes.count / (elapsed_ns * 1e-9) if writes.count else 0.0,
            state_bytes=self._state_bytes,
            ticks_stale=counts.stale,
            ticks_invalid=counts.invalid,
            stage_ms=stage_ms,
            clipped_share=clipped_share,
            clipped_state=clipped_state,
        )
