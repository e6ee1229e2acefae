"""The joint training phase: policy, memory and encoder together, resumable."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import torch

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, judge
from trace_memory_ros.learning.engine.keeping import Keeper, Kept
from trace_memory_ros.learning.engine.optimise import Built, Feed, Sampling, Together, descend
from trace_memory_ros.learning.engine.out_of_memory import naming_the_setting
from trace_memory_ros.learning.engine.read_ahead import read_ahead
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.report.progress import JOINT, Progress
from trace_memory_ros.learning.report.readings import readings

_COUNT = "steps"
"""Beside the sums of losses: over how many steps they are."""
CHECKED = 12
"""Training pairs looked at where there is no validation split to have as many of."""


class Trainer:
    """Optimises an `Agent` by a `Recipe`; every random choice follows from `seed` and the step."""

    def __init__(
        self,
        agent: Agent,
        training: BatchBuilder,
        validation: BatchBuilder | None,
        recipe: Recipe,
        seed: int,
        feed: Feed | None = None,
        keeper: Keeper | None = None,
    ) -> None:
        self.agent = agent
        self.training = training
        self.validation = validation
        self.recipe = recipe
        self.seed = seed
        self.feed = feed or Feed()
        self.keeper = keeper or Keeper(seed, recipe)
        self.step = 0
        self._sums: dict[str, float] = {}
        if recipe.frozen_trunk:
            agent.policy.trunk().requires_grad_(False)
        remembers = agent.memory_parameters()
        slow = {id(one) for one in remembers}
        acts = [one for one in agent.policy.parameters() if one.requires_grad and id(one) not in slow]
        groups = [
            {"params": acts, "rate": recipe.learning_rate},
            {"params": remembers, "rate": recipe.learning_rate * recipe.memory_rate},
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)

    def run(self, report: Callable[[Progress], None], every: int, save_to: Path | None = None) -> Progress:
        """Train to the end of the recipe; `report` and a resumable save happen every `every` steps.

        Raises Stopped where the keeper was asked to, FloatingPointError for a loss that is no number, MemoryError.
        """
        if save_to is not None:
            self.keeper = replace(self.keeper, path=save_to)
        recipe, progress = self.recipe, None
        self.agent.memory.anneal(1.0)
        learner = Together(self.agent, self.feed.group)
        delays = map(self.training.delayed, reversed(recipe.memory_first.delays))
        training = next(delayed for delayed in delays if delayed.within(self.agent.memory.reach))
        pictures = training.features is None or not self.agent.encoder.config.shared
        sampling = Sampling(training, recipe, 1.0, recipe.batch_pairs, recipe.reads, recipe.shares, pictures)
        steps = range(self.step, recipe.steps)

        def make(step: int) -> Built:
            return self.feed.built(sampling, (self.seed, 2, step))

        with naming_the_setting(recipe, JOINT), read_ahead(make, steps, self.feed.hardware.loaders) as batches:
            for _ in steps:
                built = self._step(learner, sampling, self.feed.next(batches))
                if self.step % every == 0 or self.step == recipe.steps:
                    progress = self._progress(built)
                    report(progress)
                    self._sums = {}
                    self.save()
                self.keeper.stop_if_asked(self.feed.hardware.device, self.save, f"step {self.step} of {recipe.steps}")
        return progress or self._progress(None)

    def _step(self, learner: Together, sampling: Sampling, built: Built) -> Built:
        for group in self.optimiser.param_groups:
            group["lr"] = group["rate"] * self._schedule()
        batch = self.feed.given(sampling, built)
        torch.manual_seed(built.objective)
        losses = descend(learner, self.optimiser, batch, self.recipe, self.step, built.episodes, self.feed)
        for name, value in losses.items():
            self._sums[name] = self._sums.get(name, 0.0) + value
        self._sums[_COUNT] = self._sums.get(_COUNT, 0) + 1
        self.step += 1
        self.feed.times.stepped(built.ticks)
        return built

    def _schedule(self) -> float:
        """Linear warm-up, then a cosine to a twentieth."""
        if self.step < self.recipe.warm_up_steps:
            return (self.step + 1) / self.recipe.warm_up_steps
        done = (self.step - self.recipe.warm_up_steps) / max(1, self.recipe.steps - self.recipe.warm_up_steps)
        return 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * done))

    def _progress(self, built: Built | None) -> Progress:
        """What is told at this step; the first of several processes looks at decisions, the others wait for it."""
        count = self._sums.get(_COUNT, 1)
        losses = {name: value / count for name, value in self._sums.items() if name != _COUNT}
        if not self.feed.group.writes:
            return Progress(JOINT, self.step, 1.0, losses, None, None)
        self.agent.eval()
        pairs = CHECKED if self.validation is None else self.validation.data.pairs
        train = branch_accuracy(self.agent, self.training, pairs=pairs)
        found = judge(self.agent, self.validation)
        figures = {} if built is None else self.feed.figures(self.optimiser) | readings(self.agent, built.batch)
        self.agent.train()
        return Progress(JOINT, self.step, 1.0, losses, train, *found, figures=figures)

    def save(self, path: Path | None = None) -> None:
        """Weights, optimiser moments and the step, as one safetensors file that `load` resumes from."""
        keeper = self.keeper if path is None else replace(self.keeper, path=path)
        keeper.write(JOINT, {"step": self.step, "sums": self._sums}, {"agent": self.agent}, self.optimiser)

    def load(self, path: Path) -> None:
        """Resume from `save`. Raises ValueError when it was another recipe or seed, naming both."""
        kept = replace(self.keeper, path=path).read()
        if kept is None or kept.phase != JOINT:
            raise ValueError(f"{path} holds no joint phase to go on with: train anew, without --resume")
        self.restore(kept)

    def restore(self, kept: Kept) -> None:
        """Go on where the joint phase was kept."""
        kept.into({"agent": self.agent}, self.optimiser)
        self.step, self._sums = int(kept.place["step"]), dict(kept.place["sums"])
