"""A memory in the passive T-maze: trained on short corridors, walked down endless ones in constant memory."""

from __future__ import annotations

from collections.abc import Sequence
from copy import deepcopy
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from studies.recall.learning.model import SymbolModel
from studies.recall.streams.tmaze import CORRIDOR, GOAL_A, GOAL_B, JUNCTION, OBSERVATIONS, TMaze
from trace_memory_ros.memory.base import Memory, MemoryInput
from trace_memory_ros.signature.layout import signature_size
from trace_memory_ros.signature.normalise import RunningMoments
from trace_memory_ros.signature.streaming import StreamingSignature

DEPTH = 2
PATHS = {"observation": 2, "progress": 1}
"""What the signature's path is made of, and its channels: what is seen, or how far the corridor was walked.

The first stands still in the corridor, and so does its signature, but it parts the goals by itself. The second is the
same for both goals, as an arm's path is in the arm tasks, and grows for ever.
"""
CHUNK = 10_000
Symbols = NDArray[np.int64]


class MazePath:
    """Signatures of one walk per row, standing where the last `advance` led; a step is 1 / unit far."""

    def __init__(self, kind: str, unit: int, rows: int) -> None:
        self._kind, self._unit, self._walked = kind, unit, 0
        self._streams = [StreamingSignature(PATHS[kind], DEPTH) for _ in range(rows)]
        self._last = np.zeros((rows, path_size(kind)))

    def advance(self, symbols: Symbols) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """Walk on while `symbols` `(B, T)` are seen: signatures and their increments since the step before."""
        steps = symbols.shape[1]
        if self._kind == "observation":
            points = OBSERVATIONS[symbols].astype(np.float64)
        else:
            points = np.broadcast_to(
                (self._walked + np.arange(steps)[:, None]) / self._unit, (*symbols.shape, 1)
            ).copy()
        self._walked += steps
        xi = np.empty((len(symbols), steps + 1, self._last.shape[1]))
        xi[:, 0] = self._last
        for row, stream in enumerate(self._streams):
            for t in range(steps):
                stream.update(points[row, t])
                xi[row, t + 1] = stream.value()
        self._last = xi[:, -1].copy()
        return xi[:, 1:], np.diff(xi, axis=1)


def path_size(kind: str) -> int:
    """Length of the signatures of a `MazePath`."""
    return signature_size(PATHS[kind], DEPTH)


class MazeModel(SymbolModel):
    """As `SymbolModel`, on observation vectors, and with signatures of a `MazePath` where the memory uses them."""

    def __init__(self, memory: Memory, task: TMaze, path: str = "observation", hidden: int = 32) -> None:
        super().__init__(TMaze.fields, TMaze.classes, memory)
        self.embeddings = nn.ModuleList()
        inputs, outputs = OBSERVATIONS.shape[1], memory.dims.content
        self.encoder = nn.Sequential(nn.Linear(inputs, hidden), nn.GELU(), nn.Linear(hidden, outputs))
        self.path, self.unit = path, task.longest
        moments = [RunningMoments(path_size(path)) for _ in range(2)]
        for moment, values in zip(moments, MazePath(path, self.unit, 64).advance(_walks(task)), strict=True):
            moment.add(values)
        self.xi, self.delta = (moment.standardiser() for moment in moments)

    def inputs(self, symbols: Tensor) -> MemoryInput:
        """What the memory is given for walks from their start, symbols `(B, T, 1)`."""
        return self.inputs_along(symbols, MazePath(self.path, self.unit, len(symbols)))

    def inputs_along(self, symbols: Tensor, path: MazePath) -> MemoryInput:
        """What the memory is given as the walks go on from where `path` stands."""
        seen = symbols[..., 0]
        content = self.encoder(torch.from_numpy(OBSERVATIONS)[seen])
        if self.memory.uses_signature:
            xi, delta = path.advance(seen.numpy())
            address = torch.from_numpy(self.xi.apply(xi)), torch.from_numpy(self.delta.apply(delta))
        else:
            address = (content.new_zeros(*seen.shape, 0),) * 2
        return MemoryInput(content, *address, content[:, :1].expand_as(content))


def _walks(task: TMaze) -> Symbols:
    return task.sample(np.random.default_rng(0), 64).symbols[..., 0]


class Choice(NamedTuple):
    """Of the walks that ended after `steps`, both goals: right `(2,)` and logit margins of the right goal `(2,)`."""

    steps: int
    right: tuple[bool, ...]
    margin: tuple[float, ...]


@torch.inference_mode()
def walk(model: MazeModel, lengths: Sequence[int]) -> list[Choice]:
    """Choices at the end of corridors of `lengths` steps, for both goals: every step goes through the memory.

    One walk passes all lengths: where a corridor ends, a copy of the state sees the junction and chooses. Only the
    state is kept between chunks of the memory's scan, which equals repeated steps.
    """
    path, state = MazePath(model.path, model.unit, 2), model.memory.initial_state(2)
    goals, seen = torch.tensor([[[GOAL_A]], [[GOAL_B]]]), 0
    choices = []
    for length in sorted(lengths):
        while seen < length - 1:
            steps = min(CHUNK, length - 1 - seen)
            symbols = torch.full((2, steps, 1), CORRIDOR)
            if not seen:
                symbols[:, :1] = goals
            xs = model.memory.embed(model.inputs_along(symbols, path))
            _, state, _ = model.memory.scan(xs, state, torch.ones(2, steps, dtype=torch.bool))
            seen += steps
        here = model.inputs_along(torch.full((2, 1, 1), JUNCTION), deepcopy(path)).at(0)
        readout, _, _ = model.memory.step(here, state, torch.ones(2, dtype=torch.bool))
        logits = model.head(readout.vector)
        margin = (logits.diag() - logits.flip(1).diag()).tolist()
        choices.append(Choice(length, tuple(m > 0 for m in margin), tuple(margin)))
    return choices
