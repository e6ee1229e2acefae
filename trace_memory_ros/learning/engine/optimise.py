"""One optimiser step on one random batch; shared by both training phases."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from trace_memory_ros.learning.agent import Losses
from trace_memory_ros.learning.data.augment import augment
from trace_memory_ros.learning.data.batches import BatchBuilder, EpisodeBatch, Wanted
from trace_memory_ros.learning.data.delay import Delay, draw_delays
from trace_memory_ros.learning.data.reads import sample_reads
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.engine.processes import ALONE, Group
from trace_memory_ros.learning.engine.stage_times import (
    AUGMENT,
    BACKWARD,
    BUILD,
    DRAW,
    FORWARD,
    OPTIMISER,
    WAIT,
    StageTimes,
)
from trace_memory_ros.learning.features.cache import draw_views
from trace_memory_ros.learning.recipe import ReadShares, Recipe

MOST_OVERFLOWS = 20
"""Steps on end whose gradient is not finite, after which a training ends."""


class Learner(Protocol):
    """A module that turns a batch into named, unweighted losses."""

    def losses(self, batch: EpisodeBatch) -> Losses: ...


class Drawn(NamedTuple):
    """A batch that was drawn: episodes, clock factors, reads, views of kept features, the noise's seed and delays."""

    indices: list[int]
    factors: list[float]
    reads: list[NDArray[np.int64]]
    views: list[int]
    noise: int
    delays: list[Delay]


class Built(NamedTuple):
    """A process's rows of a batch of `whole` episodes, before augmentation.

    noise: seed of that. objective: seed of what a policy's objective draws itself: a latent, noise. ticks: how often
    the memory is written or read. episodes: names.
    """

    batch: EpisodeBatch
    rows: slice
    whole: int
    noise: int
    ticks: int
    episodes: tuple[str, ...]
    objective: int = 0


@dataclass(frozen=True)
class Sampling:
    """How the batches of a phase or stage are drawn: `pairs` counterfactual pairs, or as many episodes without twins,
    written at about `clock_factor` times the final update interval.

    pictures: whether the policy's images are wanted. future: whether those to come are. answers: of how many
    decisions what is right is, from the one that a read lies near.
    """

    builder: BatchBuilder
    recipe: Recipe
    clock_factor: float
    pairs: int
    reads: int
    shares: ReadShares
    pictures: bool = True
    future: bool = False
    answers: int = 0

    def draw(self, rng: np.random.Generator) -> Drawn:
        """Every random choice of a batch."""
        recipe, episodes = self.recipe, self.builder.data.episodes
        indices = self.builder.data.draw(rng, self.pairs)
        spread = math.log1p(recipe.augmentation.clock_jitter)
        factors = list(self.clock_factor * np.exp(rng.uniform(-spread, spread, len(indices))))
        ticks = [sample_reads(rng, episodes[i], self.reads, self.shares, recipe.branch_reach) for i in indices]
        kept = self.builder.features
        views = draw_views(rng, 0 if kept is None else kept.views, len(indices))
        noise = int(rng.integers(2**31))
        return Drawn(indices, factors, ticks, views, noise, draw_delays(rng, self.builder.delay, len(indices)))

    def build(self, drawn: Drawn, group: Group = ALONE) -> Built:
        """This process's part of the batch."""
        whole = len(drawn.indices)
        rows = group.rows(whole)
        longest = None if group.size == 1 else self.builder.longest(*drawn[:2], drawn.delays)
        mine = (drawn.indices[rows], drawn.factors[rows], drawn.reads[rows])
        reach = self.recipe.branch_reach if self.answers else 0
        wanted = Wanted(self.pictures, self.future, reach, self.answers, raw=True)
        batch = self.builder.build(*mine, wanted, longest, drawn.views[rows], drawn.delays[rows])
        names = tuple(self.builder.data.episodes[i].demo.name for i in mine[0])
        return Built(batch, rows, whole, drawn.noise, batch.ticks, names)

    def augmented(self, built: Built, device: torch.device) -> EpisodeBatch:
        """The batch on a device, perturbed there."""
        noise = torch.Generator(device).manual_seed(built.noise)
        kept = self.builder.features
        rest = (self.recipe.augmentation, built.rows, built.whole, None if kept is None else kept.backbone)
        return augment(built.batch.to(device).floats(), noise, *rest)


def draw_batch(
    builder: BatchBuilder,
    recipe: Recipe,
    rng: np.random.Generator,
    clock_factor: float,
    pairs: int,
    reads: int,
    shares: ReadShares,
    pictures: bool = True,
) -> EpisodeBatch:
    """A random batch as `Sampling` says, augmented."""
    sampling = Sampling(builder, recipe, clock_factor, pairs, reads, shares, pictures)
    return sampling.augmented(sampling.build(sampling.draw(rng)), torch.device("cpu"))


