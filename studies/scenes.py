"""Evaluation episodes of the arm, and what tells them apart in kept results."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

from studies.grid import Figures, digest
from trace_memory_ros.arm.closed_loop import FIRST_EVALUATION_SEED, some_scenarios
from trace_memory_ros.arm.sim.curriculum import default_scenario
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.tasks.table import task_of

LAPS = (4, 16)
"""Times the trained delay, after which a memory may be asked too: laps round the stations instead of one."""


def with_laps(laps: int, task: str, seed: int, cue: int) -> Scenario:
    """The scenario that a memory is trained on, with the arms going round the stations so many times."""
    return replace(default_scenario(task, seed, cue), laps=laps)


def twins(task: str, scenes: int, skipped: int = 0, **changes: Any) -> list[Scenario]:
    """Evaluation episodes, all cues of a seed beside each other; `skipped` seeds are left to others."""
    return some_scenarios(task, FIRST_EVALUATION_SEED + skipped, scenes * task_of(task).choices, **changes)


def scenario_settings(scenarios: Sequence[Scenario]) -> Figures:
    """What figures of these episodes depend on, for a store."""
    return {"scenarios": digest([scenario_key(scenario) for scenario in scenarios])}


def scenario_key(scenario: Scenario) -> Figures:
    """What distinguishes a scenario from the default one of its class; a setting added later changes no key."""
    return {f.name: value for f in fields(Scenario) if (value := getattr(scenario, f.name)) != f.default}
