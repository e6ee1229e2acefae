"""Which branch a policy takes: the label whose recorded actions its chunk is nearest to."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from trace_memory_ros.memory.base import Readout
from trace_memory_ros.observation.encoder import pixels_of
from trace_memory_ros.policies.families import UnknownFamily, family
from trace_memory_ros.policies.module import ChunkModule
from trace_memory_ros.runtime.checkpoint import Checkpoint

Chunk = NDArray[np.float32]

NO_POLICY = "the checkpoint holds a memory without a policy"


class BranchDecision(NamedTuple):
    """label: of the nearest reference. margin: how much nearer it is than the next, in action standard deviations."""

    label: str
    margin: float


class ChunkHead:
    """A checkpoint's policy as a function of the readout, at one recorded observation; chunks are normalised."""

    def __init__(self, policy: ChunkModule) -> None:
        self.policy = policy.eval()

    @classmethod
    def of(cls, checkpoint: Checkpoint) -> ChunkHead | str:
        """The policy of a checkpoint, or the reason why there is none. Raises CheckpointError where it does not fit."""
        policy = checkpoint.config.policy
        if policy is None:
            return NO_POLICY
        try:
            module = family(policy.family).build(policy.options)
        except UnknownFamily as error:
            return str(error)
        checkpoint.load_into(module, "policy.")
        return cls(module)

    @property
    def action_names(self) -> tuple[str, ...]:
        names: tuple[str, ...] = self.policy.config.action_names
        return names

    @property
    def horizon(self) -> int:
        """H: ticks in a chunk."""
        return int(self.policy.config.chunk)

    @torch.inference_mode()
    def chunks(self, images: NDArray[np.uint8], state: NDArray[np.float64], readout: Readout) -> Chunk:
        """Chunks `(B, H, A)` at images `(C, P, P, 3)` and state `(d_s,)`, for every one of B readouts."""
        count = len(readout.vector)
        pixels = pixels_of(images)
        raw = torch.from_numpy(state.astype(np.float32))
        chunks: Chunk = self.policy.predict(pixels.expand(count, *pixels.shape), raw.expand(count, -1), readout).numpy()
        return chunks

    def normalise(self, actions: NDArray[np.float32]) -> Chunk:
        """Actions `(..., A)` in action standard deviations from the training split's mean; NaN stays NaN."""
        with torch.inference_mode():
            normal: Chunk = self.policy.normalise_actions(torch.from_numpy(actions)).numpy()
        return normal


@dataclass(frozen=True)
class BranchActions:
    """What was done from a branch on. chunk: `(H, A)` normalised actions, NaN where the recording has none."""

    episode: str
    label: str
    chunk: Chunk


def recorded_chunk(actions: NDArray[np.float32], tick: int, head: ChunkHead, names: Sequence[str]) -> Chunk | str:
    """The recorded `(T, A)` actions called `names` from `tick` on as a normalised chunk, or why there is none."""
    missing = [name for name in head.action_names if name not in names]
    if missing:
        return f"the recorded actions lack {', '.join(missing)}, which the policy commands"
    chunk = np.full((head.horizon, len(head.action_names)), np.nan, dtype=np.float32)
    order = [list(names).index(name) for name in head.action_names]
    found = actions[tick : tick + head.horizon][:, order].astype(np.float32)
    chunk[: len(found)] = head.normalise(found)
    return chunk if np.isfinite(chunk).any() else "no action was recorded from the branch on"


class ReferenceChunks:
    """The actions that belong to each label: the mean of the recorded ones of all episodes with that label.

    An episode's own actions are left out of its references wherever another episode has its label.
    """

    def __init__(self, recorded: Iterable[BranchActions]) -> None:
        self._recorded = tuple(recorded)

    @property
    def labels(self) -> tuple[str, ...]:
        """Labels that have actions, sorted."""
        return tuple(sorted({r.label for r in self._recorded}))

    def without(self, episode: str) -> Mapping[str, Chunk] | str:
        """Reference chunk `(H, A)` per label for deciding `episode`, or why there are none."""
        if len(self.labels) < 2:
            known = f"only {self.labels[0]!r}" if self.labels else "none"
            return f"decisions need recorded actions of two branch labels, the recordings have {known}"
        return {label: self._mean(label, episode) for label in self.labels}

    def _mean(self, label: str, episode: str) -> Chunk:
        chunks = [r.chunk for r in self._recorded if r.label == label and r.episode != episode]
        stacked = np.stack(chunks or [r.chunk for r in self._recorded if r.label == label])
        given = np.isfinite(stacked)
        count = given.sum(axis=0)
        total = np.where(given, stacked, 0.0).sum(axis=0)
        return np.where(count > 0, total / np.maximum(count, 1), np.nan).astype(np.float32)


def decide(chunk: Chunk, references: Mapping[str, Chunk]) -> BranchDecision:
    """The label whose reference is nearest to `chunk` `(H, A)`, by mean absolute error over what all references have.

    Two or more references. Where two are equally near, the label that sorts first.
    """
    common = np.isfinite(np.stack(list(references.values()))).all(axis=0)
    distances = sorted((chunk_distance(chunk[common], ref[common]), label) for label, ref in references.items())
    return BranchDecision(distances[0][1], distances[1][0] - distances[0][0])


def chunk_distance(one: Chunk, other: Chunk) -> float:
    """Mean absolute difference, in action standard deviations where both are normalised."""
    return float(np.abs(one - other).mean())
