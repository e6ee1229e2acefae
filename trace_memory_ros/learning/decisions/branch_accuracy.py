"""Does a model, given its memory, choose the branch its own episode calls for?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import torch
from torch import Tensor

from trace_memory_ros.learning.data.batches import NO_PICTURES, BatchBuilder, EpisodeBatch
from trace_memory_ros.learning.data.dataset import TrainingSet, UnpairedSet
from trace_memory_ros.learning.decisions.references import RelativeReferences
from trace_memory_ros.learning.report.progress import Judged
from trace_memory_ros.measure.accuracy import ANNOTATED, TWINS, Accuracy
from trace_memory_ros.observation.periods import ticks_in

PROBE_EVERY_MS = 1_000
PROBES = 12
PROBED = 32
TOGETHER = 8


class ChunkModel(Protocol):
    """Predicts normalised action chunks `(B, R, H, A)` at a batch's reads."""

    def __call__(self, batch: EpisodeBatch) -> Tensor: ...


def branch_accuracy(
    model: ChunkModel, builder: BatchBuilder, clock_factor: float = 1.0, pairs: int = 1_000
) -> Accuracy | None:
    """Share of right decisions in `pairs` scenes, see `decisions_right`; chance is one over the answers.

    Without twins: see `label_accuracy`, over as many episodes; None where no decision can be judged.
    """
    if builder.references is not None:
        return label_accuracy(model, builder, builder.references, clock_factor, 2 * pairs)
    counted = _drawn(builder.data.pairs, pairs)
    verdicts = torch.cat([decisions_right(model, builder, scene, clock_factor).flatten() for scene in counted])
    right = verdicts[~verdicts.isnan()]
    return Accuracy.of(int(right.sum()), len(right), TWINS) if len(right) else None


def judge(model: ChunkModel, builder: BatchBuilder | None, clock_factor: float = 1.0, pairs: int = 1_000) -> Judged:
    """Accuracy of a model in eval mode and, where no twins make that say it all, its chunk error."""
    if builder is None:
        return Judged(None, None)
    error = None if builder.references is None else chunk_error(model, builder, clock_factor)
    return Judged(branch_accuracy(model, builder, clock_factor, pairs), error)


@torch.no_grad()
def decisions_right(model: ChunkModel, builder: BatchBuilder, scene: int, clock_factor: float = 1.0) -> Tensor:
    """Which decisions of a scene's twins are right, `(twins, decisions)` of 0 and 1; NaN where all have one answer.

    Right is a chunk that at the decision tick is nearer to the own expert's than to that of any twin which answers
    otherwise there, by the mean absolute error in normalised action units. Predictions that are all alike give one
    right. Raises ValueError for a set without twins.
    """
    data = builder.data
    if not isinstance(data, TrainingSet):
        raise ValueError("these episodes have no counterfactual twins: judge them by `label_accuracy`")
    indices = list(data.scene(scene))
    demos = [data.episodes[i].demo for i in indices]
    batch = builder.build(indices, [clock_factor] * len(indices), [np.array(demo.decision_ticks) for demo in demos])
    predicted, target = model(batch), builder.statistics.normalise_actions(batch.actions)
    answers = torch.tensor([demo.answers for demo in demos], device=predicted.device)
    right = torch.ones(answers.shape, dtype=torch.bool, device=predicted.device)
    for turn in range(1, len(indices)):
        others, both = target.roll(turn, 0), batch.valid & batch.valid.roll(turn, 0)
        right &= nearer(predicted, target, others, both) | (answers == answers.roll(turn, 0))
    return torch.where((answers == answers[0]).all(dim=0), torch.nan, right.float())


def nearer(predicted: Tensor, own: Tensor, other: Tensor, valid: Tensor | None = None) -> Tensor:
    """Whether chunks `(..., H, A)` are nearer to `own` than to `other` by summed absolute error, `(...)` bool.

    valid: steps `(..., H)` that count; all where None.
    """
    counted = torch.ones_like(predicted[..., :1]) if valid is None else valid[..., None]
    to_own, to_other = (((predicted - chunk).abs() * counted).sum(dim=(-2, -1)) for chunk in (own, other))
    return to_own < to_other


def label_accuracy(
    model: ChunkModel,
    builder: BatchBuilder,
    references: RelativeReferences,
    clock_factor: float = 1.0,
    episodes: int = 1_000,
) -> Accuracy | None:
    """Share of right decisions, each answer counting alike; chance is one over the number of answers.

    Right is a chunk that is nearer to the mean expert chunk of the training episodes with the same answer at that
    branch than to that of those with another. None where nothing can be judged.
    """
    found: dict[tuple[int, ...], tuple[int, int]] = {}
    for indices in _alike(builder, _some(builder, episodes)):
        for branch, answer, verdict in label_verdicts(model, builder, references, indices, clock_factor):
            right, count = found.get((branch, answer), (0, 0))
            found[branch, answer] = right + verdict, count + 1
    return Accuracy(found, references.labels) if found else None


@torch.no_grad()
def label_verdicts(
    model: ChunkModel,
    builder: BatchBuilder,
    references: RelativeReferences,
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
        episode = builder.data.episodes[index]
        ticks = episode.readable[:: ticks_in(PROBE_EVERY_MS, episode.period_ms)]
        ticks = ticks[np.linspace(0, len(ticks) - 1, min(PROBES, len(ticks))).astype(int)]
        batch = builder.build([index], [clock_factor], [ticks])
        error = (model(batch) - builder.statistics.normalise_actions(batch.actions)).abs().mean(dim=-1)
        total += float((error * batch.valid).sum())
        count += float(batch.valid.sum())
    return total / max(count, 1.0)


def fit_references(builder: BatchBuilder, labels: str = ANNOTATED) -> RelativeReferences:
    """What the builder's episodes did at each branch; labels: where their answers come from."""
    statistics = builder.statistics
    decisions = []
    for index, episode in enumerate(builder.data.episodes):
        ticks = np.array(episode.demo.decision_ticks, dtype=np.int64)
        if not ticks.size:
            continue
        batch = builder.build([index], [1.0], [ticks], NO_PICTURES)
        chunks = statistics.normalise_actions(batch.actions)
        for branch, answer in enumerate(episode.demo.answers):
            decisions.append((branch, answer, chunks[0, branch], batch.valid[0, branch], batch.raw_state[0, branch]))
    mean, std = torch.from_numpy(statistics.action_mean), torch.from_numpy(statistics.action_std)
    return RelativeReferences.fit(decisions, builder.moved, mean, std, labels)


def _drawn(of: int, count: int) -> list[int]:
    """At most `count` of the numbers below `of`, drawn once for all: the first may be lessons of one scene."""
    drawn: list[int] = np.random.default_rng(of).permutation(of)[:count].tolist()
    return sorted(drawn)


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
