"""Visual backbones by name."""

from __future__ import annotations

from importlib import import_module

from trace_memory_ros.files.strict import ConfigError, nearest
from trace_memory_ros.vision import weights
from trace_memory_ros.vision.base import VisualBackbone
from trace_memory_ros.vision.config import BackboneConfig

# Imported when asked for: torchvision and timm are extras.
BUILT_IN = {
    "small": "trace_memory_ros.vision.small:SmallBackbone",
    "cells": "trace_memory_ros.vision.cells:CellsBackbone",
    "things": "trace_memory_ros.vision.things:ThingsBackbone",
    "resnet18": "trace_memory_ros.vision.resnet:ResNet18",
    "efficientnet_lite0": "trace_memory_ros.vision.efficientnet:EfficientNetLite0",
    "lerobot": "trace_memory_ros.vision.lerobot:LerobotBackbone",
    "timm": "trace_memory_ros.vision.timm:TimmBackbone",
}


def kind(name: str) -> type[VisualBackbone]:
    """The class of the backbone of that name. Raises ConfigError naming those that are there."""
    found = BUILT_IN.get(name.partition(":")[0])
    if found is None or (name.partition(":")[0] == "timm") != (":" in name):
        known = [*(one for one in BUILT_IN if one != "timm"), "timm:NAME"]
        raise ConfigError(f"backbone {name!r} is unknown; {nearest(name, known)}")
    module, _, attribute = found.partition(":")
    backbone: type[VisualBackbone] = getattr(import_module(module), attribute)
    return backbone


def untrained(config: BackboneConfig, px: int) -> VisualBackbone:
    """A backbone with random weights for images `px` wide. Raises ConfigError for options that it does not have."""
    try:
        return kind(config.name)(config, px).train()
    except TypeError as error:
        raise ConfigError(f"backbone {config.name}: options {dict(config.options)}: {error}") from error


def build(config: BackboneConfig, px: int) -> VisualBackbone:
    """A backbone with the weights that its config names, from a checkpoint that was opened or the user's cache.

    Frozen where the config says so. Raises ConfigError, and WeightsError where no such file is there.
    """
    backbone = untrained(config, px)
    if config.weights_sha256 is not None:
        weights.load_into(backbone, weights.find(config.weights_sha256, config.name))
    return backbone.freeze() if config.frozen else backbone
