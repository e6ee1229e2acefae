"""Imitation of a teacher over whole episodes, and closed loops of what was learned."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray

from studies.worlds.client import Lessons, World
from studies.worlds.lengths import Lengths
from studies.worlds.model import Decided, WorldPolicy
from trace_memory_ros.learning.engine.optimise import clip_and_step
from trace_memory_ros.learning.recipe import Recipe

AT_ONCE = 16
"""Lessons that are judged side by side."""


@dataclass(frozen=True)
class Imitation:
    """episodes: of the teacher, and further ones for `validation`. prefix: ticks of an episode that are shown, from its
    first. disturbed: chance that another action than the teacher's is carried out, or the error of one of numbers; what
    is taught is the teacher's.

    A step is a batch of episodes from their start, as many as `batch_ticks` allows, at most `most`. Every other step
    cuts them, from `shortest` on and `paced` or not (`Lengths`), so that a delay is met short before it is met long.
    The learning rate warms up and falls as a cosine. Losses that a memory adds are weighted as in the arm's trainings.
    """

    episodes: int = 600
    validation: int = 60
    prefix: int = 208
    steps: int = 400
    batch_ticks: int = 1664
    shortest: int = 4
    most: int = 64
    learning_rate: float = 4e-3
    weight_decay: float = 1e-4
    warm_up: int = 30
    gradient_clip: float = 1.0
    disturbed: float = 0.0
    paced: bool = False

    def rate_at(self, step: int) -> float:
        """Learning rate of step 0..steps - 1, as a share of `learning_rate`."""
        falling = 0.5 * (1 + math.cos(math.pi * step / self.steps))
        return min((step + 1) / self.warm_up, 1.0) * falling


class Imitated(NamedTuple):
    """Of whole lessons: the imitation loss of a decision, the share of the teacher's choices that are found."""

    loss: float
    agreement: float
    write_share: float


def imitate(policy: WorldPolicy, lessons: Lessons, recipe: Imitation, seed: int) -> None:
    """Train `policy` in place on `lessons`."""
    rng = np.random.default_rng([seed, 0])
    torch.manual_seed(seed)
    optimiser = torch.optim.AdamW(policy.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, recipe.rate_at)
    due = policy.due(lessons.observations)
    lengths = Lengths(lessons.mask.shape[1], recipe.shortest, recipe.paced)
    policy.train()
    for step in range(recipe.steps):
        policy.memory.anneal((step + 1) / recipe.steps)
        ticks = lengths.of_step(step, rng)
        episodes = min(max(recipe.batch_ticks // ticks, 1), recipe.most, len(lessons.mask))
        rows = rng.choice(len(lessons.mask), episodes, replace=False)
        loss = _loss(policy, lessons, due[rows, :ticks], rows, lengths)
        optimiser.zero_grad(set_to_none=True)
        loss.backward()
        clip_and_step(optimiser, recipe.gradient_clip)
        schedule.step()


@torch.inference_mode()
def judge(policy: WorldPolicy, lessons: Lessons) -> Imitated:
    """How `policy` imitates `lessons`, whole ones: what is cut for a training is not the same for every memory."""
    policy.eval()
    due, sums, count = policy.due(lessons.observations), np.zeros(3), 0
    for rows in np.split(np.arange(len(due)), range(AT_ONCE, len(due), AT_ONCE)):
        decided, mask, taught = _decided(policy, lessons, due[rows], rows)
        found = torch.from_numpy(policy.chosen(decided.decisions[mask]))
        losses, agreed = policy.losses(decided.decisions[mask], taught), (found == taught).all(dim=-1)
        sums += [float(each.sum()) for each in (losses, agreed, decided.records.wrote[mask])]
        count += len(taught)
    return Imitated(*(sums / count).tolist())


def _loss(
    policy: WorldPolicy, lessons: Lessons, due: NDArray[np.bool_], rows: NDArray[np.int64], lengths: Lengths
) -> torch.Tensor:
    """Of the lessons `rows`, as many ticks of them as `due` has; `lengths` is told of them."""
    decided, mask, taught = _decided(policy, lessons, due, rows)
    losses = policy.losses(decided.decisions[mask], taught)
    lengths.tell(losses.detach().numpy(), mask.numpy())
    added = policy.memory.auxiliary(decided.inputs, decided.states, decided.records, decided.due)
    return losses.mean() + sum((Recipe().weight_of(name) * value for name, value in added.items()), torch.zeros(()))


def _decided(
    policy: WorldPolicy, lessons: Lessons, due: NDArray[np.bool_], rows: NDArray[np.int64]
) -> tuple[Decided, torch.Tensor, torch.Tensor]:
    """What is decided in the lessons `rows`, `(B, T)` of them that were lived, and what was taught there."""
    mask = torch.from_numpy(lessons.mask[rows, : due.shape[1]])
    mask = mask[:, : int(mask.sum(dim=1).max())]
    parts = (lessons.observations, lessons.actions, lessons.executed)
    observations, actions, executed = (part[rows, : mask.shape[1]] for part in parts)
    before = np.concatenate([np.zeros_like(executed[:, :1]), executed[:, :-1]], axis=1)
    decided = policy(observations, before, mask, due[:, : mask.shape[1]])
    return decided, mask, torch.from_numpy(actions)[mask]


class Played(NamedTuple):
    """A row an episode: the sum of its rewards, whether the world called it a success, its length in steps."""

    returns: list[float]
    successes: list[bool]
    steps: list[int]


@torch.inference_mode()
def play(policy: WorldPolicy, world: World, task: str, seeds: Sequence[int]) -> Played:
    """Closed loop, episodes side by side: every step is one `Memory.step` of each episode's own state and clock."""
    policy.eval()
    observation, count = world.begin(task, seeds), len(seeds)
    state, path, clocks = policy.memory.initial_state(count), policy.path(count), policy.clocks(count)
    acted = np.zeros((count, len(policy.interface.choices) or policy.interface.numbers), np.float32)
    returns, successes, steps = np.zeros(count), np.zeros(count, bool), np.zeros(count, int)
    running, first = np.ones(count, bool), True
    while running.any():
        due = policy.due(observation[:, None], clocks)
        xs = policy.inputs(observation[:, None], acted[:, None], first, path, due).at(0)
        readout, state, _ = policy.memory.step(xs, state, torch.from_numpy(running & due[:, 0]))
        acted, first = policy.chosen(policy.decide(xs.content, readout.vector)), False
        outcome = world.act(acted)
        returns += outcome.rewards
        successes |= outcome.successes
        steps += running
        observation, running = outcome.observations, ~outcome.done
    return Played(returns.tolist(), successes.tolist(), steps.tolist())
