"""When the memory is written: the same answer tick by tick, over a whole episode, and after a restore."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.runtime.clock import ClockRule, EveryTicks, PathLength, SinceWrite, UpdateClock, rule_from_dict

rules = st.one_of(
    st.builds(EveryTicks, st.integers(1, 9)),
    st.builds(PathLength, st.floats(0.01, 5), st.floats(0, 1)),
)


def walk(seed: int, ticks: int = 80) -> NDArray[np.float32]:
    rng = np.random.default_rng(seed)
    return np.cumsum(rng.normal(0, rng.uniform(0, 0.3, (ticks, 1)), (ticks, 17)), axis=0).astype(np.float32)


@settings(max_examples=60, deadline=None)
@given(rules, st.integers(0, 10**6), st.integers(0, 79))
def test_mask_equals_ticks_and_restores(rule: ClockRule, seed: int, cut: int) -> None:
    states = walk(seed)
    clock = UpdateClock(rule)
    mask = clock.write_mask(states)
    answers = []
    for k, state in enumerate(states):
        if k == cut:
            saved, clock = clock.snapshot(), UpdateClock(rule)
            clock.due(states[0])
            clock.restore(saved)
        answers.append(clock.due(state))
    assert answers == mask.tolist()
    assert mask[0]
    assert clock.write_mask(states).tolist() == answers
    clock.reset()
    assert [clock.due(state) for state in states] == answers


@settings(max_examples=60, deadline=None)
@given(rules)
def test_rules_survive_their_mapping(rule: ClockRule) -> None:
    assert rule_from_dict(rule.to_dict()) == rule
    assert UpdateClock.from_dict(UpdateClock(rule).to_dict()).rule == rule


def test_every_counts_ticks() -> None:
    assert np.flatnonzero(UpdateClock(EveryTicks(4)).write_mask(walk(0, 13))).tolist() == [0, 4, 8, 12]


def test_path_length_measures_travel_not_time() -> None:
    line = np.linspace(0, 10, 101)[:, None] * np.ones(17) / np.sqrt(17)
    slow = np.repeat(line, 3, axis=0)
    clock = UpdateClock(PathLength(0.95))
    writes = np.flatnonzero(clock.write_mask(line))
    assert writes.tolist() == list(range(0, 101, 10))
    assert np.flatnonzero(clock.write_mask(slow)).tolist() == (3 * writes).tolist()
    for state in line:
        clock.due(state)
    assert clock.path_length == pytest.approx(10)


def test_jitter_within_the_deadband_is_no_path_but_slow_motion_is() -> None:
    rng = np.random.default_rng(0)
    jitter = np.clip(rng.normal(0, 0.01, (3000, 17)), -0.02, 0.02)
    clock = UpdateClock(PathLength(0.5, deadband=0.2))
    assert np.flatnonzero(clock.write_mask(jitter)).tolist() == [0]
    creep = np.arange(3000)[:, None] * np.full(17, 0.002)
    travelled = 2999 * 0.002 * np.sqrt(17)
    for state in creep:
        clock.due(state)
    assert travelled - 0.2 <= clock.path_length <= travelled + 1e-6


def test_path_is_counted_under_either_rule() -> None:
    states = walk(3).astype(np.float64)
    clock = UpdateClock(EveryTicks(5))
    for state in states:
        clock.due(state)
    assert clock.path_length == pytest.approx(np.linalg.norm(np.diff(states, axis=0), axis=1).sum())


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"kind": "every", "n": 0}, "n = 0: must be an integer, at least 1"),
        ({"kind": "every", "n": True}, "n = True"),
        ({"kind": "path_length", "threshold": 0}, "threshold = 0: must be a finite number > 0"),
        ({"kind": "path_length", "threshold": float("nan")}, "threshold = nan"),
        ({"kind": "path_length", "threshold": 1, "deadband": -1}, "deadband = -1: must be a finite number >= 0"),
        ({"kind": "path_length", "treshold": 1}, "'treshold'; did you mean 'threshold'"),
        ({"kind": "every", "n": 1, "deadband": 0.1}, "unknown key 'deadband'"),
        (7, "expected a mapping"),
    ],
)
def test_bad_rules_are_named(data: object, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        rule_from_dict(data)


@dataclass(frozen=True)
class EverySeconds:
    """A rule of time, as a third party would add it."""

    seconds: float

    @property
    def deadband(self) -> float:
        return 0.0

    def reached(self, since: SinceWrite) -> bool:
        return since.elapsed_ns >= self.seconds * 1e9

    def scaled(self, factor: float) -> EverySeconds:
        return EverySeconds(self.seconds * factor)

    def to_dict(self) -> dict[str, Any]:
        return {"kind": "every_seconds", "seconds": self.seconds}


def test_a_rule_of_time_sees_stamps_and_restores() -> None:
    states, stamps = walk(0, 9), np.array([0, 1, 2, 5, 6, 9, 20, 21, 23]) * 100_000_000
    clock = UpdateClock(EverySeconds(0.3))
    assert np.flatnonzero(clock.write_mask(states, stamps)).tolist() == [0, 3, 5, 6, 8]
    assert np.flatnonzero(UpdateClock(clock.rule.scaled(2.0)).write_mask(states, stamps)).tolist() == [0, 4, 6]
    answers = []
    for state, stamp_ns in zip(states, stamps.tolist(), strict=True):
        saved, clock = clock.snapshot(), UpdateClock(clock.rule)
        clock.restore(saved)
        answers.append(clock.due(state, stamp_ns))
    assert answers == clock.write_mask(states, stamps).tolist()
    with pytest.raises(ValueError, match="needs stamps"):
        clock.write_mask(states)


def test_a_coarser_rule_is_of_the_same_kind() -> None:
    assert PathLength(0.5, 0.2).scaled(4.0) == PathLength(2.0, 0.2)
    assert EveryTicks(2).scaled(1.6) == EveryTicks(3)
    assert EveryTicks(1).scaled(0.1) == EveryTicks(1)
