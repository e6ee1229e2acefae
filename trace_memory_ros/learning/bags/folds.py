"""Bags that are too few for a held-out split: whether they are, and cross-validation over their scenes."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.learning.bags.data import BagData, Split, deal_scenes, split
from trace_memory_ros.learning.bags.design import of_memory, options_of, small_memory
from trace_memory_ros.learning.bags.training import fewer, prepare_split, strengths, with_noise
from trace_memory_ros.learning.decisions.candidates import Candidate, KeptTrials, Trial
from trace_memory_ros.learning.decisions.cross_validation import CrossValidation, cross_validate
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.run_config import NONE, BagsSection, RunConfig
from trace_memory_ros.learning.selection import Planned, learn_alone
from trace_memory_ros.measure.accuracy import LEAST
from trace_memory_ros.memory.base import Memory


def held_out_decisions(data: BagData, bags: BagsSection) -> int:
    """Decisions of the episodes that the split of a run would hold out; where they are to be found, one an episode."""
    held = split(data.episodes, bags.held_out, bags.validation, bags.split_seed).held_out
    return sum(len(data.episodes[i].answers) if data.labels else 1 for i in held)


def should_fold(data: BagData, config: RunConfig) -> bool:
    """Whether a run cross-validates: there are answers to tell apart, too few to hold out, and a memory to learn."""
    bags = config.bags or BagsSection()
    tells = len(data.labels) > 1 or (not data.labels and bags.decisions != NONE)
    few = tells and held_out_decisions(data, bags) < LEAST
    learned = (list(_memory(config, name).parameters()) for name in config.memory.candidates)
    return few and bags.cross_validation and any(learned)


def candidates(config: RunConfig, given: Mapping[str, Any]) -> list[Candidate]:
    """What competes, the simplest first: memories, and of one with an address each strength of noise."""
    strong = strengths(config.bags or BagsSection(), given)
    return [
        Candidate(name, noise)
        for name in config.memory.candidates
        for noise in (strong if _memory(config, name).uses_signature else (1.0,))
    ]


def cross_validate_run(
    data: BagData,
    recording: RecordingConfig,
    config: RunConfig,
    given: Mapping[str, Any],
    report: Callable[[int, Candidate, Trial], None],
    file: Path,
    reuse: bool,
    hardware: Hardware = CPU,
) -> CrossValidation | None:
    """Train the memory alone without each fold of the scenes in turn, of each candidate, and judge the fold.

    report: told of every trial. file: where trials are kept as they are done; reuse: take those that the same run of
    the same episodes kept there. None where the scenes are too few to fold, or no decision can be judged.
    """
    bags = config.bags or BagsSection()
    used = fewer(list(range(len(data.episodes))), bags.episodes, bags.split_seed)
    episodes = [data.episodes[i] for i in used]
    folds = deal_scenes(episodes, bags.split_seed)
    kept = KeptTrials(file, {"run": config.to_dict(), "episodes": [episode.name for episode in episodes]}, reuse)

    def trial(fold: int, candidate: Candidate) -> Trial:
        sides = [
            [used[k] for k, e in enumerate(episodes) if (e.scene in folds[fold]) == held] for held in (False, True)
        ]
        options = options_of(of_memory(config, candidate.memory))
        chosen = Split(sides[0], [], sides[1])
        plan = prepare_split(data, recording, options, config.recipe, chosen, given, bags.decisions)
        if not plan.labels:
            return Trial(None, None)
        planned = Planned(plan.design, with_noise(plan.recipe, candidate.noise), plan.data)
        return learn_alone(planned, plan.data.held_out, config.seed, hardware, longer=config.memory.chosen).trial

    def shown(fold: int, candidate: Candidate) -> Trial:
        found = kept.get(f"fold {fold}, {candidate}", partial(trial, fold, candidate))
        report(fold, candidate, found)
        return found

    return cross_validate(len(folds), candidates(config, given), shown) if folds else None


def _memory(config: RunConfig, name: str) -> Memory:
    memory = of_memory(config, name).memory
    return small_memory(memory.name, memory.options)
