"""Saving a LeRobot policy with its memory's adapter, and loading both again.

A folder holds `lerobot/`, LeRobot's own checkpoint with its processors, which LeRobot opens without this package, and
`adapter.safetensors` with `adapter.yaml` beside it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from safetensors import SafetensorError
from safetensors.torch import load as load_tensors
from safetensors.torch import save as pack_tensors

from trace_memory_ros.policies.lerobot import processors
from trace_memory_ros.policies.lerobot.install import lerobot
from trace_memory_ros.policies.lerobot.policy import MemoryOptions, MemoryPolicy

BASE = "lerobot"
WEIGHTS = "adapter.safetensors"
CONFIG = "adapter.yaml"
AGAIN = "copy the whole folder again, or train again"


class LerobotCheckpointError(ValueError):
    """A folder is not a LeRobot policy with a memory, or its parts don't belong together."""


@dataclass(frozen=True)
class LerobotCheckpoint:
    """A policy with LeRobot's processors. memory_model_id: of the memory it was trained with, empty where unknown.

    task: what a vision-language-action policy is told to do when it runs.
    """

    policy: MemoryPolicy
    preprocessor: Any
    postprocessor: Any
    action_names: tuple[str, ...] = ()
    memory_model_id: str = ""
    task: str = ""


def save(folder: str | Path, checkpoint: LerobotCheckpoint) -> None:
    """Write policy, processors and adapter. Raises ValueError for a wrong number of action names."""
    path, policy = Path(folder), checkpoint.policy
    check_action_names(checkpoint.action_names, policy.config)
    base = path / BASE
    policy.base.save_pretrained(base)
    checkpoint.preprocessor.save_pretrained(base)
    checkpoint.postprocessor.save_pretrained(base)
    tensors = {name: tensor.detach().cpu().contiguous() for name, tensor in policy.adapter.state_dict().items()}
    weights = pack_tensors(tensors)
    config = {
        "family": policy.base.name,
        "lerobot": lerobot().__version__,
        "memory": policy.options.to_dict(),
        "memory_model_id": checkpoint.memory_model_id,
        "action_names": list(checkpoint.action_names),
        "task": checkpoint.task,
        "adapter_sha256": hashlib.sha256(weights).hexdigest(),
        "base_sha256": _base_hash(base),
    }
    (path / WEIGHTS).write_bytes(weights)
    (path / CONFIG).write_text(yaml.safe_dump(config, sort_keys=False), encoding="utf-8")


def load(folder: str | Path) -> LerobotCheckpoint:
    """Read what `save` wrote; the policy is in evaluation mode. Raises LerobotCheckpointError, LerobotMissing."""
    path = Path(folder)
    config, weights = _read(path)
    factory = lerobot("lerobot.policies.factory")
    base_config = lerobot("lerobot.configs.policies").PreTrainedConfig.from_pretrained(path / BASE)
    # LeRobot ignores weights that are missing or too many unless it is told to be strict.
    base = factory.get_policy_class(config["family"]).from_pretrained(path / BASE, config=base_config, strict=True)
    try:
        policy = MemoryPolicy(base, MemoryOptions.from_dict(config["memory"]))
        policy.adapter.load_state_dict(load_tensors(weights))
    except (RuntimeError, TypeError, ValueError, SafetensorError) as error:
        raise LerobotCheckpointError(f"{path / WEIGHTS} does not fit {CONFIG} beside it: {error}; {AGAIN}") from error
    pre, post = processors.read(base_config, path / BASE)
    names = tuple(config["action_names"])
    return LerobotCheckpoint(policy.eval(), pre, post, names, config["memory_model_id"], config.get("task", ""))


def check_action_names(names: Sequence[str], config: Any) -> None:
    """Raise ValueError unless there are as many names as the policy has actions, or none."""
    actions = config.action_feature.shape[0]
    if names and len(names) != actions:
        raise ValueError(f"{len(names)} action names ({', '.join(names)}) for a policy of {actions} actions")


def read_config(path: Path) -> dict[str, Any]:
    """What `adapter.yaml` says, once it is checked against the files beside it. Raises LerobotCheckpointError."""
    return _read(path)[0]


def _read(path: Path) -> tuple[dict[str, Any], bytes]:
    try:
        weights = (path / WEIGHTS).read_bytes()
        config = yaml.safe_load((path / CONFIG).read_text(encoding="utf-8"))
        found = {"adapter_sha256": hashlib.sha256(weights).hexdigest(), "base_sha256": _base_hash(path / BASE)}
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise LerobotCheckpointError(
            f"{path} is not a LeRobot policy with a memory ({error}): give a folder that holds {BASE}, {WEIGHTS} and "
            f"{CONFIG}"
        ) from error
    needed = ("family", "memory", "memory_model_id", "action_names", *found)
    missing = needed if not isinstance(config, dict) else [key for key in needed if key not in config]
    if missing:
        raise LerobotCheckpointError(f"{path / CONFIG} lacks {', '.join(missing)}; {AGAIN}")
    for key, value in found.items():
        if config[key] != value:
            raise LerobotCheckpointError(f"{path}: {key} is {value}, {CONFIG} says {config[key]}; {AGAIN}")
    return config, weights


def _base_hash(base: Path) -> str:
    with (base / "model.safetensors").open("rb") as weights:
        return hashlib.file_digest(weights, "sha256").hexdigest()
