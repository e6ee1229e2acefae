"""One policy for all worlds, of which only the memory is exchanged: encode, remember, decide from both."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from studies.worlds.client import Floats, Lessons
from studies.worlds.path import DEPTH, ObservationPath
from studies.worlds.protocol import Interface
from studies.worlds.rows import CONTENT, WIDTH, Row
from trace_memory_ros.learning.bags.design import choose_clock
from trace_memory_ros.memory.base import MemoryInput, State, WriteRecord
from trace_memory_ros.memory.layers import mlp
from trace_memory_ros.runtime.clock import ClockRule, UpdateClock
from trace_memory_ros.signature.normalise import STD_FLOOR, RunningMoments, Standardiser, signature_standardiser

HIDDEN = 128
FITTED = 128
"""Episodes from which the spread of signatures is taken."""


class Decided(NamedTuple):
    """decisions `(B, T, D)`: what `WorldPolicy.losses` and `chosen` read; the rest is for the memory's `auxiliary`.

    due: ticks `(B, T)` at which the memory is written.
    """

    decisions: Tensor
    due: Tensor
    inputs: MemoryInput
    states: State
    records: WriteRecord


class WorldPolicy(nn.Module):
    """Observation, whether it is an episode's first, and where the world asks for it the last action; a memory; a head.

    The head sees the present content and the memory's vector. Where observations are not symbols, and for signatures,
    spreads are those of `lessons`; a number that is exactly 0 is not shown, and stays 0. writes: at how many ticks of
    the median lesson the memory is written, by the length of the path as a robot's is; at all of them where None.
    """

    def __init__(self, row: Row, interface: Interface, lessons: Lessons, writes: int | None = None) -> None:
        super().__init__()
        self.interface, self.row = interface, row
        acted = sum(interface.choices) or interface.numbers
        shown = lessons.observations[lessons.mask]
        self.spread = None if np.isin(shown, (0.0, 1.0)).all() else _spread_of_shown(shown)
        self.encoder = mlp(interface.observation + 1 + acted * interface.previous_action, HIDDEN, CONTENT)
        self.rule = None if writes is None else self._rule(lessons, writes)
        self.xi = self.delta = None
        if row.uses_signature:
            chosen = slice(FITTED)
            path = self._new_path(len(lessons.mask[chosen]))
            seen = self._along(self._scaled(lessons.observations[chosen]))
            signatures = path.advance(seen, self.due(lessons.observations[chosen]))
            self.xi, self.delta = (_spread(part[lessons.mask[chosen]], path.channels + 1) for part in signatures)
        self.memory = row.build(self.xi.width if self.xi is not None else 0)
        self.head = mlp(CONTENT + WIDTH, HIDDEN, acted)

    def path(self, episodes: int) -> ObservationPath | None:
        """Where the signatures of so many episodes begin; None where there are none."""
        return self._new_path(episodes) if self.xi is not None else None

    def clocks(self, episodes: int) -> list[UpdateClock]:
        """Of so many episodes that begin; none where every tick writes."""
        return [] if self.rule is None else [UpdateClock(self.rule) for _ in range(episodes)]

    def due(self, observations: Floats, clocks: Sequence[UpdateClock] = ()) -> NDArray[np.bool_]:
        """At which of `observations` `(B, T, W)` the memory is written; without `clocks` they are whole episodes."""
        if self.rule is None:
            return np.ones(observations.shape[:2], dtype=bool)
        clocks = clocks or self.clocks(len(observations))
        along = self._along(self._scaled(observations))
        return np.array([[clock.due(at) for at in walked] for clock, walked in zip(clocks, along, strict=True)])

    def inputs(
        self,
        observations: Floats,
        acted: Floats,
        first: bool,
        path: ObservationPath | None,
        due: NDArray[np.bool_] | None = None,
    ) -> MemoryInput:
        """What the memory is given for `observations` `(B, T, W)` and the actions before them, `(B, T, A)`.

        first: whether the episodes begin here, in which case the first of `acted` are none. due: ticks that write.
        """
        scaled = self._scaled(observations)
        begins = np.zeros((*scaled.shape[:2], 1), np.float32)
        begins[:, 0] = first
        parts = [scaled, begins]
        if self.interface.previous_action:
            parts.append(self._as_input(acted) * (1 - begins))
        content = self.encoder(torch.from_numpy(np.concatenate(parts, axis=-1)))
        if path is None or self.xi is None or self.delta is None:
            address = (content.new_zeros(*content.shape[:2], 0),) * 2
        else:
            xi, delta = path.advance(self._along(scaled), due)
            address = torch.from_numpy(self.xi.apply(xi)), torch.from_numpy(self.delta.apply(delta))
        return MemoryInput(content, *address, content[:, :1].expand_as(content))

    def forward(
        self, observations: Floats, acted: Floats, mask: Tensor, due: NDArray[np.bool_] | None = None
    ) -> Decided:
        """Whole episodes, by the memory's `unroll`. due: what `due` said of them, if it was asked before."""
        due = self.due(observations) if due is None else due
        xs = self.memory.embed(self.inputs(observations, acted, True, self.path(len(observations)), due))
        written = mask & torch.from_numpy(due)
        readout, states, records = self.memory.unroll(xs, written)
        return Decided(self.decide(xs.content, readout.vector), written, xs, states, records)

    def decide(self, content: Tensor, vector: Tensor) -> Tensor:
        """Logits of all parts of an action side by side, or an action scaled to -1 .. 1."""
        decided: Tensor = self.head(torch.cat([content, vector], dim=-1))
        return decided

    def losses(self, decisions: Tensor, actions: Tensor) -> Tensor:
        """`(n,)`: cross-entropies, or mean squared distances, of decisions `(n, D)` to a teacher's actions `(n, A)`."""
        if not self.interface.choices:
            return (decisions - self._unit(actions)).square().mean(dim=-1)
        parts = decisions.split(self.interface.choices, dim=-1)
        each = [nn.functional.cross_entropy(p, actions[:, i].long(), reduction="none") for i, p in enumerate(parts)]
        return torch.stack(each).sum(dim=0)

    def chosen(self, decisions: Tensor) -> Floats:
        """The actions `(n, A)` that `decisions` `(n, D)` stand for: the most likely options, or numbers in range."""
        if self.interface.choices:
            parts = decisions.split(self.interface.choices, dim=-1)
            return torch.stack([part.argmax(dim=-1) for part in parts], dim=-1).float().numpy()
        low, high = self.interface.low, self.interface.high
        return ((decisions.clamp(-1, 1) + 1) / 2 * (high - low) + low).numpy()

    def _unit(self, actions: Tensor) -> Tensor:
        low, high = self.interface.low, self.interface.high
        return (actions - low) / (high - low) * 2 - 1

    def _as_input(self, actions: Floats) -> Floats:
        if not self.interface.choices:
            return self._unit(torch.from_numpy(actions)).numpy()
        options = [np.eye(n, dtype=np.float32) for n in self.interface.choices]
        return np.concatenate([eye[actions[..., i].astype(int)] for i, eye in enumerate(options)], axis=-1)

    def _scaled(self, observations: Floats) -> Floats:
        if self.spread is None:
            return observations
        return np.where(observations == 0.0, np.float32(0.0), self.spread.apply(observations))

    def _new_path(self, episodes: int) -> ObservationPath:
        return ObservationPath(len(self.interface.path) or self.interface.observation, episodes, self.row.window)

    def _rule(self, lessons: Lessons, writes: int) -> ClockRule:
        along = self._along(self._scaled(lessons.observations))
        return choose_clock([walked[there] for walked, there in zip(along, lessons.mask, strict=True)], writes)

    def _along(self, scaled: Floats) -> Floats:
        return scaled[..., list(self.interface.path)] if self.interface.path else scaled


def _spread(rows: np.ndarray, channels: int) -> Standardiser:
    """Of signatures `(n, S)` of a path of so many channels."""
    moments = RunningMoments(rows.shape[-1])
    moments.add(rows)
    return signature_standardiser(moments, channels, DEPTH)


def _spread_of_shown(rows: np.ndarray) -> Standardiser:
    """Of observations `(n, W)`, a channel's over the rows in which it is not 0."""
    columns = [column[column != 0.0].astype(np.float64) for column in rows.T]
    mean = np.array([column.mean() if column.size else 0.0 for column in columns])
    std = np.array([column.std() if column.size else 0.0 for column in columns])
    return Standardiser(mean, np.maximum(std, STD_FLOOR), std > STD_FLOOR)
