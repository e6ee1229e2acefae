"""Demonstrations on disk: what they say of decisions, and that older files and other scenarios are told apart."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from trace_memory_ros.arm.demonstrations import collect
from trace_memory_ros.arm.sim.curriculum import default_scenario, mixed_scenario
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.observation.frames import stacked


def test_sequence_pairs_say_when_to_decide_and_what(tmp_path: Path) -> None:
    seed = next(s for s in range(100) if len(default_scenario("sequence", s, 0).cues) == 2)
    (pair,) = collect("sequence", [seed], default_arm(), tmp_path)
    for cue, demo in enumerate(pair):
        scenario = default_scenario("sequence", seed, cue)
        assert demo.answers == scenario.answers
        assert len(demo.decision_ticks) == 2
        assert (demo.scene, demo.name) == (f"sequence {seed}", f"sequence {seed} {cue}")
        assert list(demo.decision_ticks) == sorted(demo.decision_ticks)
        assert demo.decision_ticks[-1] < demo.ticks - 5
    one, other = pair
    before = one.decision_ticks[0]
    assert np.array_equal(one.state[: before + 1], other.state[: before + 1])
    assert np.array_equal(one.actions[:before], other.actions[:before])
    (again,) = collect("sequence", [seed], default_arm(), tmp_path)
    assert again[0].decision_ticks == one.decision_ticks
    assert np.array_equal(stacked(again[1].images, slice(None)), stacked(other.images, slice(None)))


def test_scenarios_of_one_seed_do_not_share_a_file(tmp_path: Path) -> None:
    seed = next(s for s in range(100) if mixed_scenario("colour", s, 0).decoys == 2)
    (plain,) = collect("colour", [seed], default_arm(), tmp_path)
    (decoyed,) = collect("colour", [seed], default_arm(), tmp_path, scenario_of=mixed_scenario)
    files = sorted(path.name for path in tmp_path.rglob("*.npz"))
    assert len(files) == 4
    assert {f"{seed}_0.npz", f"{seed}_1.npz"} < set(files)
    assert np.array_equal(plain[0].state, decoyed[0].state)
    assert not np.array_equal(stacked(plain[0].images, slice(None)), stacked(decoyed[0].images, slice(None)))


def test_files_from_before_there_were_decision_ticks_are_read(tmp_path: Path) -> None:
    (pair,) = collect("colour", [0], default_arm(), tmp_path)
    path = next(tmp_path.rglob("0_1.npz"))
    with np.load(path) as data:
        old = {name: data[name] for name in data if name != "decision_ticks"}
    np.savez_compressed(path, **old)
    ((_, read),) = collect("colour", [0], default_arm(), tmp_path)
    assert read.decision_ticks == pair[1].decision_ticks and len(read.decision_ticks) == 1
    assert read.answers == (1,)
