"""Bags that are too few for a held-out split: whether they are, and cross-validation over their scenes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, Split, deal_scenes, split
from trace_memory_ros.learning.bags.design import options_of
from trace_memory_ros.learning.bags.training import fewer, prepare_split, with_noise
from trace_memory_ros.learning.batches import Data
from trace_memory_ros.learning.branch_accuracy import branch_accuracy, judge
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.cross_validation import CrossValidation, Trial, cross_validate
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import BagsSection, RunConfig
from trace_memory_ros.measure.accuracy import LEAST
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import MemoryDims

_PROBE_DIMS = MemoryDims(content=4, signature=4, width=8, slots=2)


def held_out_decisions(data: BagData, bags: BagsSection) -> int:
    """Decisions of the episodes that the split of a run would hold out."""
    held = split(data.episodes, bags.held_out, bags.validation, bags.split_seed).held_out
    return sum(len(data.episodes[i].answers) for i in held)


def should_fold(data: BagData, config: RunConfig) -> bool:
    """Whether a run cross-validates: there are answers to tell apart, too few to hold out, and a memory to learn."""
    bags = config.bags or BagsSection()
    few = len(data.labels) > 1 and held_out_decisions(data, bags) < LEAST
    return few and bags.cross_validation and _learns(config)


def _learns(config: RunConfig) -> bool:
    """Whether the memory has weights."""
    memory = registry.build(config.memory.name, _PROBE_DIMS, config.memory.options)
    return any(True for _ in memory.parameters())


def cross_validate_run(
    data: BagData,
    recording: RecordingConfig,
    config: RunConfig,
    given: Mapping[str, Any],
    report: Callable[[int, float, Trial], None],
) -> CrossValidation | None:
    """Train the memory alone without each fold of the scenes in turn, at each strength of noise, and judge the fold.

    report: told of every trial. None where the scenes are too few to fold, or no decision can be judged.
    """
    bags, options = config.bags or BagsSection(), options_of(config)
    used = fewer(list(range(len(data.episodes))), bags.episodes, bags.split_seed)
    episodes = [data.episodes[i] for i in used]
    folds = deal_scenes(episodes, bags.split_seed)

    def trial(fold: int, noise: float) -> Trial:
        sides = [
            [used[k] for k, e in enumerate(episodes) if (e.scene in folds[fold]) == held] for held in (False, True)
        ]
        plan = prepare_split(data, recording, options, config.recipe, Split(sides[0], [], sides[1]), given)
        found = learn_fold(plan.design, plan.data, with_noise(plan.recipe, noise), config.seed)
        report(fold, noise, found)
        return found

    return cross_validate(len(folds), strengths(bags, given), trial) if folds else None


def learn_fold(design: Design, data: Data, recipe: Recipe, seed: int) -> Trial:
    """The memory-first phase alone, judged on the training and the held-out decisions."""
    agent = new_agent(design, data, seed)
    model = learn_memory(agent, data.training, None, recipe, seed, lambda _: None).eval()
    return Trial(branch_accuracy(model, data.training), judge(model, data.held_out).accuracy)


def strengths(bags: BagsSection, given: Mapping[str, Any]) -> tuple[float, ...]:
    """Strengths of noise to choose of; as it is where the run's configuration gives noise of its own."""
    own = given.get("recipe", {}).get("augmentation", {})
    return (1.0,) if any(name.startswith(("signature_", "state_")) for name in own) else bags.noise
