"""Checkpoint folders: `model.safetensors` + `config.yaml`, named by the hash of their content.

Frozen backbones lie beside them, in files that `config.yaml` names by their hashes.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import torch
import yaml
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as pack_tensors
from torch import Tensor, nn

from trace_memory_ros.files import atomic
from trace_memory_ros.files.bounded import read_file
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig, MemoryConfig, PolicyConfig
from trace_memory_ros.runtime.checkpoint_sizes import CONFIG_BYTES, WEIGHTS_BYTES, plain_values
from trace_memory_ros.vision import weights as weights_of

__all__ = ["Checkpoint", "CheckpointConfig", "CheckpointError", "MemoryConfig", "PolicyConfig", "load", "save"]

WEIGHTS = "model.safetensors"
CONFIG = "config.yaml"
STATISTICS = "normaliser."
STATISTIC_ENDINGS = ("_mean", "_std")
HASH_KEY = "weights_sha256"
COPY_AGAIN = "copy both files of the checkpoint again, or train again"

TYPES = {torch.float16, torch.bfloat16, torch.float32, torch.float64, torch.bool, torch.uint8, torch.int32, torch.int64}
"""What tensors of a checkpoint are of."""
Storage = Literal["float16", "float32"]


class CheckpointError(ValueError):
    """A checkpoint cannot be written, read or used; the message names file, tensor, both sides and the remedy."""


@dataclass(frozen=True)
class Checkpoint:
    """A loaded checkpoint. tensors: full names, weights float32. model_id: hex sha256 over both files."""

    folder: Path
    config: CheckpointConfig
    tensors: Mapping[str, Tensor]
    model_id: str

    @property
    def policy(self) -> PolicyConfig:
        """The policy that was trained with the memory. Raises CheckpointError where there is none."""
        if self.config.policy is None:
            raise CheckpointError(
                f"{self.folder} holds a memory without a policy: give a checkpoint that was trained with one"
            )
        return self.config.policy

    def tensors_of(self, prefix: str) -> dict[str, Tensor]:
        """The tensors whose names start with `prefix` (`encoder.`, `memory.`, `policy.`), with it removed."""
        return {name[len(prefix) :]: t for name, t in self.tensors.items() if name.startswith(prefix)}

    def load_into(self, module: nn.Module, prefix: str) -> None:
        """Copy the tensors under `prefix` into `module`. Raises CheckpointError naming each that doesn't fit."""
        given = self.tensors_of(prefix)
        problems = weights_of.misfits(given, module.state_dict(), f"the model of {CONFIG}", prefix)
        if problems:
            raise CheckpointError(
                f"{self.folder / WEIGHTS} does not fit {CONFIG} beside it: {'; '.join(problems)}; {COPY_AGAIN}"
            )
        module.load_state_dict(given)


def save(
    folder: str | Path, config: CheckpointConfig, tensors: Mapping[str, Tensor], storage: Storage = "float16"
) -> str:
    """Write a checkpoint and return its model_id.

    float16 rounds float32 weights; statistics (`normaliser.`, names that end in `_mean` or `_std`, single numbers),
    tensors of other types and those of another library's policy (`config.kept_whole`) are kept as they are. Each file
    is replaced whole, and `load` notices when only one of them was. Raises CheckpointError for a non-finite tensor.
    """
    if storage not in ("float16", "float32"):
        raise CheckpointError(f"storage = {storage!r}: must be 'float16' or 'float32'")
    path = Path(folder)
    whole = config.kept_whole
    stored = {
        name: _stored(name, tensors[name], "float32" if name.startswith(whole) else storage) for name in sorted(tensors)
    }
    _check_finite(stored, path / WEIGHTS, "train again, or save with storage='float32' if it is only too large")
    weights = pack_tensors(stored)
    values = {**config.to_dict(), HASH_KEY: hashlib.sha256(weights).hexdigest()}
    text = yaml.safe_dump(values, sort_keys=False, allow_unicode=True, width=120).encode()
    path.mkdir(parents=True, exist_ok=True)
    _with_backbones(config, path, weights_of.copy_to)
    atomic.write(path / WEIGHTS, weights)
    atomic.write(path / CONFIG, text)
    return _model_id(text, weights)


