"""What a training says of itself while it runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple

from trace_memory_ros.measure.accuracy import Accuracy

MEMORY, JOINT = "memory", "joint"
"""The phases."""


class Judged(NamedTuple):
    """What a model does on episodes it was not trained on; None where there is nothing to judge, see `Progress`."""

    accuracy: Accuracy | None
    chunk_error: float | None


@dataclass(frozen=True)
class Progress:
    """One line of the training log. Accuracies are at this clock factor and delay; step counts within the phase.

    An accuracy is None where no episode has a branch to judge, and where there is no validation split.
    validation_chunk_error: mean absolute error of chunks in standard deviations of the actions; None where episodes
    have twins, which the accuracies speak for. attempt: how often the memory's training was begun, from 1. delay: in
    times of the demonstrated one. figures: learning rate, speed and what the memory does, by name. Nothing here is of
    held-out episodes.
    """

    phase: str
    step: int
    clock_factor: float
    losses: dict[str, float]
    train_branch_accuracy: Accuracy | None
    validation_branch_accuracy: Accuracy | None
    validation_chunk_error: float | None = None
    attempt: int = 1
    delay: float = 1.0
    figures: Mapping[str, float] = field(default_factory=dict)


class Reporter:
    """Receives the log of a training as it goes; this one discards it."""

    def progress(self, line: Progress) -> None:
        """A line of the log."""

    def held_out(self, found: Judged) -> None:
        """What was found on held-out episodes, once, at the end."""

    def resumed(self, phase: str, step: int, steps: int | None) -> None:
        """A phase goes on after `step` of `steps`, if these are known."""


class Reporters(Reporter):
    """Several, each told everything."""

    def __init__(self, *reporters: Reporter) -> None:
        self._reporters = reporters

    def progress(self, line: Progress) -> None:
        """To each."""
        for reporter in self._reporters:
            reporter.progress(line)

    def resumed(self, phase: str, step: int, steps: int | None) -> None:
        """To each."""
        for reporter in self._reporters:
            reporter.resumed(phase, step, steps)

    def held_out(self, found: Judged) -> None:
        """To each."""
        for reporter in self._reporters:
            reporter.held_out(found)
