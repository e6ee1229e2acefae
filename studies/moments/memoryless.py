"""Where a policy without memory is unsure: its error, and the bimodality of a mixture that it predicts."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from trace_memory_ros.moments.recorded import Recorded, Space
from trace_memory_ros.observation.periods import ticks_in

FOLDS, STEPS, BATCH, HIDDEN = 3, 600, 512, 128
ABOVE = 8.0
"""Median absolute deviations above the median of all ticks at which a peak counts."""
APART_MS, SMOOTH_MS = 1_500, 300
Scores = list[NDArray[np.float64]]


def errors(episodes: Sequence[Recorded], *least: NDArray[np.float64]) -> Scores:
    """Distance `(T,)` between the way on and that which a regressor of other episodes' presents predicts."""

    def loss(out: Tensor, way: Tensor) -> Tensor:
        return (out - way).abs().sum(dim=-1)

    return _crossfitted(episodes, least, 1, loss, loss)


def bimodality(episodes: Sequence[Recorded], *least: NDArray[np.float64]) -> Scores:
    """How far apart the two parts of a predicted mixture lie, weighed by the rarer one's share, `(T,)`."""

    def parts(out: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        size = (out.shape[-1] - 3) // 2
        return out[..., : 2 * size].unflatten(-1, (2, size)), out[..., -3:-1].log_softmax(-1), out[..., -1:]

    def loss(out: Tensor, way: Tensor) -> Tensor:
        means, weights, width = parts(out)
        apart = ((means - way[..., None, :]) ** 2).sum(dim=-1)
        likely = weights - 0.5 * apart * torch.exp(-2 * width) - way.shape[-1] * width
        return -likely.logsumexp(dim=-1)

    def score(out: Tensor, _: Tensor) -> Tensor:
        means, weights, width = parts(out)
        apart = (means[..., 0, :] - means[..., 1, :]).norm(dim=-1)
        return apart * torch.exp(-width[..., 0]) * 2.0 * weights.exp().min(dim=-1).values

    return _crossfitted(episodes, least, 2, loss, score)


def _crossfitted(
    episodes: Sequence[Recorded],
    least: Sequence[NDArray[np.float64]],
    parts: int,
    loss: Callable[[Tensor, Tensor], Tensor],
    score: Callable[[Tensor, Tensor], Tensor],
) -> Scores:
    """Scores of every episode by a network that was trained on those of other folds."""
    space = Space.fit(episodes, *least)
    presents = [torch.from_numpy(space.presents(episode)) for episode in episodes]
    ways = [torch.from_numpy(np.ascontiguousarray(space.ways(episode)[0], np.float32)) for episode in episodes]
    folds = np.random.default_rng(0).permutation(len(episodes)) % FOLDS
    out: Scores = [np.zeros(0)] * len(episodes)
    for fold in range(FOLDS):
        kept, held = np.flatnonzero(folds != fold), np.flatnonzero(folds == fold)
        torch.manual_seed(fold)
        seen, true = torch.cat([presents[i] for i in kept]), torch.cat([ways[i] for i in kept])
        size = true.shape[1] * parts + (3 if parts > 1 else 0)
        scale = seen.std(dim=0).clamp(min=1e-3)
        net = nn.Sequential(
            nn.Linear(seen.shape[1], HIDDEN), nn.GELU(), nn.Linear(HIDDEN, HIDDEN), nn.GELU(), nn.Linear(HIDDEN, size)
        )
        optimiser = torch.optim.AdamW(net.parameters(), lr=2e-3, weight_decay=1e-2)
        for _ in range(STEPS):
            rows = torch.randint(len(seen), (BATCH,))
            total = loss(net(seen[rows] / scale), true[rows]).mean()
            optimiser.zero_grad()
            total.backward()
            optimiser.step()
        with torch.no_grad():
            for i in held:
                out[i] = score(net(presents[i] / scale), ways[i]).double().numpy()
    return out


def peaks(scores: Scores, period_ms: int) -> list[list[int]]:
    """Ticks of the peaks of each episode that stand out among all ticks."""
    width, apart = ticks_in(SMOOTH_MS, period_ms), ticks_in(APART_MS, period_ms)
    smooth = [np.convolve(np.pad(row, width // 2, mode="edge"), np.ones(width) / width, "same") for row in scores]
    smooth = [row[width // 2 : len(row) - width // 2] for row in smooth]
    every = np.concatenate(smooth)
    middle = float(np.median(every))
    least = middle + ABOVE * float(np.median(np.abs(every - middle)))
    return [_peaks_of(row.copy(), least, apart) for row in smooth]


def _peaks_of(row: NDArray[np.float64], least: float, apart: int) -> list[int]:
    found = []
    while row.max() > least:
        tick = int(row.argmax())
        found.append(tick)
        row[max(0, tick - apart) : tick + apart + 1] = -np.inf
    return sorted(found)
