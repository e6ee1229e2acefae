"""Checkpoints that are larger than they should be, or say that they are: refused in time."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import yaml
from fixtures import tiny_checkpoint

from studies.fuzz_checkpoints.mutations import mutated, sound
from studies.fuzz_checkpoints.study import judge
from trace_memory_ros.runtime import checkpoint_sizes
from trace_memory_ros.runtime.checkpoint import CONFIG, WEIGHTS, CheckpointError, load
from trace_memory_ros.runtime.checkpoint_sizes import plain_values
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.model import MemoryModel

HUGE = 10**9
"""As the side of a matrix: 4 exabytes."""


def changed(folder: Path, path: str, value: Any, memory: str = "transformer") -> Path:
    """A checkpoint of whose configuration one value is another."""
    tiny_checkpoint(folder, memory)
    values = yaml.safe_load((folder / CONFIG).read_text())
    *above, key = path.split(".")
    at = values
    for name in above:
        at = at[int(name)] if isinstance(at, list) else at[name]
    at[key] = value
    (folder / CONFIG).write_text(yaml.safe_dump(values))
    return folder


@pytest.mark.parametrize(
    ("path", "words"),
    [
        ("memory.dims.width", "memory transformer has more than"),
        ("memory.options.layers", "memory transformer has more than .* layers"),
        ("memory.options.window", "memory transformer has more than"),
        ("memory.options.capacity", "state of memory retrieval has more than"),
        ("encoder.channels", "the memory's encoder"),
        ("observation.image_px", "image_px = 1000000000 of camera"),
    ],
)
def test_a_size_that_the_weights_do_not_bear_out(path: str, words: str, tmp_path: Path) -> None:
    found = load(changed(tmp_path, path, HUGE, "retrieval" if "retrieval" in words else "transformer"))
    with pytest.raises(CheckpointError, match=words):
        MemoryModel.from_checkpoint(found)


def test_a_policy_larger_than_its_weights(tmp_path: Path) -> None:
    from trace_memory_ros.policies.families import family

    found = load(changed(tmp_path, "policy.options.feedforward", HUGE))
    with pytest.raises(ValueError, match="the policy has more than"):
        family("act").load(found.policy.options, found.tensors_of("policy."))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            "a: &a [x, x, x, x]\n"
            + "".join(f"{b}: &{b} [{', '.join([f'*{a}'] * 9)}]\n" for a, b in zip("abcdefgh", "bcdefghi", strict=True)),
            "more than 200000 values",
        ),
        ("a: " + "[" * 200_000 + "]" * 200_000, "deep"),
        ("a: &a\n  b: *a\n", "holds itself"),
    ],
)
def test_a_configuration_that_grows_when_it_is_read(text: str, words: str) -> None:
    with pytest.raises((ValueError, yaml.YAMLError), match=words):
        plain_values(text.encode())


def test_files_that_are_too_long_or_no_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tiny_checkpoint(tmp_path)
    monkeypatch.setattr("trace_memory_ros.runtime.checkpoint.WEIGHTS_BYTES", 1000)
    with pytest.raises(CheckpointError, match=r"more than the 1000 that are read"):
        load(tmp_path)
    (tmp_path / CONFIG).unlink()
    (tmp_path / CONFIG).symlink_to("/dev/zero")
    with pytest.raises(CheckpointError, match="no plain file"):
        load(tmp_path)
    assert checkpoint_sizes.CONFIG_BYTES < checkpoint_sizes.WEIGHTS_BYTES and (tmp_path / WEIGHTS).is_file()


def test_broken_checkpoints_are_refused_by_name_or_run(tmp_path: Path) -> None:
    found, outcomes = sound(), []
    for index in range(60):
        mutation, files = mutated(found, np.random.default_rng((7, index)))
        for name, content in files.items():
            (tmp_path / name).write_bytes(content)
        outcomes.append(judge(index, mutation, tmp_path))
    assert not [outcome for outcome in outcomes if outcome.failure]
    assert any(outcome.runs for outcome in outcomes) and not all(outcome.runs for outcome in outcomes)


def test_asking_leaves_no_trace(tmp_path: Path) -> None:
    tiny_checkpoint(tmp_path)
    first = torch.nn.Linear(2, 2)
    MemoryRuntime.from_checkpoint(tmp_path)
    assert torch.nn.Linear(10_000, 10_000).weight.device.type == first.weight.device.type == "cpu"
