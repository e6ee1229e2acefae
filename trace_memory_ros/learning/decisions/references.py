"""What the training episodes did at their branches: what a decision is judged by where there is no twin."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from trace_memory_ros.measure.accuracy import ANNOTATED
from trace_memory_ros.policies.references import BranchActions, BranchReferences, decide


@dataclass(frozen=True)
class RelativeReferences:
    """`references` of chunks as `relative` makes them; a label is an answer's number.

    channels `(A,)`: state channel that an action moves, -1 for none. action_mean, action_std `(A,)`: that channel's
    value in normalised action units is `(state - action_mean) / action_std`. labels: where the answers come from.
    """

    references: BranchReferences
    channels: Tensor
    action_mean: Tensor
    action_std: Tensor
    labels: str = ANNOTATED

    def relative(self, chunks: Tensor, raw_state: Tensor) -> Tensor:
        """Normalised chunks `(..., H, A)` as seen from the raw state `(..., d_s)` at their first tick.

        Demonstrations reach a branch from slightly different poses, and the targets that follow start from there.
        """
        start = (raw_state[..., self.channels.clamp(min=0)] - self.action_mean) / self.action_std
        return chunks - (start * (self.channels >= 0))[..., None, :]

    def right(self, branch: int, answer: int, chunk: Tensor, valid: Tensor) -> bool | None:
        """Whether a relative `chunk` `(H, A)` is nearer to the own answer's mean than to every other answer's.

        valid `(H,)`: steps of the chunk that count. None where training episodes know of no such branch, or of one
        answer only.
        """
        known = self.references.at(branch)
        if str(answer) not in known or len(known) < 2:
            return None
        decision = decide(_with_gaps(chunk, valid), known)
        return decision.label == str(answer) and decision.margin > 0.0

    @classmethod
    def fit(
        cls,
        decisions: Sequence[tuple[int, int, Tensor, Tensor, Tensor]],
        channels: Sequence[int],
        action_mean: Tensor,
        action_std: Tensor,
        labels: str = ANNOTATED,
    ) -> RelativeReferences:
        """References from training decisions: branch, answer, normalised chunk `(H, A)`, valid `(H,)`, raw state."""
        empty = cls(BranchReferences(()), torch.tensor(channels), action_mean, action_std)
        recorded = [
            BranchActions(str(i), str(answer), _with_gaps(empty.relative(chunk, state), valid), branch)
            for i, (branch, answer, chunk, valid, state) in enumerate(decisions)
        ]
        return cls(BranchReferences(recorded), empty.channels, action_mean, action_std, labels)


def _with_gaps(chunk: Tensor, valid: Tensor) -> np.ndarray:
    return torch.where(valid[:, None], chunk, torch.nan).cpu().numpy()
