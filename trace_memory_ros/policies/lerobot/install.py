"""Finding LeRobot, which is optional, and saying what to do where it is missing."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from trace_memory_ros.vision.torchvision import torchvision

INSTALL = (
    'pip install "trace_memory_ros[lerobot]" && pip install --no-deps "lerobot>=0.4.4,<0.5"'
    " (without dependencies, since LeRobot 0.4 asks for a torch older than this package's)"
)


class LerobotMissing(ImportError, ValueError):
    """LeRobot, or something it needs, is not installed; the message holds the command that installs it."""


def lerobot(module: str = "lerobot") -> Any:
    """Import `module` of LeRobot. Raises LerobotMissing naming what is missing, and the remedy."""
    try:
        torchvision()
        return import_module(module)
    except ModuleNotFoundError as error:
        raise LerobotMissing(f"{module} needs {error.name}, which is not installed: {INSTALL}") from error
