"""How far two runs are from each other."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np

from trace_memory_ros.replay.parity import compare, distance
from trace_memory_ros.runtime.condition import Condition


def test_a_difference_is_found(recorded: tuple[Path, list[Condition]]) -> None:
    _, conditions = recorded
    changed = list(conditions)
    tokens = changed[30].tokens.copy()
    tokens[0, 0] = np.nextafter(tokens[0, 0], np.float32(9.0))
    changed[30] = replace(changed[30], tokens=tokens)
    parity = compare(conditions, changed)
    assert (parity.bits_differ, parity.first_differing_tick) == (1, conditions[30].tick)
    assert 0.0 < parity.largest < 1e-5
    assert not parity.identical
    shorter = compare(conditions, conditions[:-1])
    assert (shorter.identical, shorter.within, shorter.beyond) == (True, 0, 1)
    holed = compare(conditions, conditions[:40] + conditions[41:])
    assert (holed.identical, holed.within, holed.beyond) == (False, 1, 0)
    assert not compare([], []).identical


def test_other_instances_are_no_difference_and_a_restored_one_goes_on(
    recorded: tuple[Path, list[Condition]], checkpoint: Path, tmp_path: Path
) -> None:
    _, conditions = recorded
    live = [replace(condition, instance=7) for condition in conditions]
    live[40:] = [replace(condition, instance=8, restored=True) for condition in live[40:]]
    assert compare(live, conditions).identical
    emptied = [replace(condition, restored=False) for condition in live]
    assert compare(emptied, conditions).compared == 40


def test_distances_of_odd_arrays() -> None:
    ones = np.ones(3, np.float32)
    assert distance(ones, np.ones(2, np.float32)) == np.inf
    assert distance(ones, np.array([1, 1, np.nan], np.float32)) == np.inf
    nan = np.array([np.nan, np.inf], np.float32)
    assert distance(nan, nan.copy()) == 0.0
    assert distance(np.zeros(0, np.float32), np.zeros(0, np.float32)) == 0.0
