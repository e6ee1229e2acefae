"""How a memory learns to hold several cues in order: few first, and no order of left and right by heart."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
import torch
from torch import Tensor

from studies.memory_sequence.recombine import Twins, recombine
from trace_memory_ros.arm.sim.events import MAX_CUES
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import TrainingSet
from trace_memory_ros.learning.memory_first import Stage, learn_memory
from trace_memory_ros.learning.recipe import MemoryFirst, ReadShares, Recipe
from trace_memory_ros.learning.report.progress import Progress

RECIPE = replace(
    Recipe(),
    memory_first=MemoryFirst(
        reads=10, shares=ReadShares(near_branch=1.0), check_steps=50, learning_rate=3e-3, attempts=1
    ),
)
"""The memory-first phase alone: what a memory holds is asked of an auxiliary head, without images or a policy."""


@dataclass(frozen=True)
class Lesson:
    """Episodes of up to `cues` cues. steps: at most. rate: share of the learning rate. delay: times that shown."""

    cues: int
    clock_factor: float
    steps: int
    rate: float = 1.0
    delay: float = 1.0


LESSONS = (
    Lesson(1, 16.0, 300),
    Lesson(2, 16.0, 150),
    Lesson(3, 16.0, 150),
    Lesson(4, 16.0, 200),
    Lesson(MAX_CUES, 8.0, 600),
    Lesson(MAX_CUES, 2.0, 300),
    Lesson(MAX_CUES, 1.0, 300),
    Lesson(MAX_CUES, 1.0, 150, delay=4.0),
    Lesson(MAX_CUES, 1.0, 150, delay=16.0),
    Lesson(MAX_CUES, 1.0, 150, rate=0.25, delay=16.0),
)
"""All cues at once are not discovered; one is, and with it known the next."""
HEAD_LESSONS = (Lesson(MAX_CUES, 1.0, 200),)
"""Without a memory there is only the head's moving to learn."""
VARIANTS = {1: 2, 2: 4, 3: 8, 4: 24, 5: 24, 6: 48}
"""Recombinations of a pair, by cues: long sequences are rare among the demonstrations, and have more orders."""
DECISIVE = 0.2
"""Action units: joints whose targets differ so much between twins at a decision show the decision."""
DECISIVE_WEIGHT = 8.0


def recombined(pairs: list[Twins]) -> list[Twins]:
    """The training pairs, each in several new orders of left and right, always the same ones."""
    rng = np.random.default_rng(0)
    out = [recombine(twins, rng) for twins in pairs for _ in range(VARIANTS[len(twins[0].answers)])]
    rng.shuffle(out)
    return out


def train(
    agent: Agent,
    training: BatchBuilder,
    validation: BatchBuilder,
    recipe: Recipe,
    lessons: tuple[Lesson, ...],
    seed: int,
    report: Callable[[Progress], None],
) -> AuxiliaryHead:
    """Train encoder and memory in place, lesson by lesson; returns them under their head."""
    stages = [
        Stage(
            up_to(training, part.cues).delayed(part.delay),
            up_to(validation, part.cues).delayed(part.delay),
            part.clock_factor,
            part.steps,
            part.rate,
        )
        for part in lessons
    ]
    head = partial(WeightedAuxiliaryHead, weights=joint_weights(training))
    return learn_memory(agent, training, validation, recipe, seed, report, stages, head)


def up_to(builder: BatchBuilder, cues: int) -> BatchBuilder:
    """The pairs with at most so many decisions."""
    twins = zip(builder.data.episodes[::2], builder.data.episodes[1::2], strict=True)
    kept = [episode for pair in twins for episode in pair if len(pair[0].demo.decision_ticks) <= cues]
    return replace(builder, data=TrainingSet(kept))


def joint_weights(builder: BatchBuilder) -> Tensor:
    """Weight `(A,)` of each action in the loss, of mean 1: more for those that differ between twins at decisions."""
    gaps = []
    for one, other in zip(builder.data.episodes[::2], builder.data.episodes[1::2], strict=True):
        for mine, theirs in zip(one.demo.decision_ticks, other.demo.decision_ticks, strict=True):
            length = min(builder.chunk, one.demo.ticks - mine, other.demo.ticks - theirs)
            apart = one.demo.actions[mine : mine + length] - other.demo.actions[theirs : theirs + length]
            gaps.append(np.abs(apart / builder.statistics.action_std).mean(axis=0))
    weights = torch.where(torch.from_numpy(np.mean(gaps, axis=0)) > DECISIVE, DECISIVE_WEIGHT, 1.0)
    return weights / weights.mean()


class WeightedAuxiliaryHead(AuxiliaryHead):
    """A `AuxiliaryHead` whose loss counts each action by its weight `(A,)`."""

    def __init__(self, agent: Agent, weights: Tensor) -> None:
        super().__init__(agent)
        self.weights = weights

    def chunk_loss(self, predicted: Tensor, target: Tensor, valid: Tensor) -> Tensor:
        """Weighted L1."""
        counts = valid[..., None] * self.weights
        return ((predicted - target).abs() * counts).sum() / counts.sum()
