"""What a training says of itself while it runs."""

from __future__ import annotations

from dataclasses import dataclass

MEMORY, JOINT = "memory", "joint"
"""The phases."""


@dataclass(frozen=True)
class Progress:
    """One line of the training log. Accuracies are at this clock factor; step counts within the phase.

    An accuracy is None where no episode has a branch to judge. held_out_chunk_error: mean absolute error of chunks in
    standard deviations of the actions; None where episodes have twins, which the accuracies speak for. attempt: how
    often the memory's training was begun, from 1.
    """

    phase: str
    step: int
    clock_factor: float
    losses: dict[str, float]
    train_branch_accuracy: float | None
    held_out_branch_accuracy: float | None
    held_out_chunk_error: float | None = None
    attempt: int = 1


class Reporter:
    """Receives the log of a training as it goes; this one discards it."""

    def progress(self, line: Progress) -> None:
        """A line of the log."""

    def resumed(self, step: int, steps: int) -> None:
        """The joint phase goes on after `step` of `steps`."""
