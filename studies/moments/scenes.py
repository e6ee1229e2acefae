"""Which episodes the study records: no two of one scene."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from trace_memory_ros.arm.recorder import arm_recording, record_bags
from trace_memory_ros.arm.sim.curriculum import default_scenario
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.learning.bags.data import BagData
from trace_memory_ros.learning.bags.training import read_bags

FIRST_FRESH = 100_000
"""The first scene that nothing is learned from."""


def fresh(task: str, count: int) -> list[Scenario]:
    """Episodes that nothing is learned from."""
    return _every_other(task, FIRST_FRESH, count)


def without_twins(task: str, count: int) -> list[Scenario]:
    """One of the two episodes of each scene, left and right in turn."""
    return _every_other(task, 0, count)


def _every_other(task: str, first: int, count: int) -> list[Scenario]:
    return [default_scenario(task, seed, seed % 2) for seed in range(first, first + count)]


def shown(count: int) -> list[Scenario]:
    """Episodes of `colour` without twins in which the panel stays lit: nothing has to be remembered."""
    return [replace(scenario, cue_stays=True) for scenario in without_twins("colour", count)]


def record(scenarios: list[Scenario], folder: Path) -> Iterator[Path]:
    """The bags of scenarios, recorded where they are not there yet."""
    return record_bags(scenarios, folder / scenarios[0].task)


@lru_cache(maxsize=4)
def read(scenarios: tuple[Scenario, ...], folder: Path) -> BagData:
    """The bags' episodes, as training reads them. Raises ValueError for a bag that cannot be used."""
    bags = sorted(record(list(scenarios), folder))
    data, failed = read_bags(bags, arm_recording(), folder / "cache")
    if failed:
        raise ValueError(f"{failed[0]}: delete the bag, it is recorded again")
    return data
