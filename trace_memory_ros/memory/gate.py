"""AURA-Mem's write gate around any mechanism: `NAME+gate` in a configuration (AURA-Mem, section 3.3).

Symbols: m the inner mechanism's state, s surprise, p and g the gate (see `write_gate.py`).
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from trace_memory_ros.memory.base import Memory, MemoryInput, Readout, State, WriteRecord, stack_steps
from trace_memory_ros.memory.gated_gru_scan import gated_gru_scan
from trace_memory_ros.memory.gru import GruMemory
from trace_memory_ros.memory.wrapped import WrappedConfig, WrappedMemory
from trace_memory_ros.memory.write_gate import (
    LEARNED,
    Decision,
    RunningScale,
    WriteGate,
    check_penalty,
    gated,
    ramp,
    rate_penalty,
)


@dataclass(frozen=True)
class GatedConfig(WrappedConfig):
    """Settings of the gate; `inner` holds the options of the mechanism that it stands before.

    gate: how it is trained. writes_per_s: most writes a second of what was demonstrated (1/s), whatever delay training
    goes beyond. rho: target share of written updates, where that is None or nothing tells how long episodes lasted.
    write_weight: of the rate penalty. rate_of: what it counts, the gate's "probability" or its "writes". ramp_from,
    ramp: the shares of the training at which the penalty begins to rise, and is full; the defaults leave the gate alone
    until the last stages of a delay curriculum. hidden: width of the gate's layer. temperature tau. gate_bias: its
    logit at the start, open where positive.
    """

    gate: str = "straight_through"
    hidden: int = 32
    gate_bias: float = 1.0
    rho: float = 0.15
    writes_per_s: float | None = 0.5
    write_weight: float = 1.0
    rate_of: str = "writes"
    ramp_from: float = 0.6
    ramp: float = 0.8
    temperature: float = 1.0

    def __post_init__(self) -> None:
        if self.gate not in LEARNED:
            raise ValueError(f"GatedConfig.gate = {self.gate!r}: must be one of {', '.join(LEARNED)}")
        if self.hidden < 1:
            raise ValueError(f"GatedConfig.hidden = {self.hidden}: must be at least 1")
        if not 0 < self.rho < 1:
            raise ValueError(
                f"GatedConfig.rho = {self.rho}: must lie between 0 and 1; without a gate nothing is skipped"
            )
        if self.writes_per_s is not None and self.writes_per_s <= 0:
            raise ValueError(
                f"GatedConfig.writes_per_s = {self.writes_per_s}: must be positive, or null for a share rho of updates"
            )
        if self.temperature <= 0:
            raise ValueError(f"GatedConfig.temperature = {self.temperature}: must be positive")
        if self.write_weight < 0:
            raise ValueError(f"GatedConfig.write_weight = {self.write_weight}: must not be negative")
        check_penalty("GatedConfig", self.ramp_from, self.ramp, self.rate_of)


class GatedMemory(WrappedMemory):
    """A mechanism that keeps its old state wherever the gate finds nothing worth a write.

    Tokens, vector, address and state are the inner mechanism's. Surprise is how much a write would change what the
    tick reads: the mean squared change of tokens and vector, in running standard deviations.
    """

    suffix = "+gate"

    def __init__(self, inner: Memory, config: GatedConfig | None = None) -> None:
        config = config or GatedConfig()
        super().__init__(inner, config)
        self.settings = config
        self.pressure = 1.0
        self.shown: tuple[Tensor, Tensor] | None = None
        self.slot_kind = inner.slot_kind
        seen = inner.dims.content + inner.address_width
        self.gate = WriteGate(seen, inner.dims.width, config.hidden, config.gate, config.temperature, config.gate_bias)
        self.surprise = RunningScale()

    @property
    def slot_count(self) -> int:
        """N of the inner mechanism."""
        return self.inner.slot_count

    def initial_state(self, batch: int) -> State:
        """The inner mechanism's; the gate keeps nothing."""
        return self.inner.initial_state(batch)

    def write(self, x: MemoryInput, state: State) -> tuple[State, WriteRecord]:
        """The inner write where the gate opens, the old state, bit for bit, elsewhere."""
        x = self.embed(x)
        new, record, _ = self._advance(x, self._prepare(x), state)
        return new, record

    def read(self, x: MemoryInput, state: State) -> Readout:
        """As the inner mechanism."""
        return self.inner.read(x, state)

    def scan(self, xs: MemoryInput, state: State, mask: Tensor) -> tuple[State, State, WriteRecord]:
        """As `Memory.scan`; in training mode the surprise's running scale then takes in the scanned episodes."""
        xs = self.embed(xs)
        prepared = self._prepare(xs)
        if isinstance(self.inner, GruMemory):
            return self._scan_gru(self.inner, xs, prepared, state[0], mask)
        states, records, changes = [], [], []
        for t in range(mask.shape[1]):
            state, record, change = self._advance(xs.at(t), prepared[:, t], state, mask[:, t])
            states.append(state)
            records.append(record)
            changes.append(change)
        if self.training:
            self.surprise.update(torch.stack(changes, dim=1)[mask])
        stacked, joined = stack_steps(states, records)
        return stacked, state, joined.only_where(mask)

    def _scan_gru(
        self, inner: GruMemory, xs: MemoryInput, prepared: Tensor, hidden: Tensor, mask: Tensor
    ) -> tuple[State, State, WriteRecord]:
        """`scan` before a GRU, by a recurrence of its own."""
        found = gated_gru_scan(inner, self.gate, self.surprise, xs, prepared, hidden, mask)
        if self.training:
            self.surprise.update(found.change[mask])
        strength = found.strength[..., None]
        record = WriteRecord(torch.ones_like(strength), strength, found.probability, found.surprise, found.open)
        return (found.hidden,), (found.hidden[:, -1],), record.only_where(found.open)

    def demonstrated(self, updates: Tensor, seconds: Tensor) -> None:
        """Where the target is a rate, longer delays than these seconds hold are written at the same writes' expense."""
        self.shown = updates, seconds
        super().demonstrated(updates, seconds)

    def anneal(self, progress: float) -> None:
        """The rate penalty rises from 0 to its weight between `ramp_from` and `ramp` of the training."""
        self.pressure = ramp(progress, self.settings.ramp_from, self.settings.ramp)
        super().anneal(progress)

    def auxiliary(self, xs: MemoryInput, states: State, records: WriteRecord, mask: Tensor) -> dict[str, Tensor]:
        """The inner losses over what was written, and `write_rate`: the one-sided rate penalty, weighted.

        It is divided by the target: a square alone lets as much more pass as one more write is worth to the task,
        however small the target is.
        """
        target, times = self._target(mask)
        excess = rate_penalty(records.gate, mask, target, times, self.settings.rate_of) / target
        losses = self.inner.auxiliary(xs, states, records, mask & records.wrote)
        return {**losses, "write_rate": self.pressure * self.settings.write_weight * excess}

    def _target(self, mask: Tensor) -> tuple[Tensor | float, Tensor | float]:
        """The share of demonstrated updates that may be written, and how many times as many there are in `mask`."""
        rate = self.settings.writes_per_s
        if rate is None or self.shown is None:
            return self.settings.rho, 1.0
        updates, seconds = self.shown
        return rate * seconds / updates, mask.sum() / updates

    def _prepare(self, x: MemoryInput) -> Tensor:
        """The gate's first layer on content and address, of embedded inputs."""
        prepared: Tensor = self.gate.seen(torch.cat((x.content, self.inner.address(x)), dim=-1))
        return prepared

    def _advance(
        self, x: MemoryInput, prepared: Tensor, state: State, allowed: Tensor | None = None
    ) -> tuple[State, WriteRecord, Tensor]:
        """One step; also the change that a write would make. Where `allowed` is False nothing of the state changes."""
        proposed, record = self.inner.write(x, state)
        recalled, change = self._compare(x, state, proposed)
        surprise = self.surprise(change)
        decision: Decision = self.gate(prepared, recalled, surprise)
        new = gated(decision if allowed is None else decision.only_where(allowed), proposed, state)
        record = record._replace(gate=decision.probability, surprise=surprise)
        return new, record.only_where(decision.open), change

    @torch.no_grad()
    def _compare(self, x: MemoryInput, old: State, new: State) -> tuple[Tensor, Tensor]:
        """What is read before the write `(B, d)`, and the mean squared change of all that is read by it `(B,)`."""
        batch = x.content.shape[0]
        both = tuple(torch.cat((o, n)) for o, n in zip(old, new, strict=True))
        readout = self.inner.read(x.map(lambda f: torch.cat((f, f))), both)
        everything = torch.cat((readout.tokens.flatten(1), readout.vector), dim=1)
        return readout.vector[:batch], (everything[batch:] - everything[:batch]).square().mean(dim=1)
