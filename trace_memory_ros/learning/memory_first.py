"""The first training phase: the memory learns what to keep, under a curriculum on the delay."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import torch

from trace_memory_ros.learning.agent import Agent, Foreteller
from trace_memory_ros.learning.batches import BatchBuilder
from trace_memory_ros.learning.branch_accuracy import branch_accuracy
from trace_memory_ros.learning.optimise import descend, draw_batch
from trace_memory_ros.learning.progress import Progress
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.unpaired import chunk_error

PHASE = "memory"


def learn_memory(
    agent: Agent,
    training: BatchBuilder,
    held_out: BatchBuilder,
    recipe: Recipe,
    seed: int,
    report: Callable[[Progress], None],
) -> Foreteller:
    """Train encoder and memory in place until the last clock factor is mastered, or its steps are spent.

    Returns them under the head they were trained with.

    A full-length delay is not discovered from scratch: the cue's gradient has to survive every write between. At a
    coarse clock few writes lie between, and what was learned there carries over to the next finer one.
    """
    first = recipe.memory_first
    torch.manual_seed(seed)
    model = Foreteller(agent)
    parameters = [*agent.encoder.parameters(), *agent.memory.parameters(), *model.head.parameters()]
    optimiser = torch.optim.AdamW(parameters, lr=first.learning_rate, weight_decay=recipe.weight_decay)
    total = 0
    for stage, factor in enumerate(first.clock_factors):
        last = stage == len(first.clock_factors) - 1
        mastered_at = None
        for step in range(1, first.stage_steps + 1):
            agent.memory.anneal((stage + step / first.stage_steps) / len(first.clock_factors))
            rng = np.random.default_rng([seed, 1, stage, step])
            batch = draw_batch(
                training, recipe, rng, factor, first.batch_pairs, first.reads, first.shares, pictures=False
            )
            losses = descend(model, optimiser, batch, recipe, total)
            total += 1
            if step % first.check_steps == 0:
                model.eval()
                train = branch_accuracy(model, training, factor, first.check_pairs)
                held = branch_accuracy(model, held_out, factor, first.check_pairs)
                error = None if held_out.references is None else chunk_error(model, held_out, factor)
                model.train()
                report(Progress(PHASE, total, factor, losses, train, held, error))
                mastered = train is not None and train >= first.enough
                mastered_at = mastered_at or (step if mastered else None)
                if mastered_at and (not last or step >= mastered_at + first.settle_steps):
                    break
    return model
