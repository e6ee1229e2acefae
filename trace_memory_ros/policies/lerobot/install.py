"""Finding LeRobot, which is optional, and saying what to do where it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

INSTALL = (
    'pip install "trace_memory_ros[lerobot]" && pip install --no-deps "lerobot>=0.4.4,<0.5"'
    " (without dependencies, since LeRobot 0.4 asks for a torch older than this package's)"
)
_UNBUILT = "operator torchvision::"
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []


class LerobotMissing(ImportError, ValueError):
    """LeRobot, or something it needs, is not installed; the message holds the command that installs it."""


def lerobot(module: str = "lerobot") -> Any:
    """Import `module` of LeRobot. Raises LerobotMissing naming what is missing, and the remedy."""
    try:
        _import_torchvision()
        return import_module(module)
    except ModuleNotFoundError as error:
        raise LerobotMissing(f"{module} needs {error.name}, which is not installed: {INSTALL}") from error


def _import_torchvision() -> None:
    """Import torchvision, also where its compiled part was built for another torch than the one installed.

    Its import then stops at two operators that don't exist. Nothing of LeRobot's ACT and Diffusion calls them, so they
    are declared without an implementation.
    """
    try:
        import_module("torchvision")
    except RuntimeError as error:
        if _UNBUILT not in str(error):
            raise
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(name + _SIGNATURE)
        _declared.append(library)
        import_module("torchvision")
