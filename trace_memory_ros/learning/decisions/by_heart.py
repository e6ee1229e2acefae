"""Signs that a training learned its episodes by heart instead of what tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor

from trace_memory_ros.learning.data.augment import augment
from trace_memory_ros.learning.data.batches import BatchBuilder, EpisodeBatch, on_seen
from trace_memory_ros.learning.decisions.branch_accuracy import ChunkModel
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.memory.base import Memory

PROBED = 32
"""Training episodes looked at."""
CLEAR = 0.75
"""Decisions on other episodes that are for certain right so often say that what was learned holds."""
REMEDY = (
    "record more demonstrations, or try a memory without an address (--memory gru), an address of the newest path only "
    "(--window 8), or stronger noise over it (--noise 30), or over states (--set "
    "recipe.memory_first.state_noise_times=20)"
)


class Probe(NamedTuple):
    """What the address alone does at the first decision of training episodes.

    named: episodes whose address under noise is nearest to that of the same episode under other noise. by_path,
    by_sight: decisions that flip when the path, or what was seen, is that of an episode with another answer.
    """

    named: Accuracy
    by_path: Accuracy
    by_sight: Accuracy

    @property
    def by_heart(self) -> bool:
        """Whether most episodes are named for certain, and decisions follow that name rather than what was seen."""
        return self.named.low > 0.5 and self.by_path.right > self.by_sight.right

    def to_dict(self) -> dict[str, list[int]]:
        """Right ones and all of each, for summaries."""
        return {name: [found.right, found.count] for name, found in self._asdict().items()}


def warnings(
    train: Accuracy | None, held_out: Accuracy | None, probe: Probe | None = None, what: str = "held-out"
) -> list[str]:
    """What should make one doubt a training, and the remedy. what: where the decisions `held_out` come from."""
    found = []
    if train is not None and held_out is not None and train.low > held_out.high:
        found.append(
            f"training decisions {_counted(train)} and {what} decisions {_counted(held_out)} disagree: episodes were "
            f"learned by heart; {REMEDY}"
        )
    holds = held_out is not None and held_out.tells and held_out.low > CLEAR
    if probe is not None and probe.by_heart and not holds:
        found.append(
            f"the memory's address alone names {probe.named.right} of {probe.named.count} training episodes, and "
            f"{probe.by_path.right} of {probe.by_path.count} decisions go by the path travelled, "
            f"{probe.by_sight.right} by what was seen: right where the way travelled is the cue, else learned by "
            f"heart; {REMEDY}"
        )
    return found


@torch.no_grad()
def probe_address(model: ChunkModel, memory: Memory, builder: BatchBuilder, recipe: Recipe) -> Probe | None:
    """Look at the first decisions of training episodes; None where there is no address, or only one answer."""
    references = builder.references
    indices = [i for i in range(len(builder.data.episodes)) if builder.data.episodes[i].demo.answers][:PROBED]
    answers = [builder.data.episodes[i].demo.answers[0] for i in indices]
    if references is None or not memory.uses_signature or len(set(answers)) < 2:
        return None
    partners = torch.tensor([_unlike(answers, row) for row in range(len(indices))])
    reads = [np.array(builder.data.episodes[i].demo.decision_ticks[:1]) for i in indices]
    batch = builder.build(indices, [1.0] * len(indices), reads)

    def decided(changed: EpisodeBatch) -> list[bool | None]:
        chunks = references.relative(model(changed), changed.raw_state)[:, 0]
        return [references.right(0, answers[i], chunks[i], changed.valid[i, 0]) for i in range(len(indices))]

    before = decided(batch)

    def flipped(changed: EpisodeBatch) -> Accuracy:
        pairs = [(one, other) for one, other in zip(before, decided(changed), strict=True) if one is not None]
        return Accuracy.of(sum(one != other for one, other in pairs), len(pairs), references.labels)

    if all(verdict is None for verdict in before):
        return None
    return Probe(_named(batch, recipe), flipped(_other_path(batch, partners)), flipped(_other_sight(batch, partners)))


def _unlike(answers: Sequence[int], row: int) -> int:
    """The next row with another answer."""
    rows = (k % len(answers) for k in range(row + 1, row + len(answers)))
    return next(k for k in rows if answers[k] != answers[row])


def _named(batch: EpisodeBatch, recipe: Recipe) -> Accuracy:
    """Episodes whose address is found again under other noise."""
    one, other = (
        augment(batch, torch.Generator().manual_seed(seed), recipe.augmentation).reads.xi[:, 0] for seed in (0, 1)
    )
    nearest = torch.cdist(one, other).argmin(dim=1)
    return Accuracy.of(int((nearest == torch.arange(len(nearest))).sum()), len(nearest))


def _other_path(batch: EpisodeBatch, partners: Tensor) -> EpisodeBatch:
    """Every episode with its partner's addresses, at writes and reads."""
    rows = _of_partner(batch, partners)
    writes = batch.writes._replace(xi=batch.writes.xi[rows], delta=batch.writes.delta[rows])
    reads = batch.reads._replace(xi=batch.reads.xi[partners], delta=batch.reads.delta[partners])
    return batch._replace(writes=writes, reads=reads)


def _other_sight(batch: EpisodeBatch, partners: Tensor) -> EpisodeBatch:
    """Every episode with what its partner's memory saw, and its own present."""
    rows = _of_partner(batch, partners)
    looked = on_seen(lambda part: part[rows], batch.writes.thumbnails)
    return batch._replace(writes=batch.writes._replace(thumbnails=looked, state=batch.writes.state[rows]))


def _of_partner(batch: EpisodeBatch, partners: Tensor) -> tuple[Tensor, Tensor]:
    """Index of the partner's writes by their order; where it has fewer, its last one."""
    last = batch.mask.sum(dim=1)[partners] - 1
    return partners[:, None], torch.minimum(torch.arange(batch.mask.shape[1])[None], last[:, None])


def _counted(accuracy: Accuracy) -> str:
    return f"{accuracy.right}/{accuracy.count} ({accuracy.low:.2f} to {accuracy.high:.2f})"
