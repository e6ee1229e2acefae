"""A recorded demonstration, decoded, is what the simulator's own recording gives; finished bags are kept."""

from collections.abc import Iterator
from itertools import islice
from pathlib import Path

import numpy as np
import pytest

from trace_memory_ros.arm import recorder
from trace_memory_ros.arm.demonstrations import record
from trace_memory_ros.arm.recorder import arm_recording, bag_folder, record_bags, scenarios_of
from trace_memory_ros.arm.sim.env import ArmEnv
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.learning.bags.data import from_episodes


def test_a_bag_holds_what_the_simulator_showed(tmp_path: Path) -> None:
    scenario = scenarios_of("origin", [3])[1]
    (bag,) = record_bags([scenario], tmp_path)
    assert bag == bag_folder(tmp_path, scenario)
    (episode,), verdict = decode_bag(bag, arm_recording())
    assert verdict.ok, str(verdict)
    env = ArmEnv("origin")
    try:
        demonstration = record(scenario, arm_recording().observation, env)
    finally:
        env.close()
    assert episode.cameras == tuple(demonstration.images)
    for name, frames in episode.images.items():
        np.testing.assert_array_equal(frames[:], demonstration.images[name][:])
    np.testing.assert_array_equal(episode.state, demonstration.state)
    np.testing.assert_array_equal(episode.actions, demonstration.actions)
    data = from_episodes([episode], 100)
    assert data.labels == ("right",)
    assert data.episodes[0].decision_ticks == demonstration.decision_ticks
    assert data.episodes[0].usable is None
    changed = max(file.stat().st_mtime_ns for file in bag.iterdir())
    assert list(record_bags([scenario], tmp_path)) == [bag]
    assert max(file.stat().st_mtime_ns for file in bag.iterdir()) == changed


def test_a_recording_that_was_interrupted_is_no_finished_bag(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    scenario, demonstrate = scenarios_of("origin", [3])[0], recorder.demonstrate

    def cut(env: ArmEnv, scenario: Scenario) -> Iterator[object]:
        yield from islice(demonstrate(env, scenario), 5)
        raise KeyboardInterrupt

    monkeypatch.setattr(recorder, "demonstrate", cut)
    with pytest.raises(KeyboardInterrupt):
        list(record_bags([scenario], tmp_path))
    assert not bag_folder(tmp_path, scenario).exists()
