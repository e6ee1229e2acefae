"""The family `lerobot`: a checkpoint's memory with a LeRobot policy that lies in a folder of its own."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from trace_memory_ros.policies.families import PolicyFamily
from trace_memory_ros.policies.lerobot.files import read_config
from trace_memory_ros.policies.lerobot.runner import LerobotRunner

FOLDER, HASHES = "folder", ("adapter_sha256", "base_sha256")


def run(options: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> LerobotRunner:
    """The policy that `options` name: folder, and the two hashes that its `adapter.yaml` gave when it was named.

    Raises ValueError where options are missing, or the folder holds another policy by now.
    """
    missing = [key for key in (FOLDER, *HASHES) if key not in options]
    if missing or tensors:
        raise ValueError(
            f"policy options {dict(options)} of family lerobot lack {', '.join(missing) or 'nothing'}, and there are "
            f"{len(tensors)} policy tensors beside them: write the checkpoint with `lerobot_family.options_of(folder)`"
        )
    now = options_of(options[FOLDER])
    for key in HASHES:
        if now[key] != options[key]:
            raise ValueError(
                f"{options[FOLDER]}: {key} is {now[key]}, this checkpoint was written for {options[key]}: restore that "
                "policy, or write the checkpoint again"
            )
    return LerobotRunner.from_folder(options[FOLDER])


def options_of(folder: str | Path) -> dict[str, Any]:
    """Options for a checkpoint's policy of family `lerobot`: where it lies, and its content's hashes."""
    config = read_config(Path(folder))
    return {FOLDER: str(Path(folder).resolve()), **{key: config[key] for key in HASHES}}


LEROBOT = PolicyFamily("lerobot", run)
