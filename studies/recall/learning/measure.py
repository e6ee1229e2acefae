"""What a trained symbol model answers, writes and keeps, on streams it was not trained on."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from studies.recall.learning.model import SymbolModel
from studies.recall.streams.stream import SymbolStream, SymbolTask

Array = NDArray[np.float64]


class Measured(NamedTuple):
    """answers `(n, classes)`: distributions at the asked steps; right `(n,)`. wrote, gate `(B, T)` of every step."""

    answers: Array
    right: NDArray[np.bool_]
    wrote: NDArray[np.bool_]
    gate: Array
    stream: SymbolStream

    @property
    def success(self) -> float:
        """Share of asked steps answered right."""
        return float(self.right.mean())

    @property
    def write_rate(self) -> float:
        """Share of steps that were written."""
        return float(self.wrote.mean())

    def by_kind(self, values: NDArray[np.bool_] | Array, kinds: tuple[str, ...]) -> dict[str, float]:
        """Mean of `values` `(B, T)` over the steps of each kind."""
        return {name: float(values[self.stream.kind == index].mean()) for index, name in enumerate(kinds)}


def held_out(task: SymbolTask, seed: int, streams: int) -> SymbolStream:
    """Streams that `train` with the same seed never draws."""
    return task.sample(np.random.default_rng([seed, 1]), streams)


@torch.no_grad()
def measure(model: SymbolModel, stream: SymbolStream, batch: int = 64) -> Measured:
    """Answer `stream` in evaluation mode, `batch` streams at a time; the model's mode is left as it was."""
    training = model.training
    model.eval()
    answers, wrote, gate = [], [], []
    for start in range(0, len(stream.symbols), batch):
        some = slice(start, start + batch)
        recalled = model(torch.from_numpy(stream.symbols[some]), torch.from_numpy(stream.asked[some]))
        answers.append(recalled.logits.double().softmax(dim=-1).numpy())
        wrote.append(recalled.records.wrote.numpy())
        gate.append(recalled.records.gate.double().numpy())
    model.train(training)
    distributions = np.concatenate(answers)
    right = distributions.argmax(axis=1) == stream.answers[stream.asked]
    return Measured(distributions, right, np.concatenate(wrote), np.concatenate(gate), stream)
