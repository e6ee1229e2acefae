"""The grid of MIKASA's study: every row learns every task from the same recordings and plays the same episodes."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import lru_cache, partial
from pathlib import Path

import numpy as np
import torch

from studies.auto import taken
from studies.grid import HERE, Figures, Run, Store, digest, do
from studies.mikasa.client import MikasaWorld, recorded
from studies.mikasa.closed_loop import ClosedLoop
from studies.mikasa.names import FIRST_SEED, RECORDED
from studies.mikasa.robot import Recorded, robot
from studies.mikasa.rows import Sight, design_of, plain, suited
from trace_memory_ros.learning.auxiliary.head import AuxiliaryHead
from trace_memory_ros.learning.build import Design, prepare_unpaired, with_features
from trace_memory_ros.learning.data.batches import NO_PICTURES, BatchBuilder, Data
from trace_memory_ros.learning.data.dataset import fit_state, state_mask
from trace_memory_ros.learning.data.demonstration import Demonstration
from trace_memory_ros.learning.decisions.branch_accuracy import judge
from trace_memory_ros.learning.decisions.candidates import Trial
from trace_memory_ros.learning.engine.hardware import CPU, Hardware
from trace_memory_ros.learning.fit import KEPT, fit, plain_accuracy
from trace_memory_ros.learning.recipe import Recipe
from trace_memory_ros.learning.selection import Planned, learn_alone
from trace_memory_ros.learning.sizes import LADDER

SCHEMA = 5
"""Of a training."""
PLAYED: Figures = {"schema": 3}
"""What is kept of an episode: where another is kept, it is played anew by the same checkpoint."""
EXPERT = "expert"
"""The row that everything is measured beside; trained by nobody."""
HELD_OUT, VALIDATION = 1 / 6, 1 / 10
"""Shares of the demonstrations."""
SETTLED = 2
"""Ticks after a decision at which its answer is asked for: a touch is known a little after it was made."""
Demos = Callable[[str], list[Demonstration]]


@dataclass(frozen=True)
class MikasaPlan:
    """What a call is decided by. demonstrations: successful ones, of all splits. episodes: canonical ones.

    sight: what memory and policy see with. recipe: of it, with this call's numbers of steps. hardware: to train on.
    """

    out_dir: Path
    recordings: Path
    tasks: tuple[str, ...]
    rows: tuple[str, ...]
    seeds: int
    demonstrations: int
    episodes: int
    sight: Sight
    recipe: Recipe
    hardware: Hardware = CPU

    def runs(self) -> list[Run]:
        """All trainings, whole tables of one seed first; the expert once."""
        rows = (EXPERT, *self.rows)
        return [
            Run(task, row, seed)
            for seed in range(self.seeds)
            for task in self.tasks
            for row in rows
            if row != EXPERT or seed == 0
        ]

    def settings(self, run: Run) -> Figures:
        """What a training depends on besides task, row and seed."""
        if run.row == EXPERT:
            return {"schema": SCHEMA}
        recipe = suited(self.recipe, run.task)
        trained = {"recipe": recipe.to_dict(), "demonstrations": self.demonstrations, "recordings": RECORDED}
        seen = {"design": plain(run.row, self.sight, run.task), "memory_reach": self.sight.memory_reach}
        return {"schema": SCHEMA, **seen, **trained}

    def folder(self, run: Run) -> Path:
        """Where a training, its checkpoint and its episodes are kept."""
        return self.out_dir / "runs" / f"{run.task}-{run.row}-{run.seed}-{digest(self.settings(run))}"

    def canonical_seeds(self) -> range:
        """Of the episodes that are played, the benchmark's own first."""
        return range(FIRST_SEED, FIRST_SEED + self.episodes)

    def store(self, run: Run) -> Store:
        """What is kept of a training."""
        return Store(self.folder(run))


def carry_out(plan: MikasaPlan, world: MikasaWorld) -> None:
    """Record, train and play what is missing, in this process, whose threads it sets to one."""
    torch.set_num_threads(1)
    demos = lru_cache(maxsize=1)(partial(_demonstrations, plan, world))
    do(partial(_measured, plan, world, demos), plan.runs(), plan.folder, HERE)


def split(demos: list[Demonstration]) -> tuple[list[Demonstration], list[Demonstration], list[Demonstration]]:
    """Training, validation and held-out demonstrations: the first recorded, some after them, the last."""
    held_out, validation = max(1, round(len(demos) * HELD_OUT)), max(1, round(len(demos) * VALIDATION))
    first = len(demos) - held_out - validation
    return demos[:first], demos[first : first + validation], demos[first + validation :]


def prepared(design: Design, demos: list[Demonstration]) -> Data:
    """Batches of the three splits."""
    training, validation, held_out = split(demos)
    state = fit_state(training, state_mask(design.observation), design.least_state)
    return prepare_unpaired(design, state, training, validation, held_out)