@dataclass
class Overflows:
    """Steps that were left out, since their gradient was not finite: in all, and on end until now."""

    count: int = 0
    on_end: int = 0

    def note(self, finite: bool, step: int) -> None:
        """Count a step. Raises FloatingPointError after `MOST_OVERFLOWS` on end."""
        self.on_end = 0 if finite else self.on_end + 1
        self.count += not finite
        if self.on_end >= MOST_OVERFLOWS:
            raise FloatingPointError(
                f"the gradient is not finite in {self.on_end} steps on end, the last of them step {step}: lower the "
                "learning rate, or look for values far off in these demonstrations"
            )


@dataclass(frozen=True)
class Feed:
    """Makes the batches of a phase: drawn and built ahead, augmented on the device when their step has come."""

    hardware: Hardware = CPU
    group: Group = ALONE
    times: StageTimes = field(default_factory=StageTimes)
    overflows: Overflows = field(default_factory=Overflows)

    def built(self, sampling: Sampling, seed: Sequence[int]) -> Built:
        """The batch that follows from `seed`, on the host; on any thread."""
        with self.times.stage(DRAW):
            rng = np.random.default_rng(list(seed))
            drawn = sampling.draw(rng)
            objective = int(rng.integers(2**31)) + self.group.rank
        with self.times.stage(BUILD):
            built = sampling.build(drawn, self.group)._replace(objective=objective)
            return built._replace(batch=built.batch.pinned()) if self.hardware.device.type == "cuda" else built

    def next(self, batches: Iterator[Built]) -> Built:
        """The next batch, once it is there."""
        with self.times.stage(WAIT):
            return next(batches)

    def figures(self, optimiser: torch.optim.Optimizer) -> dict[str, float]:
        """What a line of the log says of the steps before it."""
        left_out = {"overflows": self.overflows.count} if self.overflows.count else {}
        return {"learning_rate": optimiser.param_groups[0]["lr"], "ticks_per_s": self.times.ticks_per_s, **left_out}

    def given(self, sampling: Sampling, built: Built) -> EpisodeBatch:
        """The batch as the networks are given it."""
        with self.times.stage(AUGMENT):
            return sampling.augmented(built, self.hardware.device)


class Together(nn.Module):
    """A learner whose gradients are averaged over a group of processes."""

    def __init__(self, learner: Learner, group: Group) -> None:
        super().__init__()
        self.group = group
        self._parallel = group.together(_Objective(learner))

    def losses(self, batch: EpisodeBatch) -> Losses:
        """This process's share of each loss: their mean over the processes is the loss of the whole batch."""
        losses: Losses = self._parallel(batch)
        return losses


class _Objective(nn.Module):
    def __init__(self, learner: Learner) -> None:
        super().__init__()
        self.learner = learner

    def forward(self, batch: EpisodeBatch) -> Losses:
        return self.learner.losses(batch)


def descend(
    learner: Learner,
    optimiser: torch.optim.Optimizer,
    batch: EpisodeBatch,
    recipe: Recipe,
    step: int,
    episodes: Sequence[str] = (),
    feed: Feed | None = None,
) -> dict[str, float]:
    """One step down the weighted sum of `learner`'s losses; returns them.

    A gradient may not be finite where the loss is, as a long scan's: that step is left out and counted. Raises
    FloatingPointError, before anything is changed, when the sum is not finite, naming the batch's `episodes`, and as
    `Overflows` does.
    """
    feed = feed or Feed()
    with feed.times.stage(FORWARD):
        losses = learner.losses(batch)
        total = torch.stack([recipe.weight_of(name) * value for name, value in losses.items()]).sum()
        values = feed.group.sum(torch.stack([value.detach().float() for value in losses.values()])) / feed.group.size
        parts = dict(zip(losses, values.tolist(), strict=True))
    if not all(map(math.isfinite, parts.values())):
        where = f" in a batch of the episodes {', '.join(dict.fromkeys(episodes))}" if episodes else ""
        raise FloatingPointError(
            f"the loss is {sum(recipe.weight_of(name) * value for name, value in parts.items())} at step {step} "
            f"({parts}){where}: look for NaN or values far off in these demonstrations, or lower the learning rate"
        )
    with feed.times.stage(BACKWARD):
        optimiser.zero_grad(set_to_none=True)
        total.backward()
    with feed.times.stage(OPTIMISER):
        feed.overflows.note(clip_and_step(optimiser, recipe.gradient_clip), step)
    return parts


def clip_and_step(optimiser: torch.optim.Optimizer, most: float) -> bool:
    """Clip the gradient to the norm `most` and take a step; False, and no step, where it is not finite.

    Clipped, a gradient that is not finite would make every weight no number.
    """
    parameters = [p for group in optimiser.param_groups for p in group["params"]]
    finite = math.isfinite(nn.utils.clip_grad_norm_(parameters, most))
    if finite:
        optimiser.step()
    return finite
