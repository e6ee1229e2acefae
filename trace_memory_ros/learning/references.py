"""What the training episodes did at their branches: what a decision is judged by where there is no twin."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor


@dataclass(frozen=True)
class BranchReferences:
    """Mean expert chunk at each branch for each answer.

    chunks: for the episodes' first, second, ... branch, answer -> chunk `(H, A)` as `relative` makes it, and the steps
    `(H,)` bool that it has. channels `(A,)`: state channel that an action moves, -1 for none. state_mean, state_std
    `(A,)`: that channel's value in normalised action units is `(state - state_mean) / state_std`.
    """

    chunks: Sequence[Mapping[int, tuple[Tensor, Tensor]]]
    channels: Tensor
    action_mean: Tensor
    action_std: Tensor

    def relative(self, chunks: Tensor, raw_state: Tensor) -> Tensor:
        """Normalised chunks `(..., H, A)` as seen from the raw state `(..., d_s)` at their first tick.

        Demonstrations reach a branch from slightly different poses, and the targets that follow start from there.
        """
        start = (raw_state[..., self.channels.clamp(min=0)] - self.action_mean) / self.action_std
        return chunks - (start * (self.channels >= 0))[..., None, :]

    def right(self, branch: int, answer: int, chunk: Tensor, valid: Tensor) -> bool | None:
        """Whether a relative `chunk` `(H, A)` is nearer to the own answer's mean than to every other answer's.

        By the mean absolute error over the `valid` `(H,)` steps that both have. None where training episodes know of
        no such branch, or of one answer only.
        """
        known = self.chunks[branch] if branch < len(self.chunks) else {}
        if answer not in known or len(known) < 2:
            return None
        errors = {other: _error(chunk, valid, *reference) for other, reference in known.items()}
        return all(errors[answer] < error for other, error in errors.items() if other != answer)

    @classmethod
    def fit(
        cls,
        decisions: Sequence[tuple[int, int, Tensor, Tensor, Tensor]],
        channels: Sequence[int],
        action_mean: Tensor,
        action_std: Tensor,
    ) -> BranchReferences:
        """References from training decisions: branch, answer, normalised chunk `(H, A)`, valid `(H,)`, raw state."""
        empty = cls((), torch.tensor(channels), action_mean, action_std)
        found: list[dict[int, list[tuple[Tensor, Tensor]]]] = []
        for branch, answer, chunk, valid, state in decisions:
            while len(found) <= branch:
                found.append({})
            found[branch].setdefault(answer, []).append((empty.relative(chunk, state), valid))
        chunks = [{answer: _mean(samples) for answer, samples in answers.items()} for answers in found]
        return cls(chunks, empty.channels, action_mean, action_std)


def _mean(samples: Sequence[tuple[Tensor, Tensor]]) -> tuple[Tensor, Tensor]:
    chunks, valid = torch.stack([chunk for chunk, _ in samples]), torch.stack([valid for _, valid in samples])
    count = valid.sum(dim=0)
    total = torch.where(valid[..., None], chunks, torch.zeros(())).sum(dim=0)
    return total / count.clamp(min=1)[:, None], count > 0


def _error(chunk: Tensor, valid: Tensor, reference: Tensor, known: Tensor) -> float:
    both = (valid & known)[:, None]
    return float(((chunk - reference).abs() * both).sum() / both.sum().clamp(min=1))
