"""Bags that are too few for a held-out split: whether they are, and cross-validation over their scenes."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path

from trace_memory_ros.learning.bags.data import Split, deal_scenes
from trace_memory_ros.learning.bags.design import of_memory, small_memory
from trace_memory_ros.learning.bags.plans import Plans
from trace_memory_ros.learning.decisions.candidates import Candidate, KeptTrials, Trial
from trace_memory_ros.learning.decisions.cross_validation import CrossValidation, cross_validate
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.fit import start_of
from trace_memory_ros.learning.run_config import NONE, RunConfig
from trace_memory_ros.learning.selection import learn_alone
from trace_memory_ros.measure.accuracy import LEAST
from trace_memory_ros.memory.base import Memory


def held_out_decisions(plans: Plans) -> int:
    """Decisions of the episodes that the split of a run would hold out; where they are to be found, one an episode."""
    data = plans.data
    return sum(len(data.episodes[i].answers) if data.labels else 1 for i in plans.split.held_out)


def should_fold(plans: Plans) -> bool:
    """Whether a run cross-validates: there are answers to tell apart, too few to hold out, and a memory to learn."""
    labels, bags = plans.data.labels, plans.bags
    tells = len(labels) > 1 or (not labels and bags.decisions != NONE)
    few = tells and held_out_decisions(plans) < LEAST
    learned = (list(_memory(plans.config, name).parameters()) for name in plans.config.memory.candidates)
    return few and bags.cross_validation and any(learned)


def candidates(plans: Plans) -> list[Candidate]:
    """What competes, the simplest first: memories, and of one with an address each strength of noise."""
    return [
        Candidate(name, noise)
        for name in plans.config.memory.candidates
        for noise in (plans.strengths if _memory(plans.config, name).uses_signature else (1.0,))
    ]


def cross_validate_run(
    plans: Plans, report: Callable[[int, Candidate, Trial], None], file: Path, reuse: bool, hardware: Hardware = CPU
) -> CrossValidation | None:
    """Train the memory alone without each fold of the scenes in turn, of each candidate, and judge the fold.

    report: told of every trial. file: where trials are kept as they are done; reuse: take those that the same run of
    the same episodes kept there. None where the scenes are too few to fold, or no decision can be judged.
    """
    config, used, start = plans.config, plans.used, start_of(plans.config)
    episodes = [plans.data.episodes[i] for i in used]
    folds = deal_scenes(episodes, plans.bags.split_seed)
    kept = KeptTrials(file, {"run": config.to_dict(), **plans.learned_from(used)}, reuse)

    def trial(fold: int, candidate: Candidate) -> Trial:
        sides = [
            [used[k] for k, e in enumerate(episodes) if (e.scene in folds[fold]) == held] for held in (False, True)
        ]
        plan = plans.of(candidate.memory, Split(sides[0], [], sides[1]), candidate.noise)
        if not plan.labels:
            return Trial(None, None)
        longer = config.memory.chosen
        return learn_alone(plan.planned, plan.held_out, config.seed, hardware, longer, start=start).trial

    def shown(fold: int, candidate: Candidate) -> Trial:
        found = kept.get(f"fold {fold}, {candidate}", partial(trial, fold, candidate))
        report(fold, candidate, found)
        return found

    return cross_validate(len(folds), candidates(plans), shown) if folds else None


def _memory(config: RunConfig, name: str) -> Memory:
    memory = of_memory(config, name).memory
    return small_memory(memory.name, memory.options)
