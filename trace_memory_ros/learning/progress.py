"""What a training run says about itself while it runs."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Progress:
    """One line of the training log. Accuracies are at this clock factor; step counts within the phase."""

    phase: str
    step: int
    clock_factor: float
    losses: dict[str, float]
    train_branch_accuracy: float
    held_out_branch_accuracy: float
