"""AIS readouts of a trained symbol model: diagnostics of the visited streams, never a guarantee."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from studies.recall import information_state as ais
from studies.recall.learning.measure import measure
from studies.recall.learning.model import SymbolModel
from studies.recall.streams.stream import SymbolStream
from studies.recall.tasks.aura_variants import TrainedModel

Array = NDArray[np.float64]
DISCOUNT = 0.9
"""With rewards in 0..1 the trivial span is 10, as in the paper."""


def readouts(cell: TrainedModel) -> dict[str, Any]:
    """ε (policy against the right answer), δ (against its slow teacher), Δ* of a linear value head, and the bound.

    The reward is 1 at a step that is answered right. The value head is fitted to discounted rewards on one half of the
    streams, as is the prediction of the next step's value; residuals are measured on the other half.
    """
    stream = cell.measured.stream
    answers, teacher = cell.measured.answers, measure(cell.trained.teacher, stream).answers
    oracle = np.eye(answers.shape[1])[stream.answers[stream.asked]]
    epsilon, delta = ais.epsilon(answers, oracle), ais.delta(answers, teacher)
    values, reached, predicted = _values(cell.model, stream, cell.measured.right)
    residual = ais.value_residual(reached, predicted)
    bound = ais.value_loss(epsilon, delta, residual, DISCOUNT)
    return {
        "discount": DISCOUNT,
        "epsilon": asdict(epsilon),
        "delta_tv": asdict(delta),
        "delta_w1": asdict(ais.delta(answers, teacher, "w1")),
        "value_residual": asdict(residual),
        "value_constant": ais.value_constant(values),
        "bound": {**asdict(bound), "vacuous": bound.vacuous},
    }


def of_largest(found: dict[str, Any]) -> dict[str, Any]:
    """The bound of `readouts` from the largest errors visited, which is nearer to what the theorem asks for."""
    trivial, largest = found["bound"]["trivial"], {name: found[name]["largest"] for name in ("epsilon", "delta_tv")}
    bound = ais.value_loss_bound(largest["epsilon"], 0.5 * trivial * largest["delta_tv"], found["discount"])
    return {**found, "bound_of_largest": {"by_constant": bound, "trivial": trivial, "vacuous": bound >= trivial}}


def _values(model: SymbolModel, stream: SymbolStream, right: NDArray[np.bool_]) -> tuple[Array, Array, Array]:
    """On the second half of the streams: values of all steps, and the reached and the predicted one after each step."""
    rewards, returns = np.zeros(stream.asked.shape), np.zeros(stream.asked.shape)
    rewards[stream.asked] = right
    for t in range(stream.asked.shape[1] - 2, -1, -1):
        returns[:, t] = rewards[:, t + 1] + DISCOUNT * returns[:, t + 1]
    features = _vectors(model, stream)
    half = len(features) // 2
    value = features @ _fit(features[:half], returns[:half])
    following = features[:, :-1] @ _fit(features[:half, :-1], value[:half, 1:])
    return value[half:].ravel(), value[half:, 1:].ravel(), following[half:].ravel()


@torch.no_grad()
def _vectors(model: SymbolModel, stream: SymbolStream) -> Array:
    """What is read at every step, and a constant: `(B, T, d + 1)`."""
    model.eval()
    parts = []
    for start in range(0, len(stream.symbols), 64):
        symbols = torch.from_numpy(stream.symbols[start : start + 64])
        read = model(symbols, torch.ones(symbols.shape[:2], dtype=torch.bool)).vectors
        parts.append(read.reshape(*symbols.shape[:2], -1).double().numpy())
    vectors = np.concatenate(parts)
    return np.concatenate((vectors, np.ones((*vectors.shape[:2], 1))), axis=2)


def _fit(features: Array, targets: Array) -> Array:
    """Least squares with a little ridge: weights `(d,)` from `(B, T, d)` to `(B, T)`."""
    rows = features.reshape(-1, features.shape[-1])
    gram = rows.T @ rows + 1e-3 * len(rows) * np.eye(rows.shape[1])
    return np.asarray(np.linalg.solve(gram, rows.T @ targets.ravel()))
