"""What the tests of the studies' grid measure: of a module that other processes can import."""

import os
from typing import Any

from studies.grid import Plan, Run, Store
from studies.worlds.training import Imitation


class OnePlan(Plan):
    def trained_by(self, run: Run) -> object:
        return [run.row, "recipe"]


def short_imitation(task: str, row: str) -> Imitation:
    return Imitation(episodes=20, validation=4, prefix=5, steps=60, shortest=2)


def square(job: int) -> dict[str, Any]:
    if job < 0:
        raise ValueError(f"{job} has no square here")
    return {"square": job * job, "process": os.getpid()}


def words(figures: dict[str, Any]) -> str:
    return f"square {figures['square']}"


def leave(bad: str, run: Run, store: Store) -> str:
    if str(run) == bad:
        os._exit(3)
    return str(store.get("part", {}, lambda: {"seed": run.seed, "process": os.getpid()})["seed"])
