"""The training loop: sample pairs, scan whole episodes, step, watch branch accuracy, resume."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.batches import BatchBuilder, augment, sample_reads
from trace_memory_ros.learning.branch_accuracy import branch_accuracy
from trace_memory_ros.learning.recipe import Recipe


@dataclass(frozen=True)
class Progress:
    """One line of the training log. Accuracies are at the current stage's clock; losses are running means."""

    step: int
    steps: int
    clock_factor: float
    losses: dict[str, float]
    train_branch_accuracy: float
    held_out_branch_accuracy: float


class Trainer:
    """Optimises an `Agent` by a `Recipe`; every random choice follows from `seed` and the step."""

    def __init__(
        self, agent: Agent, training: BatchBuilder, held_out: BatchBuilder, recipe: Recipe, seed: int
    ) -> None:
        self.agent = agent
        self.training = training
        self.held_out = held_out
        self.recipe = recipe
        self.seed = seed
        self.step = 0
        self.optimiser = torch.optim.AdamW(
            agent.parameters(), lr=recipe.learning_rate, weight_decay=recipe.weight_decay
        )

    def run(self, report: Callable[[Progress], None], every: int, save_to: Path | None = None) -> Progress:
        """Train to the end of the recipe; `report` and a resumable save happen every `every` steps."""
        sums: dict[str, float] = {}
        progress = None
        self.agent.train()
        while self.step < self.recipe.steps:
            for name, value in self._one_step().items():
                sums[name] = sums.get(name, 0.0) + value / every
            self.step += 1
            if self.step % every == 0 or self.step == self.recipe.steps:
                progress = self._progress(sums)
                report(progress)
                sums = {}
                if save_to is not None:
                    self.save(save_to)
        return progress or self._progress({})

    def _one_step(self) -> dict[str, float]:
        recipe = self.recipe
        for group in self.optimiser.param_groups:
            group["lr"] = recipe.learning_rate * self._schedule()
        rng = np.random.default_rng([self.seed, self.step])
        noise = torch.Generator().manual_seed(int(rng.integers(2**31)))
        pairs = rng.choice(self.training.data.pairs, min(recipe.batch_pairs, self.training.data.pairs), replace=False)
        indices = [int(i) for pair in pairs for i in (2 * pair, 2 * pair + 1)]
        factor = recipe.stage_at(self.step).clock_factor
        spread = math.log1p(recipe.augmentation.clock_jitter)
        factors = list(factor * np.exp(rng.uniform(-spread, spread, len(indices))))
        reads = [
            sample_reads(rng, self.training.data.episodes[i], recipe.reads, recipe.reads_near_branch) for i in indices
        ]
        batch = augment(self.training.build(indices, factors, reads), noise, recipe.augmentation)
        losses = self.agent.losses(batch, recipe)
        self.optimiser.zero_grad(set_to_none=True)
        losses.total.backward()
        torch.nn.utils.clip_grad_norm_(self.agent.parameters(), recipe.gradient_clip)
        self.optimiser.step()
        if not torch.isfinite(losses.total):
            raise FloatingPointError(
                f"the loss is {losses.total.item()} at step {self.step} ({losses.parts}): lower the learning rate "
                f"({recipe.learning_rate}) or look for NaN in the demonstrations"
            )
        return losses.parts

    def _schedule(self) -> float:
        """Linear warm-up, then a cosine to a twentieth."""
        if self.step < self.recipe.warm_up_steps:
            return (self.step + 1) / self.recipe.warm_up_steps
        done = (self.step - self.recipe.warm_up_steps) / max(1, self.recipe.steps - self.recipe.warm_up_steps)
        return 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * done))

    def _progress(self, losses: dict[str, float]) -> Progress:
        factor = self.recipe.stage_at(max(self.step - 1, 0)).clock_factor
        held_out = branch_accuracy(self.agent, self.held_out, factor)
        train = branch_accuracy(self.agent, self.training, factor, pairs=self.held_out.data.pairs)
        return Progress(self.step, self.recipe.steps, factor, losses, train, held_out)

    def save(self, path: Path) -> None:
        """Weights, optimiser moments and the step, as one safetensors file that `load` resumes from."""
        tensors = {f"agent.{k}": v.contiguous() for k, v in self.agent.state_dict().items()}
        for index, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{k}": torch.as_tensor(v).contiguous() for k, v in moments.items()}
        partial = path.with_suffix(".partial")
        meta = {"step": self.step, "seed": self.seed, "recipe": self.recipe.to_dict()}
        save_file(tensors, partial, metadata={"training": json.dumps(meta, sort_keys=True)})
        partial.replace(path)

    def load(self, path: Path) -> None:
        """Resume from `save`. Raises `ValueError` when it was another recipe or seed, naming both."""
        with safe_open(path, framework="pt") as file:
            meta = json.loads(file.metadata()["training"])
            here = json.loads(json.dumps({"seed": self.seed, "recipe": self.recipe.to_dict()}))
            if {k: meta[k] for k in here} != here:
                raise ValueError(
                    f"{path} was written by another run ({meta['seed']=}, {meta['recipe']}); this one is {here}. "
                    "Resume with the same arguments, or delete the file to start anew."
                )
            tensors = {name: file.get_tensor(name) for name in file.keys()}
        self.agent.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("agent.")})
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("adam."):
                _, index, key = name.split(".", 2)
                state.setdefault(int(index), {})[key] = value
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        self.step = meta["step"]
