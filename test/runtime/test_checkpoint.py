"""Checkpoint folders: what is written comes back, and every kind of damage is named."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import yaml

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.memory.base import MemoryDims
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.runtime.checkpoint import CONFIG, WEIGHTS, CheckpointError, load, save
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig, MemoryConfig, PolicyConfig
from trace_memory_ros.runtime.clock import PathLength
from trace_memory_ros.vision.encoder import ContentEncoder, EncoderConfig


def make_config(**changes: object) -> CheckpointConfig:
    encoder = EncoderConfig(cameras=3, visual_width=8, state_width=4, channels=4)
    config = CheckpointConfig(
        memory=MemoryConfig("gru", MemoryDims(content=12, signature=17 + 17**2, width=8, slots=2), {}),
        encoder=encoder,
        observation=default_arm(),
        clock=PathLength(0.5, 0.01),
        signature_depth=2,
        task="colour",
        policy=PolicyConfig("act", {"chunk": 8, "cameras": ("a", "b"), "rate": np.float64(1e-5)}),
        training={"command": "train colour", "seed": 3, "metrics": {"held_out": np.float32(0.5)}},
    )
    return replace(config, **changes)


def make_tensors(config: CheckpointConfig) -> dict[str, torch.Tensor]:
    torch.manual_seed(0)
    tensors = {f"encoder.{k}": v for k, v in ContentEncoder(config.encoder).state_dict().items()}
    tensors["normaliser.state.mean"] = torch.rand(17, dtype=torch.float64)
    tensors["normaliser.state.scale"] = torch.rand(17)
    tensors["normaliser.state.active"] = torch.ones(17, dtype=torch.bool)
    return tensors


@pytest.mark.parametrize("storage", ["float16", "float32"])
def test_round_trip(tmp_path: Path, storage: str) -> None:
    config = make_config()
    tensors = make_tensors(config)
    model_id = save(tmp_path / "new" / "folder", config, tensors, storage)
    checkpoint = load(tmp_path / "new" / "folder")
    assert checkpoint.model_id == model_id
    assert len(model_id) == 64
    assert checkpoint.config.observation == config.observation
    assert checkpoint.config.to_dict() == config.to_dict()
    for name, tensor in tensors.items():
        rounded = storage == "float16" and name.startswith("encoder.")
        expected = tensor.half().float() if rounded else tensor
        assert checkpoint.tensors[name].dtype == tensor.dtype
        assert torch.equal(checkpoint.tensors[name], expected), name
    checkpoint.load_into(ContentEncoder(config.encoder), "encoder.")


def test_a_running_statistic_may_outgrow_float16(tmp_path: Path) -> None:
    config = make_config()
    tensors = make_tensors(config) | {"memory.surprise.variance": torch.tensor(1.5e6)}
    save(tmp_path, config, tensors, "float16")
    assert load(tmp_path).tensors["memory.surprise.variance"] == 1.5e6


def test_model_id_is_of_the_content(tmp_path: Path) -> None:
    config = make_config()
    tensors = make_tensors(config)
    first = save(tmp_path / "a", config, tensors)
    assert save(tmp_path / "b", config, dict(reversed(tensors.items()))) == first
    assert save(tmp_path / "c", replace(config, task="origin"), tensors) != first
    tensors["encoder.camera"] = tensors["encoder.camera"] + 1
    assert save(tmp_path / "d", config, tensors) != first


def test_saving_again_leaves_no_other_file(tmp_path: Path) -> None:
    config = make_config()
    for _ in range(2):
        save(tmp_path, config, make_tensors(config))
    assert sorted(p.name for p in tmp_path.iterdir()) == [CONFIG, WEIGHTS]


@pytest.mark.parametrize("damage", ["truncate", "flip", "other"])
def test_damaged_weights_are_named(tmp_path: Path, damage: str) -> None:
    config = make_config()
    save(tmp_path, config, make_tensors(config))
    weights = tmp_path / WEIGHTS
    content = bytearray(weights.read_bytes())
    if damage == "truncate":
        del content[-100:]
    elif damage == "flip":
        content[-5] ^= 1
    else:
        save(tmp_path / "other", config, make_tensors(config), "float32")
        content = bytearray((tmp_path / "other" / WEIGHTS).read_bytes())
    weights.write_bytes(content)
    with pytest.raises(CheckpointError, match=r"model\.safetensors.*sha256.*config\.yaml.*copy both files"):
        load(tmp_path)


@pytest.mark.parametrize("name", [WEIGHTS, CONFIG])
def test_missing_file_is_named(tmp_path: Path, name: str) -> None:
    config = make_config()
    save(tmp_path, config, make_tensors(config))
    (tmp_path / name).unlink()
    with pytest.raises(CheckpointError, match=rf"{name} cannot be read.*No such file"):
        load(tmp_path)


def edit(folder: Path, **changes: object) -> None:
    values = yaml.safe_load((folder / CONFIG).read_text())
    (folder / CONFIG).write_text(yaml.safe_dump(values | changes))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"schema": 9, "wings": 2}, "schema is 9.*reads 1"),
        ({"tsak": "colour"}, "unknown key 'tsak'.*did you mean 'task'"),
        ({"signature_depth": 3}, "memory.dims.signature = 306.*depth 3.*5219"),
        ({"clock": {"kind": "every"}}, "clock.*'n' is missing"),
        ({"clock": {"kind": "sometimes"}}, "clock.kind = 'sometimes'"),
        ({"memory": {"name": "gru", "dims": {"content": 12}}}, "dims.*'signature' is missing"),
        ({"encoder": {"cameras": 2, "visual_width": 8, "state_width": 4}}, "encoder.cameras = 2.*observation: 3"),
        ({"observation": 3}, "observation: expected a mapping"),
    ],
)
def test_bad_config_is_named(tmp_path: Path, changes: dict[str, object], message: str) -> None:
    config = make_config()
    save(tmp_path, config, make_tensors(config))
    edit(tmp_path, **changes)
    with pytest.raises(CheckpointError, match=rf"(?s)config\.yaml: .*{message}"):
        load(tmp_path)


@pytest.mark.parametrize("content", [b"a: [1", b"- 1\n", b"\xff\xfe\x00", b"!!python/object/apply:os.getcwd []"])
def test_config_that_is_not_a_mapping_is_named(tmp_path: Path, content: bytes) -> None:
    config = make_config()
    save(tmp_path, config, make_tensors(config))
    (tmp_path / CONFIG).write_bytes(content)
    with pytest.raises(CheckpointError, match=r"config\.yaml"):
        load(tmp_path)


@pytest.mark.parametrize("value", [float("nan"), float("inf"), 1e6])
def test_values_that_cannot_be_stored_are_refused(tmp_path: Path, value: float) -> None:
    config = make_config()
    tensors = make_tensors(config)
    tensors["encoder.camera"][1, 2] = value
    with pytest.raises(CheckpointError, match=r"encoder\.camera has 1 NaN or infinite of 24"):
        save(tmp_path, config, tensors, "float16")
    assert not (tmp_path / WEIGHTS).exists()


def test_shapes_that_do_not_fit_are_named(tmp_path: Path) -> None:
    config = make_config()
    tensors = make_tensors(config)
    tensors["encoder.extra"] = torch.zeros(1)
    tensors["encoder.camera"] = torch.zeros(2, 8)
    del tensors["encoder.vision.0.bias"]
    save(tmp_path, config, tensors)
    with pytest.raises(CheckpointError) as caught:
        load(tmp_path).load_into(ContentEncoder(config.encoder), "encoder.")
    message = str(caught.value)
    assert "encoder.vision.0.bias is missing" in message
    assert "encoder.extra is not one of the model of config.yaml's" in message
    assert "encoder.camera has shape (2, 8), the model of config.yaml has (3, 8)" in message


def test_values_that_yaml_cannot_hold_are_refused() -> None:
    with pytest.raises(ConfigError, match=r"of type object cannot be written"):
        make_config(training={"x": object()}).to_dict()