def load(folder: str | Path) -> Checkpoint:
    """Read and check a checkpoint. Raises CheckpointError."""
    path = Path(folder)
    text, weights = _read(path / CONFIG, CONFIG_BYTES), _read(path / WEIGHTS, WEIGHTS_BYTES)
    values = _parse_config(path / CONFIG, text)
    expected, found = values.pop(HASH_KEY, None), hashlib.sha256(weights).hexdigest()
    try:
        config = CheckpointConfig.from_dict(values)
    except (ConfigError, ValueError, TypeError) as error:
        raise CheckpointError(f"{path / CONFIG}: {error}") from error
    if expected != found:
        raise CheckpointError(
            f"{path / WEIGHTS} ({len(weights)} bytes) has sha256 {found}, {CONFIG} beside it says {expected}: it is "
            f"damaged, truncated or another model's; {COPY_AGAIN}"
        )
    try:
        raw = load_tensors(weights)
    except (SafetensorError, ValueError) as error:
        raise CheckpointError(f"{path / WEIGHTS} is not a safetensors file ({error}); {COPY_AGAIN}") from error
    foreign = sorted(name for name, t in raw.items() if t.dtype not in TYPES)
    if foreign:
        raise CheckpointError(
            f"{path / WEIGHTS}: {foreign[0]} is {raw[foreign[0]].dtype}, no type of ours; {COPY_AGAIN}"
        )
    tensors = {name: t.float() if t.dtype == torch.float16 else t for name, t in raw.items()}
    _check_finite(tensors, path / WEIGHTS, COPY_AGAIN)
    _with_backbones(config, path, weights_of.check)
    if config.frozen_backbones:
        weights_of.also_in(path)
    return Checkpoint(path, config, tensors, _model_id(text, weights))


def _with_backbones(config: CheckpointConfig, folder: Path, do: Callable[[str, str, Path], object]) -> None:
    try:
        for backbone in config.frozen_backbones:
            do(str(backbone.weights_sha256), backbone.name, folder)
    except weights_of.WeightsError as error:
        raise CheckpointError(str(error)) from error


def _stored(name: str, tensor: Tensor, storage: Storage) -> Tensor:
    # A single number is a count or a running statistic: it can outgrow float16 and takes no room.
    statistic = name.startswith(STATISTICS) or name.endswith(STATISTIC_ENDINGS) or tensor.ndim == 0
    rounds = storage == "float16" and tensor.dtype == torch.float32 and not statistic
    return tensor.detach().cpu().to(torch.float16 if rounds else tensor.dtype).contiguous().clone()


def _check_finite(tensors: Mapping[str, Tensor], path: Path, remedy: str) -> None:
    for name, tensor in tensors.items():
        if tensor.is_floating_point() and not bool(torch.isfinite(tensor).all()):
            count = int((~torch.isfinite(tensor)).sum())
            raise CheckpointError(f"{path}: tensor {name} has {count} NaN or infinite of {tensor.numel()}; {remedy}")


def _model_id(config: bytes, weights: bytes) -> str:
    digest = hashlib.sha256()
    for content in (config, weights):
        digest.update(len(content).to_bytes(8, "little"))
        digest.update(content)
    return digest.hexdigest()


def _read(path: Path, most: int) -> bytes:
    try:
        return read_file(path, most)
    except ConfigError as error:
        raise CheckpointError(f"{error}: it is no part of a checkpoint; {COPY_AGAIN}") from error
    except OSError as error:
        raise CheckpointError(
            f"{path} cannot be read ({error.strerror}): a checkpoint is a folder with {WEIGHTS} and {CONFIG}; "
            "check the path"
        ) from error


def _parse_config(path: Path, text: bytes) -> dict[str, Any]:
    try:
        values = plain_values(text)
    except (yaml.YAMLError, ValueError, OverflowError) as error:
        raise CheckpointError(f"{path} is not YAML ({error}); {COPY_AGAIN}") from error
    if not isinstance(values, dict):
        raise CheckpointError(f"{path} holds {type(values).__name__}, not a mapping; {COPY_AGAIN}")
    return values
