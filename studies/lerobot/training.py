"""Building and training LeRobot policies on a task's episodes, with and without a trained memory."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.data.batches import BatchBuilder
from trace_memory_ros.learning.data.dataset import StatePath, Statistics, TrainingSet, action_spread, known_actions
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.data.spread import ACTION_SHARE, least_spread
from trace_memory_ros.learning.engine.optimise import descend, draw_batch
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.lerobot.chunks import ENVIRONMENT_PX, LerobotChunks
from trace_memory_ros.policies.lerobot.files import LerobotCheckpoint
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.policy import MemoryOptions, MemoryPolicy
from trace_memory_ros.policies.module import ChunkConfig
from trace_memory_ros.runtime.checkpoint import Checkpoint
from trace_memory_ros.runtime.clock import UpdateClock
from trace_memory_ros.runtime.model import MemoryModel

Pairs = Sequence[tuple[Demonstration, ...]]
Report = Callable[[int, dict[str, float]], None]


@dataclass(frozen=True)
class Remembered:
    """A trained memory and episodes as it sees them. training, held_out: with the statistics it was trained with."""

    checkpoint: Checkpoint
    model: MemoryModel
    training: BatchBuilder
    held_out: BatchBuilder
    action_names: tuple[str, ...]

    @property
    def condition(self) -> ConditionShape:
        """Shape of the memory's readout."""
        memory = self.model.memory
        return ConditionShape(memory.slot_count, memory.dims.width, memory.address_width)


def remember(
    checkpoint: Checkpoint, training: Pairs, held_out: Pairs, chunk: int, action_names: tuple[str, ...]
) -> Remembered:
    """Adopt the memory of `checkpoint`, frozen, for chunks of `chunk` ticks."""
    model = MemoryModel.from_checkpoint(checkpoint).requires_grad_(False)
    config = checkpoint.config
    px, depth, clock = config.observation.thumbnail_px, config.signature_depth, UpdateClock(config.clock)
    rows = config.observation.path_rows
    path = StatePath(model.state, depth, config.signature_window, config.observation.tick_period_ms, rows)
    sets = [TrainingSet.build(pairs, path, px) for pairs in (training, held_out)]
    demos = [episode.demo for episode in sets[0].episodes]
    spread = action_spread(demos, ACTION_SHARE * least_spread(("rad",) * len(action_names)))
    statistics = Statistics(model.state, model.xi, model.delta, known_actions(demos).mean(axis=0), spread)
    train, held = (BatchBuilder(data, statistics, clock, chunk) for data in sets)
    return Remembered(checkpoint, model, train, held, action_names)


def dataset_statistics(remembered: Remembered) -> dict[str, dict[str, Tensor]]:
    """Statistics of state and actions as LeRobot's processors take them; images become -1..1."""
    statistics = remembered.training.statistics
    state = statistics.state
    moments = {
        "observation.state": (np.where(state.active, state.mean, 0.0), np.where(state.active, state.std, 1.0)),
        "action": (statistics.action_mean, statistics.action_std),
    }
    stats = {
        key: {"mean": torch.tensor(mean, dtype=torch.float32), "std": torch.tensor(std, dtype=torch.float32)}
        for key, (mean, std) in moments.items()
    }
    for name in remembered.checkpoint.config.observation.camera_names:
        stats[f"observation.images.{name}"] = dict(mean=torch.full((3, 1, 1), 0.5), std=torch.full((3, 1, 1), 0.5))
    return stats


def build(remembered: Remembered, family: str, sizes: dict[str, Any], cameras: bool = True) -> Any:
    """An untrained LeRobot policy of `family` for the memory's cameras, state and actions; `sizes`: its own options.

    cameras: without, small images are its environment state, and it has no vision backbone.
    """
    types, factory = lerobot("lerobot.configs.types"), lerobot("lerobot.policies.factory")
    kinds, feature, seen = types.FeatureType, types.PolicyFeature, remembered.checkpoint.config.observation
    side = seen.image_px
    inputs = {f"observation.images.{name}": feature(kinds.VISUAL, (3, side, side)) for name in seen.camera_names}
    if not cameras:
        inputs = {"observation.environment_state": feature(kinds.ENV, (len(inputs) * 3 * ENVIRONMENT_PX**2,))}
    inputs["observation.state"] = feature(kinds.STATE, (seen.state_dim,))
    outputs = {"action": feature(kinds.ACTION, (len(remembered.action_names),))}
    config = factory.make_policy_config(family, device="cpu", input_features=inputs, output_features=outputs, **sizes)
    return factory.get_policy_class(family)(config)


def agent_of(remembered: Remembered, base: Any, remembers: bool, frozen: bool = False, gate: float = 0.0) -> Agent:
    """`base` with the memory, or `base` alone, between LeRobot's processors, ready to be trained."""
    policy = MemoryPolicy(base, MemoryOptions(remembered.condition, frozen, gate=gate))
    pre, post = lerobot("lerobot.policies.factory").make_pre_post_processors(
        base.config, dataset_stats=dataset_statistics(remembered)
    )
    checkpoint = LerobotCheckpoint(policy, pre, post, remembered.action_names, remembered.checkpoint.model_id)
    seen, shape = remembered.checkpoint.config.observation, remembered.condition
    config = ChunkConfig(
        seen.camera_names,
        remembered.action_names,
        state=seen.state_dim,
        image_px=seen.image_px,
        chunk=remembered.training.chunk,
        memory_tokens=shape.tokens,
        memory_width=shape.width,
        memory_address=shape.address,
    )
    chunks = LerobotChunks(checkpoint, config, remembers)
    statistics = remembered.training.statistics
    chunks.action_mean.copy_(torch.from_numpy(statistics.action_mean))
    chunks.action_std.copy_(torch.from_numpy(statistics.action_std))
    return Agent(remembered.model.encoder, remembered.model.memory, chunks)


def train(agent: Agent, data: BatchBuilder, recipe: Recipe, seed: int, report: Report, every: int) -> None:
    """`recipe.steps` steps of LeRobot's loss, with a warm-up and a cosine to a twentieth; the memory is left as it is.

    `report` is given the step and the mean losses since the last report.
    """
    torch.manual_seed(seed)
    chunks = agent.policy
    assert isinstance(chunks, LerobotChunks)
    chunks.model.train()
    groups = chunks.model.get_optim_params() if chunks.remembers else [{"params": list(chunks.model.parameters())}]
    optimiser = torch.optim.AdamW([{"params": list(g["params"])} for g in groups], weight_decay=recipe.weight_decay)
    sums: dict[str, float] = {}
    for step in range(recipe.steps):
        for group in optimiser.param_groups:
            group["lr"] = recipe.learning_rate * _schedule(step, recipe)
        rng = np.random.default_rng([seed, 2, step])
        batch = draw_batch(data, recipe, rng, 1.0, recipe.batch_pairs, recipe.reads, recipe.shares)
        for name, value in descend(agent, optimiser, batch, recipe, step).items():
            sums[name] = sums.get(name, 0.0) + value / every
        if (step + 1) % every == 0:
            report(step + 1, sums)
            sums = {}
    chunks.model.eval()


def _schedule(step: int, recipe: Recipe) -> float:
    if step < recipe.warm_up_steps:
        return (step + 1) / recipe.warm_up_steps
    done = (step - recipe.warm_up_steps) / max(1, recipe.steps - recipe.warm_up_steps)
    return 0.05 + 0.95 * 0.5 * (1.0 + math.cos(math.pi * done))
