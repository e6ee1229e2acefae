"""The joint training phase: policy, memory and encoder together, resumable."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from pathlib import Path

import numpy as np
import torch
from safetensors import safe_open
from safetensors.torch import save_file

from trace_memory_ros.files import atomic
from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.batches import BatchBuilder
from trace_memory_ros.learning.branch_accuracy import branch_accuracy, judge
from trace_memory_ros.learning.optimise import descend, draw_batch
from trace_memory_ros.learning.progress import JOINT, Progress
from trace_memory_ros.learning.recipe import Recipe

CHECKED = 12
"""Training pairs looked at where there is no validation split to have as many of."""


class Trainer:
    """Optimises an `Agent` by a `Recipe`; every random choice follows from `seed` and the step."""

    def __init__(
        self, agent: Agent, training: BatchBuilder, validation: BatchBuilder | None, recipe: Recipe, seed: int
    ) -> None:
        self.agent = agent
        self.training = training
        self.validation = validation
        self.recipe = recipe
        self.seed = seed
        self.step = 0
        if recipe.frozen_trunk:
            agent.policy.trunk().requires_grad_(False)
        memory = [*agent.encoder.parameters(), *agent.memory.parameters()]
        groups = [
            {"params": [p for p in agent.policy.parameters() if p.requires_grad], "rate": recipe.learning_rate},
            {"params": memory, "rate": recipe.learning_rate * recipe.memory_rate},
        ]
        self.optimiser = torch.optim.AdamW(groups, lr=recipe.learning_rate, weight_decay=recipe.weight_decay)

    def run(self, report: Callable[[Progress], None], every: int, save_to: Path | None = None) -> Progress:
        """Train to the end of the recipe; `report` and a resumable save happen every `every` steps."""
        recipe = self.recipe
        sums: dict[str, float] = {}
        progress = None
        self.agent.memory.anneal(1.0)
        while self.step < recipe.steps:
            for group in self.optimiser.param_groups:
                group["lr"] = group["rate"] * self._schedule()
            rng = np.random.default_rng([self.seed, 2, self.step])
            batch = draw_batch(self.training, recipe, rng, 1.0, recipe.batch_pairs, recipe.reads, recipe.shares)
            # For what a policy's objective draws itself: a latent, noise.
            torch.manual_seed(int(rng.integers(2**31)))
            for name, value in descend(self.agent, self.optimiser, batch, recipe, self.step).items():
                sums[name] = sums.get(name, 0.0) + value / every
            self.step += 1
            if self.step % every == 0 or self.step == recipe.steps:
                progress = self._progress(sums)
                report(progress)
                sums = {}
                if save_to is not None:
                    self.save(save_to)
        return progress or self._progress({})

    def _schedule(self) -> float:
        """Linear warm-up, then a cosine to a twentieth."""
        if self.step < self.recipe.warm_up_steps:
            return (self.step + 1) / self.recipe.warm_up_steps
        done = (self.step - self.recipe.warm_up_steps) / max(1, self.recipe.steps - self.recipe.warm_up_steps)
        return 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * done))

    def _progress(self, losses: dict[str, float]) -> Progress:
        self.agent.eval()
        pairs = CHECKED if self.validation is None else self.validation.data.pairs
        train = branch_accuracy(self.agent, self.training, pairs=pairs)
        found = judge(self.agent, self.validation)
        self.agent.train()
        return Progress(JOINT, self.step, 1.0, losses, train, found.accuracy, found.chunk_error)

    def save(self, path: Path) -> None:
        """Weights, optimiser moments and the step, as one safetensors file that `load` resumes from."""
        tensors = {f"agent.{k}": v.contiguous() for k, v in self.agent.state_dict().items()}
        for index, moments in self.optimiser.state_dict()["state"].items():
            tensors |= {f"adam.{index}.{k}": torch.as_tensor(v).contiguous() for k, v in moments.items()}
        meta = {"step": self.step, "seed": self.seed, "recipe": self.recipe.to_dict()}
        with atomic.replacing(path) as partial:
            save_file(tensors, partial, metadata={"training": json.dumps(meta, sort_keys=True)})

    def load(self, path: Path) -> None:
        """Resume from `save`. Raises ValueError when it was another recipe or seed, naming both."""
        with safe_open(path, framework="pt") as file:
            meta = json.loads(file.metadata()["training"])
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 - not a mapping
        here = json.loads(json.dumps({"seed": self.seed, "recipe": self.recipe.to_dict()}))
        there = {key: meta[key] for key in here}
        if there != here:
            raise ValueError(
                f"{path} was written by another run, {there}; this one is {here}. "
                "Resume with the same arguments, or delete the file to start anew."
            )
        self.agent.load_state_dict({k[6:]: v for k, v in tensors.items() if k.startswith("agent.")})
        state: dict[int, dict[str, torch.Tensor]] = {}
        for name, value in tensors.items():
            if name.startswith("adam."):
                _, index, key = name.split(".", 2)
                state.setdefault(int(index), {})[key] = value
        self.optimiser.load_state_dict({**self.optimiser.state_dict(), "state": state})
        self.step = meta["step"]
