"""Importing torchvision, also beside a torch that it was not compiled for."""

from __future__ import annotations

from importlib import import_module
from typing import Any

import torch

_UNBUILT = "operator torchvision::"
_SIGNATURE = "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor"
_declared: list[torch.library.Library] = []


def torchvision(module: str = "torchvision") -> Any:
    """Import `module` of torchvision, also where its compiled part was built for another torch than the one installed.

    Its import then stops at two operators that don't exist. Nothing here calls them, so they are declared without an
    implementation. Raises ModuleNotFoundError where it is not installed.
    """
    try:
        return import_module(module)
    except RuntimeError as error:
        if _UNBUILT not in str(error):
            raise
        library = torch.library.Library("torchvision", "DEF")
        for name in ("nms", "qnms"):
            library.define(name + _SIGNATURE)
        _declared.append(library)
        return import_module(module)
