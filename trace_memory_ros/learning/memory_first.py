"""The first training phase: the memory learns what to keep, under a curriculum on the delay."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch

from trace_memory_ros.learning.agent import Agent, AuxiliaryHead
from trace_memory_ros.learning.batches import BatchBuilder
from trace_memory_ros.learning.branch_accuracy import branch_accuracy, judge
from trace_memory_ros.learning.build import reinitialise
from trace_memory_ros.learning.optimise import descend, draw_batch
from trace_memory_ros.learning.progress import MEMORY, Progress
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe

ATTEMPT_SEEDS = 1_000_003
"""Between the seeds of two attempts: further than training seeds lie apart."""


@dataclass(frozen=True)
class Stage:
    """What is learned from, at how coarse a clock, for how many steps at most, at what share of the learning rate."""

    training: BatchBuilder
    validation: BatchBuilder | None
    clock_factor: float
    steps: int
    rate: float = 1.0


def delay_stages(training: BatchBuilder, validation: BatchBuilder | None, first: MemoryFirst) -> list[Stage]:
    """The curriculum on the delay alone: all episodes at each clock factor in turn."""
    return [Stage(training, validation, factor, first.stage_steps) for factor in first.clock_factors]


def learn_memory(
    agent: Agent,
    training: BatchBuilder,
    validation: BatchBuilder | None,
    recipe: Recipe,
    seed: int,
    report: Callable[[Progress], None],
    stages: Sequence[Stage] = (),
    head: Callable[[Agent], AuxiliaryHead] = AuxiliaryHead,
) -> AuxiliaryHead:
    """Train encoder and memory in place until the last stage is mastered, or its steps are spent.

    stages: by default `delay_stages`. Returns encoder and memory under the `head` they were trained with.

    A full-length delay is not discovered from scratch: the cue's gradient has to survive every write between. At a
    coarse clock few writes lie between, and what was learned there carries over to the next finer one. Some trainings
    never discover the cue, or learn episodes by heart; validation decisions show it, and they start again from
    other initial weights. Without a validation split training decisions show the first of these.
    """
    stages = stages or delay_stages(training, validation, recipe.memory_first)
    for attempt in range(1, recipe.memory_first.attempts + 1):
        drawn = seed + ATTEMPT_SEEDS * (attempt - 1)
        torch.manual_seed(drawn)
        if attempt > 1:
            reinitialise(agent, training)
        run = _Attempt(head(agent), recipe, drawn, report, stages, attempt)
        for number in range(len(stages)):
            run.learn(number)
        if run.learned:
            break
    return run.model


class _Attempt:
    """Training from one set of initial weights. total: steps so far, of all stages.

    learned: whether enough validation decisions are right, or training decisions where there are no others.
    """

    def __init__(
        self,
        model: AuxiliaryHead,
        recipe: Recipe,
        seed: int,
        report: Callable[[Progress], None],
        stages: Sequence[Stage],
        attempt: int,
    ) -> None:
        self.model, self.recipe, self.seed, self.report = model, recipe, seed, report
        self.stages, self.attempt, self.total, self.learned = stages, attempt, 0, True
        agent, first = model.agent, recipe.memory_first
        parameters = [*agent.encoder.parameters(), *agent.memory.parameters(), *model.head.parameters()]
        self.optimiser = torch.optim.AdamW(parameters, lr=first.learning_rate, weight_decay=recipe.weight_decay)

    def learn(self, number: int) -> None:
        """One stage, until it is mastered or its steps are spent; the last one settles for some steps more."""
        first, stage = self.recipe.memory_first, self.stages[number]
        settle = first.settle_steps if number == len(self.stages) - 1 else 0
        mastered_at = None
        for group in self.optimiser.param_groups:
            group["lr"] = first.learning_rate * stage.rate
        for step in range(1, stage.steps + 1):
            losses = self._step(number, step)
            if step % first.check_steps == 0:
                progress = self._check(stage, losses)
                train = progress.train_branch_accuracy
                mastered = train is not None and train.value >= first.enough
                mastered_at = mastered_at or (step if mastered else None)
                if mastered_at and step >= mastered_at + settle:
                    break

    def _step(self, number: int, step: int) -> dict[str, float]:
        first, stage = self.recipe.memory_first, self.stages[number]
        self.model.agent.memory.anneal((number + step / stage.steps) / len(self.stages))
        rng = np.random.default_rng([self.seed, 1, number, step])
        batch = draw_batch(
            stage.training,
            self.recipe,
            rng,
            stage.clock_factor,
            first.batch_pairs,
            first.reads,
            first.shares,
            pictures=False,
        )
        losses = descend(self.model, self.optimiser, batch, self.recipe, self.total)
        self.total += 1
        return losses

    def _check(self, stage: Stage, losses: dict[str, float]) -> Progress:
        model, factor, first = self.model, stage.clock_factor, self.recipe.memory_first
        model.eval()
        train = branch_accuracy(model, stage.training, factor, first.check_pairs)
        found = judge(model, stage.validation, factor, first.check_pairs)
        model.train()
        decided = found.accuracy or train
        self.learned = decided is None or decided.value >= first.least
        progress = Progress(MEMORY, self.total, factor, losses, train, *found, self.attempt)
        self.report(progress)
        return progress
