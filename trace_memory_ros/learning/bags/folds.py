"""Bags that are too few for a held-out split: whether they are, and cross-validation over their scenes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, Split, deal_scenes, split
from trace_memory_ros.learning.bags.design import options_of, small_memory
from trace_memory_ros.learning.bags.training import fewer, prepare_split, strengths, with_noise
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.batches import Data
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, judge
from trace_memory_ros.learning.decisions.cross_validation import CrossValidation, KeptTrials, Trial, cross_validate
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.engine.optimise import Feed
from trace_memory_ros.learning.engine.processes import ALONE
from trace_memory_ros.learning.engine.stage_times import StageTimes
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.run_config import NONE, BagsSection, RunConfig
from trace_memory_ros.measure.accuracy import LEAST


def held_out_decisions(data: BagData, bags: BagsSection) -> int:
    """Decisions of the episodes that the split of a run would hold out; where they are to be found, one an episode."""
    held = split(data.episodes, bags.held_out, bags.validation, bags.split_seed).held_out
    return sum(len(data.episodes[i].answers) if data.labels else 1 for i in held)


def should_fold(data: BagData, config: RunConfig) -> bool:
    """Whether a run cross-validates: there are answers to tell apart, too few to hold out, and a memory to learn."""
    bags = config.bags or BagsSection()
    tells = len(data.labels) > 1 or (not data.labels and bags.decisions != NONE)
    few = tells and held_out_decisions(data, bags) < LEAST
    memory = small_memory(config.memory.name, config.memory.options)
    return few and bags.cross_validation and bool(list(memory.parameters()))


def cross_validate_run(
    data: BagData,
    recording: RecordingConfig,
    config: RunConfig,
    given: Mapping[str, Any],
    report: Callable[[int, float, Trial], None],
    file: Path,
    reuse: bool,
    hardware: Hardware = CPU,
) -> CrossValidation | None:
    """Train the memory alone without each fold of the scenes in turn, at each strength of noise, and judge the fold.

    report: told of every trial. file: where trials are kept as they are done; reuse: take those that the same run of
    the same episodes kept there. None where the scenes are too few to fold, or no decision can be judged.
    """
    bags, options = config.bags or BagsSection(), options_of(config)
    used = fewer(list(range(len(data.episodes))), bags.episodes, bags.split_seed)
    episodes = [data.episodes[i] for i in used]
    folds = deal_scenes(episodes, bags.split_seed)
    kept = KeptTrials(file, {"run": config.to_dict(), "episodes": [episode.name for episode in episodes]}, reuse)

    def trial(fold: int, noise: float) -> Trial:
        sides = [
            [used[k] for k, e in enumerate(episodes) if (e.scene in folds[fold]) == held] for held in (False, True)
        ]
        chosen = Split(sides[0], [], sides[1])
        plan = prepare_split(data, recording, options, config.recipe, chosen, given, bags.decisions)
        if not plan.labels:
            return Trial(None, None)
        return learn_fold(plan.design, plan.data, with_noise(plan.recipe, noise), config.seed, hardware)

    def shown(fold: int, noise: float) -> Trial:
        found = kept.get(fold, noise, trial)
        report(fold, noise, found)
        return found

    # Without an address there is no noise to choose.
    addressed = small_memory(config.memory.name, config.memory.options).uses_signature
    return cross_validate(len(folds), strengths(bags, given) if addressed else (1.0,), shown) if folds else None


def learn_fold(design: Design, data: Data, recipe: Recipe, seed: int, hardware: Hardware = CPU) -> Trial:
    """The memory-first phase alone, judged on the training and the held-out decisions."""
    agent = new_agent(design, data, seed).place(hardware)
    feed = Feed(hardware, ALONE, StageTimes(hardware.wait))
    model = learn_memory(agent, data.training, None, recipe, seed, lambda _: None, feed=feed).eval()
    return Trial(branch_accuracy(model, data.training), judge(model, data.held_out).accuracy)