def _demonstrations(plan: MikasaPlan, world: MikasaWorld, task: str) -> list[Demonstration]:
    found = recorded(world, plan.recordings, task, plan.demonstrations)
    return [one.demonstration(task, robot(plan.sight.px)) for one in found if one.success]


def _measured(plan: MikasaPlan, world: MikasaWorld, demos: Demos, run: Run, store: Store) -> str:
    if run.row == EXPERT:
        return _play(plan, store, lambda seed: _checked(world, run.task, seed))
    store.get("training", plan.settings(run), lambda: _train(plan, run, demos(run.task), store))
    loops = lru_cache(maxsize=1)(lambda: ClosedLoop(store.folder, world, run.task))
    return _play(plan, store, lambda seed: asdict(loops().run(seed)))


def _play(plan: MikasaPlan, store: Store, run: Callable[[int], Figures]) -> str:
    found = [store.get(f"episode_{seed}", PLAYED, partial(run, seed)) for seed in plan.canonical_seeds()]
    return f"{sum(one['success'] for one in found)} of {len(found)} canonical episodes solved"


def _checked(world: MikasaWorld, task: str, seed: int) -> Figures:
    found = world.check(task, seed)
    return {"seed": seed, "success": found["success"], "success_at_end": found["at_end"], "steps": found["steps"]}


def _train(plan: MikasaPlan, run: Run, demos: list[Demonstration], store: Store) -> Figures:
    """Memory first, judged on held-out demonstrations with the head it was trained with; then all together."""
    design, recipe = design_of(run.row, plan.sight, run.task), suited(plan.recipe, run.task)
    data = with_features(prepared(design, demos), design, recipe.augmentation, plan.out_dir / "features")
    file = store.folder / "memory.safetensors"
    learn = partial(_learn_memory, Planned(design, plan.sight.of_memory(recipe), data), run.seed, file, plan.hardware)
    first = store.get("memory_first", plan.settings(run), learn)
    kept = store.folder / KEPT
    fitted = fit(design, data, recipe, run.seed, memory_file=file, save_to=kept, resume=True, hardware=plan.hardware)
    figures: Figures = {
        **fitted.figures(),
        "memory_first": first,
        "state_bytes": fitted.agent.memory.state_bytes,
    }
    figures["model_id"] = fitted.save(store.folder, run.task, figures)
    kept.unlink(missing_ok=True)
    return figures


def _learn_memory(planned: Planned, seed: int, file: Path, hardware: Hardware) -> Figures:
    """The first phase, judged on validation too, by which `auto` would choose; encoder and memory go to `file`."""
    begun = time.process_time()
    alone = learn_alone(planned, planned.data.validation, seed, hardware, longer=True, file=file)
    found = judge(alone.model, planned.data.held_out)
    assert planned.data.held_out is not None
    return {
        "named": named(alone.model, planned.data.held_out) if planned.recipe.answer_weight else None,
        "held_out": plain_accuracy(found.accuracy),
        "training": plain_accuracy(alone.trial.train),
        "trial": alone.trial.to_plain(),
        "chunk_error": found.chunk_error,
        "steps": alone.steps,
        "attempts": alone.attempts,
        "cpu_s": time.process_time() - begun,
    }


def named(model: AuxiliaryHead, builder: BatchBuilder) -> list[list[int]]:
    """Whether each decision of each episode is named rightly, `SETTLED` ticks after it.

    A chunk tells less of the later ones: which way the hand goes depends on where it is.
    """
    right = []
    for index, episode in enumerate(builder.data.episodes):
        ticks = np.minimum(np.array(episode.demo.decision_ticks) + SETTLED, episode.demo.ticks - 1)
        found = model.named(builder.build([index], [1.0], [ticks], NO_PICTURES))[0].tolist()
        right.append([int(one == answer) for one, answer in zip(found, episode.demo.answers, strict=True)])
    return right


def chosen(plan: MikasaPlan, task: str, seed: int) -> str | None:
    """Which row's memory `auto` would take, by validation demonstrations; None while a candidate lacks its trial."""
    runs = {row: plan.store(Run(task, row, seed)).read("memory_first") for row in LADDER if row in plan.rows}
    trials = {row: Trial.from_plain(found["trial"]) for row, found in runs.items() if found}
    try:
        return taken(trials.__getitem__)
    except KeyError:
        return None


def summary_of(files: list[Recorded]) -> Figures:
    """How many recordings there are, how many failed, and when the cue is gone and the answer asked."""
    good = [one for one in files if one.success]
    counts = {"recorded": len(files), "failed": len(files) - len(good)}
    if not good:
        return counts
    return {
        **counts,
        "cue_gone_ticks": [min(one.cue_gone for one in good), max(one.cue_gone for one in good)],
        "asked_ticks": [min(one.asked for one in good), max(one.asked for one in good)],
    }
