"""Which scenarios to train on: what varies in the tables varies here too, but for the delay."""

from __future__ import annotations

from trace_memory_ros.arm.sim.events import MAX_CUES, MOST_SWAPS
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.arm.sim.seeding import generator

MOST_DECOYS = 2
OVERWRITE_SHARE = 0.25


def plain_scenario(task: str, seed: int, cue: int) -> Scenario:
    """The task as it is: one lap, no decoys."""
    return Scenario(task, seed, cue)


def mixed_scenario(task: str, seed: int, cue: int) -> Scenario:
    """0 to MOST_DECOYS decoys, in `sequence` also 1 to MAX_CUES cues, in a quarter of these overwritten, by seed.

    `cue` 0 and 1 are a counterfactual pair: every cue is the other way.
    """
    rng = generator(task, seed, "mix")
    decoys = int(rng.integers(MOST_DECOYS + 1))
    if task != "sequence":
        return Scenario(task, seed, cue, decoys=decoys)
    later = rng.integers(2, size=int(rng.integers(MAX_CUES)))
    cues = (0, *(int(c) for c in later))
    newer = tuple(int(c) for c in rng.integers(2, size=len(cues)))
    overwrite = newer if rng.random() < OVERWRITE_SHARE else None
    scenario = Scenario(task, seed, 0, decoys=decoys, cues=cues, overwrite=overwrite)
    return scenario.counterfactual() if cue else scenario


def default_scenario(task: str, seed: int, cue: int) -> Scenario:
    """What demonstrations are collected of where nothing else is asked for."""
    return mixed_scenario(task, seed, cue) if task == "sequence" else plain_scenario(task, seed, cue)


def lesson_scenario(task: str, seed: int, cue: int) -> Scenario:
    """What is learned from where scenes that are judged are `default_scenario`: of `cups`, 0 to MOST_SWAPS swaps.

    With one swap or more the first place says nothing of the last, nor does any swap alone: without easier episodes
    nothing is found to begin with. Each scene is there with each number of swaps, or else it tells how it ends.
    """
    if task != "cups":
        return default_scenario(task, seed, cue)
    scene, swaps = divmod(seed, MOST_SWAPS + 1)
    return Scenario(task, scene, cue, swaps=swaps)
