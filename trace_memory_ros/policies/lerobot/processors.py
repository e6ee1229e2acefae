"""LeRobot's processors before and after a policy, on the device that it is on."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import torch

from trace_memory_ros.policies.lerobot.install import lerobot

PREPROCESSOR = "policy_preprocessor.json"
DEVICE = "device_processor"


def read(made: Any, folder: Path) -> tuple[Any, Any]:
    """Those that lie beside a policy, for where its configuration `made` runs.

    They say which device trained it, which the robot's computer may not have.
    """
    file = folder / PREPROCESSOR
    # Where there is none LeRobot says what to do.
    steps = json.loads(file.read_text(encoding="utf-8"))["steps"] if file.is_file() else ()
    here = {DEVICE: {"device": str(made.device)}} if any(step.get("registry_name") == DEVICE for step in steps) else {}
    make = lerobot("lerobot.policies.factory").make_pre_post_processors
    before, after = make(made, pretrained_path=str(folder), preprocessor_overrides=here)
    return before, after


def place(preprocessor: Any, device: torch.device) -> None:
    """Let a preprocessor give batches on `device`, whichever its configuration says."""
    kind = lerobot("lerobot.processor").DeviceProcessorStep
    preprocessor.steps = [
        kind(str(device), step.float_dtype) if isinstance(step, kind) else step for step in preprocessor.steps
    ]
