"""An address over a window of the path: measured in path, restorable, kept in the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.model import MemoryModel
from trace_memory_ros.runtime.window import PathWindow, path_signature
from trace_memory_ros.signature import naive
from trace_memory_ros.signature.streaming import StreamingSignature

WINDOW = PathWindow(length=1.0, stretches=2, deadband=0.0)
Make = Callable[..., MemoryModel]
Record = Callable[..., list[Observation]]


def test_stretches_end_where_their_length_was_walked() -> None:
    path = np.zeros((40, 3))
    path[:, 0] = np.sin(np.arange(40) / 3)
    path[:, 1] = 0.4 * np.arange(40)
    stream = path_signature(3, 2, WINDOW)
    steps = np.r_[0.0, np.linalg.norm(np.diff(path, axis=0), axis=1)]
    ends, walked = [0], 0.0
    for t, state in enumerate(path):
        stream.update(state)
        walked += steps[t]
        if walked >= 1.0:
            ends.append(t)
            walked = 0.0
        begin = ends[-3] if len(ends) > 2 else 0
        np.testing.assert_allclose(stream.value(), naive.signature(path[begin : t + 1], 2), rtol=1e-11, atol=1e-11)
    assert len(ends) > 10


def test_a_standing_arm_keeps_its_window() -> None:
    stream = path_signature(2, 2, PathWindow(1.0, 2, deadband=0.5))
    rng = np.random.default_rng(0)
    for state in np.cumsum(rng.normal(size=(30, 2)), axis=0):
        stream.update(state)
    before = stream.snapshot()
    for _ in range(1000):
        stream.update(state + 0.001 * rng.normal(size=2))
    np.testing.assert_array_equal(stream.snapshot()["closed"], before["closed"])


@pytest.mark.parametrize(("deadband", "area"), [(1.0, 50.2), (0.1, 1.5)])
def test_small_circles_add_up_unless_the_dead_band_is_smaller(deadband: float, area: float) -> None:
    """As docs/explanation/signatures.md says: 100 rounds with a radius of 0.4 standard deviations."""
    angles = 2 * np.pi * np.arange(100 * 100 + 1) / 100
    stream = path_signature(2, 2, PathWindow(deadband=deadband))
    for state in 0.4 * np.stack([np.cos(angles), np.sin(angles)], axis=1):
        stream.update(state)
    value = stream.value()
    assert abs(value[3] - value[4]) / 2 == pytest.approx(area, rel=0.05)


def test_no_window_is_the_whole_path() -> None:
    assert isinstance(path_signature(3, 2, None), StreamingSignature)


def test_runtime_with_a_window_restores_bit_for_bit(
    make_checkpoint: Make, make_episode: Record, tmp_path: Path
) -> None:
    make_checkpoint(tmp_path, "trace", window=PathWindow(2.0, 3, 0.02))
    assert load(tmp_path).config.signature_window == PathWindow(2.0, 3, 0.02)
    ours, theirs = MemoryRuntime.from_checkpoint(tmp_path), MemoryRuntime.from_checkpoint(tmp_path)
    episode = make_episode(50)
    for observation in episode[:20]:
        ours.tick(observation)
    theirs.restore(ours.snapshot())
    for observation in episode[20:]:
        (one, _), (other, _) = ours.tick(observation), theirs.tick(observation)
        np.testing.assert_array_equal(one.address, other.address)
        np.testing.assert_array_equal(one.tokens, other.tokens)


def test_a_window_changes_the_address_of_a_long_path(
    make_checkpoint: Make, make_episode: Record, tmp_path: Path
) -> None:
    addresses = []
    for name, window in (("whole", None), ("window", PathWindow(1.0, 2, 0.02))):
        make_checkpoint(tmp_path / name, "trace", window=window)
        runtime = MemoryRuntime.from_checkpoint(tmp_path / name)
        addresses.append(np.stack([runtime.tick(observation)[0].address for observation in make_episode(50)]))
    np.testing.assert_array_equal(addresses[0][:2], addresses[1][:2])
    assert not np.array_equal(addresses[0][-1], addresses[1][-1])


@pytest.mark.parametrize(("key", "value"), [("length", 0.0), ("stretches", 0), ("deadband", -1.0)])
def test_a_window_that_cannot_be_is_refused(key: str, value: float) -> None:
    with pytest.raises(ConfigError, match=rf"signature_window[:.] ?{key}"):
        PathWindow.from_dict({**PathWindow().to_dict(), key: value})


@pytest.mark.parametrize(("key", "value"), [("length", None), ("length", True), ("deadband", "far")])
def test_a_window_of_the_wrong_type_is_refused_by_its_place(key: str, value: object) -> None:
    with pytest.raises(ConfigError, match=f"config.signature_window.{key} = {value!r}"):
        PathWindow.from_dict({**PathWindow().to_dict(), key: value}, "config.signature_window")


def test_a_window_lacking_a_key_is_refused() -> None:
    with pytest.raises(ConfigError, match="stretches"):
        PathWindow.from_dict({"length": 1.0, "deadband": 0.0})
