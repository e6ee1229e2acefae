"""Leaving out is what it says: checked against stepping through the memory without the write, for every mechanism."""

from pathlib import Path

import numpy as np
import pytest
import torch
from evidence.recorded_examples import BRANCH, recorded
from fixtures import tiny_checkpoint

from trace_memory_ros.evidence.attribution import leave_out
from trace_memory_ros.evidence.history.scan import HistoryScanner, ScannedHistory
from trace_memory_ros.evidence.history.transforms import identity
from trace_memory_ros.memory.registry import names
from trace_memory_ros.observation.frames import at
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.clock import EveryTicks
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime


def scanned_by(folder: Path, mechanism: str) -> tuple[HistoryScanner, ScannedHistory]:
    tiny_checkpoint(folder, mechanism, clock=EveryTicks(4))
    runtime = MemoryRuntime(load(folder))
    scanner = HistoryScanner(runtime.config, runtime.model)
    episode = recorded()
    states = episode.state[: BRANCH + 1]
    contents = scanner.contents(at(episode.images, slice(BRANCH + 1)), states)
    return scanner, scanner.scan(contents, identity(states))


@pytest.mark.parametrize("mechanism", [name for name in names() if name != "none"])
def test_without_a_write_is_what_stepping_without_it_gives(mechanism: str, tmp_path: Path) -> None:
    scanner, scanned = scanned_by(tmp_path, mechanism)
    memory = scanner.model.memory
    bounds = leave_out.windows(scanned, 1)
    kept = leave_out.kept_outside(bounds, len(scanned.due))
    readout = leave_out.recall_without(memory, scanned, kept)
    assert len(bounds) == len(scanned.writes)
    for row, (left_out, _) in enumerate(bounds.tolist()):
        with torch.inference_mode():
            state = memory.initial_state(1)
            for place in range(len(scanned.due)):
                _, state, _ = memory.step(scanned.evidence.at(place), state, torch.tensor([place != left_out]))
            expected = memory.read(scanned.now, state)
        np.testing.assert_allclose(readout.vector[row], expected.vector[0], atol=1e-5)
        np.testing.assert_allclose(readout.tokens[row], expected.tokens[0], atol=1e-5)
    whole = leave_out.recall_without(memory, scanned, np.ones((1, len(scanned.due)), dtype=bool))
    np.testing.assert_allclose(whole.vector, scanned.readout.vector, atol=1e-6)


def test_windows_are_centred_and_shorter_at_the_ends(tmp_path: Path) -> None:
    _, scanned = scanned_by(tmp_path, "gru")
    assert len(scanned.due) == 8
    bounds = leave_out.windows(scanned, 3)
    assert bounds[[0, 1, 7]].tolist() == [[0, 1], [0, 2], [6, 7]]
    kept = leave_out.kept_outside(bounds, 8)
    assert kept[1].tolist() == [False] * 3 + [True] * 5
    for wrong in (0, 2, -1):
        with pytest.raises(ValueError, match=f"window = {wrong}"):
            leave_out.windows(scanned, wrong)


def test_an_arm_that_stands_goes_on_displaced() -> None:
    states = np.array([[0.0], [1.0], [3.0], [6.0], [10.0]])
    assert leave_out.standing(states, 1, 3).ravel().tolist() == [0.0, 1.0, 1.0, 1.0, 5.0]
    assert leave_out.standing(states, 0, 0).ravel().tolist() == states.ravel().tolist()


def test_without_a_stretch_only_later_addresses_change(tmp_path: Path) -> None:
    scanner, scanned = scanned_by(tmp_path, "trace")
    states = recorded().state[: BRANCH + 1]
    bounds = leave_out.windows(scanned, 1)
    xi, delta = leave_out.without_stretches(scanner, states, scanned, bounds)
    as_recorded, _ = scanner.addresses(identity(states), scanned.due)
    np.testing.assert_array_equal(xi[0], as_recorded)
    for row in range(1, len(bounds)):
        np.testing.assert_array_equal(xi[row, :row], as_recorded[:row])
        assert not torch.allclose(xi[row, row:], as_recorded[row:], atol=1e-3)
        # The arm has stood since the write before: nothing was added, which a standardiser's mean may shift.
        np.testing.assert_array_equal(delta[row, row], scanner.model.delta.apply(np.zeros(delta.shape[2])))
    everything = np.ones((len(bounds), len(scanned.due)), dtype=bool)
    readout = leave_out.recall_without(scanner.model.memory, scanned, everything, (xi, delta))
    np.testing.assert_allclose(readout.vector[0], scanned.readout.vector[0], atol=1e-6)
    assert (leave_out.relative_change(readout.vector.numpy(), scanned.readout.vector[0].numpy())[1:] > 0).all()


def test_change_is_relative_to_the_whole() -> None:
    whole = np.array([3.0, 4.0], dtype=np.float32)
    rows = np.array([[3.0, 4.0], [0.0, 0.0], [3.0, 5.0]], dtype=np.float32)
    np.testing.assert_allclose(leave_out.relative_change(rows, whole), [0.0, 1.0, 0.2])
    np.testing.assert_array_equal(leave_out.relative_change(rows, 0 * whole), np.zeros(3))
