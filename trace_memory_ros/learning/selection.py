"""Which memory a training takes: the memory-first phase of each candidate alone, judged on episodes it did not see."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, NamedTuple

from trace_memory_ros.learning.agent import Agent
from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.build import Design
from trace_memory_ros.learning.data.batches import BatchBuilder, Data
from trace_memory_ros.learning.decisions.branch_accuracy import branch_accuracy, judge
from trace_memory_ros.learning.decisions.candidates import NOT_JUDGED, Candidate, KeptTrials, Selection, Trial, select
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.engine.optimise import Feed
from trace_memory_ros.learning.engine.processes import ALONE
from trace_memory_ros.learning.engine.stage_times import StageTimes
from trace_memory_ros.learning.fit import keep_memory, new_agent, start_of
from trace_memory_ros.learning.memory_first import learn_memory
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.report.progress import Progress
from trace_memory_ros.learning.run_config import RunConfig
from trace_memory_ros.measure.accuracy import Accuracy
from trace_memory_ros.runtime.checkpoint import Checkpoint

FOLDER = "selection"
"""Beside a checkpoint: the trials, and the memory of each candidate."""


class Planned(NamedTuple):
    """What a candidate is trained on."""

    design: Design
    recipe: Recipe
    data: Data


class Alone(NamedTuple):
    """What the memory-first phase alone gave. model: memory and auxiliary head, which decide.

    steps: of the last attempt, as far as they were looked at.
    """

    agent: Agent
    model: AuxiliaryHead
    trial: Trial
    steps: int
    attempts: int


def learn_alone(
    planned: Planned,
    judged_on: BatchBuilder | None,
    seed: int,
    hardware: Hardware = CPU,
    longer: bool = False,
    file: Path | None = None,
    start: Checkpoint | None = None,
) -> Alone:
    """The memory-first phase alone, judged on the training decisions and on those of `judged_on`.

    longer: on the latter after the delays of the recipe's last stages too. file: where encoder and memory are kept.
    start: checkpoint to take the policy from, with whose eyes a memory may see.
    """
    design, recipe, data = planned
    agent = new_agent(design, data, seed, start).place(hardware)
    factors = recipe.memory_first.delay_factors if longer else ()
    if not agent.memory.delay_matters:
        # What it keeps does not depend on what was learned, and what needs more than that is tried after it.
        recipe = replace(recipe, memory_first=replace(recipe.memory_first, attempts=1))
    feed, log = Feed(hardware, ALONE, StageTimes(hardware.wait)), deque[Progress](maxlen=1)
    model = learn_memory(agent, data.training, data.validation, recipe, seed, log.append, feed=feed).eval()
    if file is not None:
        keep_memory(agent, file)
    held_out = judge(model, judged_on)
    after = [judge(model, judged_on and judged_on.delayed(factor)).accuracy for factor in factors]
    decided = [found for found in after if found is not None]
    later = Accuracy.asked_again(decided) if decided else None
    trial = Trial(branch_accuracy(model, data.training), held_out.accuracy, later, held_out.chunk_error)
    steps, attempts = (log[-1].step, log[-1].attempt) if log else (0, 1)
    return Alone(agent, model, trial, steps, attempts)


def select_memory(
    config: RunConfig,
    learned_from: Mapping[str, Any],
    planned: Callable[[str], Planned],
    say: Callable[[str], None],
    folder: Path,
    reuse: bool,
    hardware: Hardware = CPU,
) -> Selection:
    """Choose among `config.memory.candidates` by validation episodes, also after longer delays than theirs.

    learned_from: plain values that tell the episodes from others. planned: what a memory of a name is trained on. say:
    told what each candidate decided, and which is taken. folder: where trials and memories are kept; reuse: take trials
    that the same run of the same episodes kept there. Held-out episodes are not looked at. Without validation episodes
    nothing is trained.
    """
    settings: dict[str, Any] = {"run": config.to_dict(), **learned_from}
    kept, start = KeptTrials(folder / "trials.json", settings, reuse), start_of(config)

    def trial(candidate: Candidate) -> Trial:
        def learn() -> Trial:
            plan = planned(candidate.memory)
            if plan.data.validation is None:
                return NOT_JUDGED
            file = memory_file(folder, candidate.memory)
            return learn_alone(plan, plan.data.validation, config.seed, hardware, True, file, start).trial

        found = kept.get(candidate.memory, learn)
        say(f"validation episodes, {candidate}: {found}")
        return found

    selected = select([Candidate(name) for name in config.memory.candidates], trial)
    say(f"memory {selected}")
    return selected


def memory_file(folder: Path, memory: str) -> Path:
    """Where the encoder and the memory of a candidate are kept, for `fit` to go on with."""
    return folder / f"{memory}.safetensors"
