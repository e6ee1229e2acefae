"""The family `lerobot`: a LeRobot policy that lies in a folder of its own, or was trained with its memory."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from torch import Tensor

from trace_memory_ros.policies.families import PolicyFamily, UnknownFamily
from trace_memory_ros.policies.lerobot.chunks import BuiltChunks
from trace_memory_ros.policies.lerobot.config import LerobotConfig
from trace_memory_ros.policies.lerobot.eyes import LerobotEyes, NothingToShare
from trace_memory_ros.policies.lerobot.files import read_config
from trace_memory_ros.policies.lerobot.runner import LerobotRunner
from trace_memory_ros.policies.runner import rebuilt

FOLDER, HASHES = "folder", ("adapter_sha256", "base_sha256")


def run(options: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> LerobotRunner:
    """The policy that `options` name: one that was trained here, or a folder and the two hashes that its `adapter.yaml`
    gave when it was named.

    Raises ValueError where options are missing or tensors do not fit, or the folder holds another policy by now.
    """
    if FOLDER not in options and "lerobot" in options:
        module = rebuilt(lambda: BuiltChunks(LerobotConfig(**options)), tensors, "those of family lerobot")
        return LerobotRunner(module.eval().checkpoint, _eyes_of(module), module.config.image_px)
    missing = [key for key in (FOLDER, *HASHES) if key not in options]
    if missing or tensors:
        raise ValueError(
            f"policy options {dict(options)} of family lerobot lack {', '.join(missing) or 'nothing'}, and there are "
            f"{len(tensors)} policy tensors beside them: write the checkpoint with what `options_of(folder)` of "
            f"{__name__} gives"
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


def config(**options: Any) -> LerobotConfig:
    """What is trained. Raises UnknownFamily for a policy in a folder of its own, which was trained elsewhere."""
    if FOLDER in options:
        raise UnknownFamily(
            f"the LeRobot policy in {options[FOLDER]} was trained elsewhere and can be run here, not trained: name "
            "LeRobot's pretrained_model as policy.options.base"
        )
    return LerobotConfig(**options)


def _eyes_of(module: BuiltChunks) -> LerobotEyes | None:
    try:
        return module.eyes
    except NothingToShare:
        return None


LEROBOT = PolicyFamily("lerobot", run, config, BuiltChunks)
