"""Which branch a chunk takes: that whose recorded actions it is nearest to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Chunk = NDArray[np.float32]
"""Normalised actions `(H, A)`, NaN where there is none."""


class BranchDecision(NamedTuple):
    """label: of the nearest reference. margin: how much nearer it is than the next, in action standard deviations."""

    label: str
    margin: float


@dataclass(frozen=True)
class BranchActions:
    """What was done from a branch on. place: which of its episode's branches, where decisions are told apart by it."""

    episode: str
    label: str
    chunk: Chunk
    place: int = 0


class BranchReferences:
    """The actions that belong to each label of a branch: the mean of those recorded, over the steps that there are."""

    def __init__(self, recorded: Iterable[BranchActions]) -> None:
        self._recorded: dict[int, list[BranchActions]] = {}
        for actions in recorded:
            self._recorded.setdefault(actions.place, []).append(actions)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that have actions, sorted."""
        return tuple(sorted({r.label for recorded in self._recorded.values() for r in recorded}))

    def at(self, place: int = 0) -> dict[str, Chunk]:
        """Reference chunk `(H, A)` per label at the episodes' first, second, ... branch."""
        return self._means(place, None)

    def without(self, episode: str, place: int = 0) -> Mapping[str, Chunk] | str:
        """Reference chunk `(H, A)` per label for deciding `episode`, or why there are none.

        The episode's own actions are left out wherever another has its label.
        """
        means = self._means(place, episode)
        if len(means) < 2:
            known = f"only {next(iter(means))!r}" if means else "none"
            there = f" at an episode's branch {place + 1}" if place else ""
            return f"decisions need recorded actions of two branch labels, the recordings have {known}{there}"
        return means

    def _means(self, place: int, left_out: str | None) -> dict[str, Chunk]:
        by_label: dict[str, list[BranchActions]] = {}
        for actions in self._recorded.get(place, ()):
            by_label.setdefault(actions.label, []).append(actions)
        return {label: _mean(by_label[label], left_out) for label in sorted(by_label)}


def _mean(recorded: list[BranchActions], left_out: str | None) -> Chunk:
    stacked = np.stack([r.chunk for r in recorded if r.episode != left_out] or [r.chunk for r in recorded])
    given = np.isfinite(stacked)
    count = given.sum(axis=0)
    total = np.where(given, stacked, 0.0).sum(axis=0)
    return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)


def decide(chunk: Chunk, references: Mapping[str, Chunk]) -> BranchDecision:
    """The label whose reference is nearest to `chunk` `(H, A)`, by mean absolute error over the steps that all have.

    Two or more references. Where two are equally near, the label that sorts first, by a margin of 0.
    """
    common = np.isfinite(np.stack([chunk, *references.values()])).all(axis=0)
    distances = sorted((chunk_distance(chunk[common], ref[common]), label) for label, ref in references.items())
    return BranchDecision(distances[0][1], distances[1][0] - distances[0][0])


def chunk_distance(one: Chunk, other: Chunk) -> float:
    """Mean absolute difference, in action standard deviations where both are normalised."""
    return float(np.abs(one - other).mean())
