"""Episodes without counterfactual twins: drawn with answers balanced, judged by what others with that answer did."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from trace_memory_ros.learning.batches import BatchBuilder, EpisodeBatch
from trace_memory_ros.learning.dataset import Episode
from trace_memory_ros.learning.references import BranchReferences

PROBE_EVERY = 10
PROBES = 12
PROBED = 32
TOGETHER = 8


class ChunkModel(Protocol):
    """Predicts normalised action chunks `(B, R, H, A)` at a batch's reads."""

    def __call__(self, batch: EpisodeBatch) -> Tensor: ...


class UnpairedSet:
    """Episodes of which no two need be alike. Raises ValueError for none."""

    def __init__(self, episodes: Sequence[Episode]) -> None:
        if not episodes:
            raise ValueError("no episodes: record some, or see what is wrong with the bags listed")
        self.episodes = list(episodes)
        groups: dict[tuple[int, ...], list[int]] = {}
        for index, episode in enumerate(self.episodes):
            groups.setdefault(episode.demo.answers, []).append(index)
        self._groups = [groups[answers] for answers in sorted(groups)]

    @property
    def pairs(self) -> int:
        return max(1, len(self.episodes) // 2)

    def draw(self, rng: np.random.Generator, pairs: int) -> list[int]:
        """Up to `2 * pairs` random episodes, as many of each sequence of answers, also where some are rare."""
        count = min(2 * pairs, len(self.episodes))
        chosen: list[int] = []
        for place, group in enumerate(rng.permutation(len(self._groups))):
            members = self._groups[group]
            share = (count + place) // len(self._groups)
            chosen += rng.choice(members, share, replace=share > len(members)).tolist()
        return chosen

    def some(self, count: int) -> list[int]:
        """The first `count` episodes, one of each sequence of answers in turn."""
        longest = max(len(group) for group in self._groups)
        turns = (group[turn] for turn in range(longest) for group in self._groups if turn < len(group))
        return list(islice(turns, count))


def partings(groups: Sequence[NDArray[np.float32]], least: NDArray[np.float32]) -> NDArray[np.bool_]:
    """Ticks `(T,)` at which groups of actions `(N, T, A)`, aligned at the start, differ for certain.

    That is by more than `least` `(A,)` and twice their spread, in some action.
    """
    means = [group.mean(axis=0) for group in groups]
    spread = np.sqrt(sum(group.var(axis=0) for group in groups) / len(groups))
    apart = np.ptp(np.stack(means), axis=0)
    return np.asarray((apart > np.maximum(least, 2.0 * spread)).any(axis=1))


def label_accuracy(
    model: ChunkModel,
    builder: BatchBuilder,
    references: BranchReferences,
    clock_factor: float = 1.0,
    episodes: int = 1_000,
) -> float | None:
    """Share of right decisions, each answer counting alike; chance is one over the number of answers.

    Right is a chunk that is nearer to the mean expert chunk of the training episodes with the same answer at that
    branch than to that of those with another. None where nothing can be judged.
    """
    right: dict[tuple[int, int], list[bool]] = {}
    for indices in _alike(builder, _some(builder, episodes)):
        for branch, answer, verdict in label_verdicts(model, builder, references, indices, clock_factor):
            right.setdefault((branch, answer), []).append(verdict)
    return float(np.mean([np.mean(verdicts) for verdicts in right.values()])) if right else None


@torch.no_grad()
def label_verdicts(
    model: ChunkModel,
    builder: BatchBuilder,
    references: BranchReferences,
    indices: Sequence[int],
    clock_factor: float = 1.0,
) -> list[tuple[int, int, bool]]:
    """Branch, answer and whether it was right, of the decisions of `indices` that can be judged.

    These episodes must have equally many decisions.
    """
    reads = [np.array(builder.data.episodes[i].demo.decision_ticks) for i in indices]
    batch = builder.build(list(indices), [clock_factor] * len(indices), reads)
    predicted = references.relative(model(batch), batch.raw_state)
    found = []
    for row, index in enumerate(indices):
        for branch, answer in enumerate(builder.data.episodes[index].demo.answers):
            verdict = references.right(branch, answer, predicted[row, branch], batch.valid[row, branch])
            if verdict is not None:
                found.append((branch, answer, verdict))
    return found


@torch.no_grad()
def chunk_error(model: ChunkModel, builder: BatchBuilder, clock_factor: float = 1.0) -> float:
    """Mean absolute error of chunks in standard deviations of the actions, at ticks spread over up to 32 episodes."""
    total = count = 0.0
    for index in _some(builder, PROBED):
        ticks = builder.data.episodes[index].readable[::PROBE_EVERY]
        ticks = ticks[np.linspace(0, len(ticks) - 1, min(PROBES, len(ticks))).astype(int)]
        batch = builder.build([index], [clock_factor], [ticks])
        error = (model(batch) - builder.statistics.normalise_actions(batch.actions)).abs().mean(dim=-1)
        total += float((error * batch.valid).sum())
        count += float(batch.valid.sum())
    return total / max(count, 1.0)


def fit_references(builder: BatchBuilder, channels: Sequence[int]) -> BranchReferences:
    """What the builder's episodes did at each branch; channels `(A,)`: state channel that an action moves, or -1."""
    statistics = builder.statistics
    decisions = []
    for index, episode in enumerate(builder.data.episodes):
        ticks = np.array(episode.demo.decision_ticks, dtype=np.int64)
        if not ticks.size:
            continue
        batch = builder.build([index], [1.0], [ticks], pictures=False)
        chunks = statistics.normalise_actions(batch.actions)
        for branch, answer in enumerate(episode.demo.answers):
            decisions.append((branch, answer, chunks[0, branch], batch.valid[0, branch], batch.raw_state[0, branch]))
    mean, std = torch.from_numpy(statistics.action_mean), torch.from_numpy(statistics.action_std)
    return BranchReferences.fit(decisions, channels, mean, std)


def _some(builder: BatchBuilder, count: int) -> list[int]:
    data = builder.data
    return data.some(count) if isinstance(data, UnpairedSet) else list(range(len(data.episodes)))[:count]


def _alike(builder: BatchBuilder, indices: Sequence[int]) -> Iterator[list[int]]:
    """Batches of episodes with as many decisions, those without left out."""
    by_count: dict[int, list[int]] = {}
    for index in indices:
        decisions = len(builder.data.episodes[index].demo.decision_ticks)
        if decisions:
            by_count.setdefault(decisions, []).append(index)
    for members in by_count.values():
        yield from (members[start : start + TOGETHER] for start in range(0, len(members), TOGETHER))
