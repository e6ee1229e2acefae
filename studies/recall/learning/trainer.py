"""Train a symbol model on fresh streams, and keep a slowly following teacher beside it."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor, nn

from studies.recall.learning.model import SymbolModel
from studies.recall.streams.stream import SymbolTask
from trace_memory_ros.learning.engine.optimise import clip_and_step


@dataclass(frozen=True)
class RecallRecipe:
    """Optimiser and length of a run; the defaults are table 5 of the AURA paper.

    cool_down: share of the steps, at the end, over which the learning rate falls linearly to a tenth.
    teacher_decay: of the exponential moving average of all weights.
    """

    steps: int = 4000
    batch: int = 64
    learning_rate: float = 3e-3
    gradient_clip: float = 1.0
    cool_down: float = 0.0
    teacher_decay: float = 0.95

    def __post_init__(self) -> None:
        if self.steps < 1 or self.batch < 1:
            raise ValueError(f"RecallRecipe: steps = {self.steps}, batch = {self.batch}: must be at least 1")
        if not 0 <= self.cool_down <= 1:
            raise ValueError(f"RecallRecipe.cool_down = {self.cool_down}: a share lies between 0 and 1")

    def rate_at(self, step: int) -> float:
        """Learning rate of step 0..steps - 1, as a share of `learning_rate`."""
        left = (self.steps - step) / max(self.cool_down * self.steps, 1.0)
        return 0.1 + 0.9 * min(left, 1.0)


class Progress(NamedTuple):
    """losses: by name, of one step. success: share of the asked steps of its batch answered right."""

    step: int
    losses: dict[str, float]
    success: float
    write_rate: float


class Trained(NamedTuple):
    """teacher: the moving average of the weights. progress: every `report_every` steps and at the end.

    parameters: how many numbers the losses reached.
    """

    teacher: SymbolModel
    progress: list[Progress]
    parameters: int


def train(
    model: SymbolModel,
    task: SymbolTask,
    recipe: RecallRecipe,
    seed: int,
    report: Callable[[Progress], None] = lambda _: None,
    report_every: int = 100,
) -> Trained:
    """Train `model` in place: masked cross-entropy where asked, plus whatever the memory adds.

    `seed` decides the streams and the noise inside the memory; seed torch before building the model.
    """
    rng = np.random.default_rng([seed, 0])
    torch.manual_seed(seed)
    optimiser = torch.optim.AdamW(model.parameters(), lr=recipe.learning_rate)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, recipe.rate_at)
    teacher = deepcopy(model).requires_grad_(False)
    progress = []
    for step in range(1, recipe.steps + 1):
        model.memory.anneal(step / recipe.steps)
        losses, success, write_rate = _losses(model, task, rng, recipe.batch)
        optimiser.zero_grad(set_to_none=True)
        torch.stack(tuple(losses.values())).sum().backward()
        clip_and_step(optimiser, recipe.gradient_clip)
        schedule.step()
        follow(teacher, model, recipe.teacher_decay)
        if step % report_every == 0 or step == recipe.steps:
            values = {name: float(loss.detach()) for name, loss in losses.items()}
            progress.append(Progress(step, values, float(success), float(write_rate)))
            report(progress[-1])
    return Trained(teacher, progress, sum(p.numel() for p in model.parameters() if p.grad is not None))


def _losses(
    model: SymbolModel, task: SymbolTask, rng: np.random.Generator, batch: int
) -> tuple[dict[str, Tensor], Tensor, Tensor]:
    stream = task.sample(rng, batch)
    asked = torch.from_numpy(stream.asked)
    answers = torch.from_numpy(stream.answers)[asked]
    recalled = model(torch.from_numpy(stream.symbols), asked)
    losses = {"answer": nn.functional.cross_entropy(recalled.logits, answers)}
    everywhere = torch.ones_like(asked)
    losses.update(model.memory.auxiliary(recalled.inputs, recalled.states, recalled.records, everywhere))
    success = (recalled.logits.argmax(dim=-1) == answers).float().mean()
    return losses, success, recalled.records.wrote.float().mean()


@torch.no_grad()
def follow(teacher: nn.Module, model: nn.Module, decay: float) -> None:
    """Move the teacher's parameters towards the model's by `1 - decay`; its buffers become the model's."""
    torch._foreach_lerp_(list(teacher.parameters()), list(model.parameters()), 1 - decay)
    for mine, theirs in zip(teacher.buffers(), model.buffers(), strict=True):
        mine.copy_(theirs)
