"""One short training, by as many processes as the environment says: run by test_processes.py, for each of them."""

from __future__ import annotations

import json
import os
import sys
import time
from dataclasses import replace
from datetime import timedelta
from pathlib import Path

import torch
from learning.synthetic import design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.engine import processes
from trace_memory_ros.learning.engine.hardware import Hardware
from trace_memory_ros.learning.engine.processes import ALONE, Group
from trace_memory_ros.learning.fit import fit
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report.progress import Progress, Reporter
from trace_memory_ros.learning.selection import Planned, learn_alone

FIRST = MemoryFirst(
    clock_factors=(2.0,), delay_factors=(3.0,), stage_steps=4, check_steps=1, settle_steps=0, attempts=1, batch_pairs=3,
    reads=3, learning_rate=1e-5,
)  # fmt: skip
# At this rate what is rounded otherwise in a sum is not blown up by an optimiser that divides by its size.
RECIPE = Recipe(memory_first=FIRST, steps=3, reads=3, batch_pairs=3, learning_rate=1e-5, warm_up_steps=0)
COURSES = {
    "trace": ({"address_width": 8, "hidden": 16, "routing_width": 8}, {}),
    "aura": ({"action_ib": False}, {"policy_options": {"latent": 0}}),
    "gru+gate": ({"hidden": 4}, {}),
    "gru+cache": ({"window": 4, "first": 1, "key": 4, "value": 4, "clock_dropout": 0.0}, {}),
}
ALONE_FILE = "alone.safetensors"
WAITED_S = 6.0


class Losses(Reporter):
    """The losses of each line."""

    def __init__(self) -> None:
        self.found: list[dict[str, float]] = []

    def progress(self, line: Progress) -> None:
        self.found.append(line.losses)


def train(folder: Path, group: Group = ALONE) -> None:
    """Every course, its losses and what it keeps written into `folder`."""
    for memory, (options, changes) in COURSES.items():
        plan = replace(design(memory, **changes), options=options)
        data = build.prepare(plan, [pair(i) for i in range(4)], [pair(100)])
        # An episode whose chunks end early: processes have unequally many ticks.
        data.training.data.episodes[0].demo.actions[-6:] = float("nan")
        log = Losses()
        fit(plan, data, RECIPE, 0, report=log, save_to=folder / f"{memory}.safetensors", group=group)
        if group.writes:
            (folder / f"{memory}.json").write_text(json.dumps(log.found))
        elif log.found:
            raise AssertionError("only the first process tells")


def learn_first(folder: Path, group: Group = ALONE) -> None:
    """A gated memory, learned by the first process alone while the others wait longer than they do for a sum."""
    plan = replace(design("gru+gate"), options={"hidden": 4})
    data = build.prepare(plan, [pair(i) for i in range(4)], [pair(100)])
    with group.first_before_others():
        if group.writes:
            learn_alone(Planned(plan, RECIPE, data), data.validation, 0, file=folder / ALONE_FILE)
            time.sleep(WAITED_S if group.size > 1 else 0.0)
        elif not (folder / ALONE_FILE).exists():
            raise AssertionError("did not wait")


def in_step(folder: Path, rank: int) -> None:
    """Wait until both processes have come here, so that a short patience is not spent on who starts later."""
    (folder / f"{rank}.here").touch()
    while len(list(folder.glob("*.here"))) < 2:
        time.sleep(0.01)


if __name__ == "__main__":
    torch.set_num_threads(1)
    work, out = {"train": train, "learn_first": learn_first}[sys.argv[1]], Path(sys.argv[2])
    if work is learn_first:
        processes.PATIENCE = timedelta(seconds=WAITED_S / 2)
        in_step(out, int(os.environ["RANK"]))
    joined = Group.from_environment(Hardware.chosen("cpu").device)
    work(out, joined)
    joined.leave()
