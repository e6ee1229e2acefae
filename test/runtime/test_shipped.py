"""The shipped checkpoints remember what they did; those of schema 1 do so to the bit once written again in schema 2."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import yaml

from trace_memory_ros.observation.content import JointPositions, Live
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

WEIGHTS = Path(__file__).parents[2] / "weights"
SHIPPED = sorted(folder.name for folder in WEIGHTS.iterdir() if (folder / checkpoint.WEIGHTS).exists())
GOLDEN = json.loads((Path(__file__).parent / "shipped_conditions.json").read_text(encoding="utf-8"))
"""The first four numbers of each checkpoint's vector after `TICKS`; of schema 1, by the code that read it alone."""
TICKS = 40
ARRAYS = ("tokens", "vector", "read_weights", "address")


def written(name: str) -> dict[str, Any]:
    """A shipped checkpoint's configuration as it lies there."""
    found: dict[str, Any] = yaml.safe_load((WEIGHTS / name / checkpoint.CONFIG).read_text(encoding="utf-8"))
    return found


FIRST_SCHEMA = [name for name in SHIPPED if written(name)["schema"] == 1]


@cache
def conditions(folder: Path) -> list[Condition]:
    """What a checkpoint makes of noise and a random walk."""
    runtime, rng = MemoryRuntime.from_checkpoint(folder), np.random.default_rng(0)
    seen = runtime.config.observation
    state, found = np.zeros(seen.state_dim), []
    for k in range(TICKS):
        state = state + rng.normal(0, 0.1, seen.state_dim)
        size = (seen.image_px, seen.image_px, 3)
        images = {name: rng.integers(0, 255, size).astype(np.uint8) for name in seen.camera_names}
        found.append(runtime.tick(Observation(k, k * seen.period_ns, images, state.copy(), {}, {}))[0])
    return found


@pytest.mark.parametrize("name", SHIPPED)
def test_conditions_are_what_they_were(name: str) -> None:
    np.testing.assert_allclose(conditions(WEIGHTS / name)[-1].vector[:4], GOLDEN[name], atol=1e-4, rtol=1e-4)


@pytest.mark.parametrize("name", FIRST_SCHEMA)
def test_conditions_are_the_same_in_both_schemas(name: str, tmp_path: Path) -> None:
    before = written(name)
    loaded = checkpoint.load(WEIGHTS / name)
    checkpoint.save(tmp_path / name, loaded.config, dict(loaded.tensors))
    after = yaml.safe_load((tmp_path / name / checkpoint.CONFIG).read_text(encoding="utf-8"))
    assert (before["schema"], after["schema"]) == (1, 2)
    assert "joints" in before["observation"] and "streams" in after["observation"]
    first, second = conditions(WEIGHTS / name), conditions(tmp_path / name)
    for one, other in zip(first, second, strict=True):
        assert one.model_id != other.model_id and one.wrote == other.wrote
        assert all(np.array_equal(getattr(one, part), getattr(other, part)) for part in ARRAYS)


@pytest.mark.parametrize("name", FIRST_SCHEMA)
def test_joints_stand_where_schema_1_had_them(name: str) -> None:
    joints = written(name)["observation"]["joints"]
    angles = {joint: 0.1 * (i + 1) for i, joint in enumerate(joints)}
    observer = Observer(checkpoint.load(WEIGHTS / name).config.observation)
    value = observer.reader.read("joint_states", Live(JointPositions(list(angles)[::-1], list(angles.values())[::-1])))
    assert observer.config.state_dim == 3 + len(joints) and observer.config.masked[:3] == (True,) * 3
    assert isinstance(value, np.ndarray) and value.tolist() == list(angles.values())
    assert [channel.rpartition(".")[2] for channel in observer.config.state[3:]] == joints
