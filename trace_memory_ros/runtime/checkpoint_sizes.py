"""How large a checkpoint may be: read before anything of that size is made."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import yaml
from torch import Tensor

from trace_memory_ros.files.bounded_yaml import LOADER, check_depth
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory
from trace_memory_ros.runtime.checkpoint_config import CheckpointConfig
from trace_memory_ros.vision.bounded import outline

CONFIG_BYTES = 4 * 2**20
WEIGHTS_BYTES = 16 * 2**30
NODES = 200_000
"""Values in a configuration, those that are referred to twice counted twice."""
STATE_BYTES = 2**30
IMAGE_PX = 8192
SIGNATURE_NUMBERS = 2**24
LARGEST = 2**31 - 1
"""A size in a configuration."""


def plain_values(text: bytes) -> Any:
    """YAML as plain values. Raises ConfigError where they are too many or too deep, yaml.YAMLError, ValueError."""
    check_depth(text, NODES)
    loader = LOADER(text)
    try:
        node = loader.get_single_node()
        if node is not None:
            _count(node, {})
        return None if node is None else loader.construct_document(node)
    finally:
        loader.dispose()


def _count(node: yaml.Node, known: dict[int, int]) -> int:
    """Values below a node, as if nothing were shared."""
    if isinstance(node, yaml.ScalarNode):
        return 1
    if id(node) not in known:
        known[id(node)] = NODES + 1  # of a node that holds itself
        parts = node.value if isinstance(node, yaml.SequenceNode) else [part for pair in node.value for part in pair]
        known[id(node)] = 1 + sum(_count(part, known) for part in parts)
    if known[id(node)] > NODES:
        raise ConfigError(f"there are more than {NODES} values in it, or one that holds itself")
    return known[id(node)]


def check_sizes(config: CheckpointConfig, tensors: Mapping[str, Tensor]) -> None:
    """Whether memory and observation are of sizes that the tensors beside them bear out, and that a process can hold.

    Raises ValueError naming what is too large.
    """
    _check_numbers(config.memory.options, "memory.options")
    _check_numbers(config.encoder.backbone.options, "encoder.backbone.options")
    seen = config.observation
    for name in seen.camera_names:
        if seen.px_of(name) > IMAGE_PX:
            raise ConfigError(f"image_px = {seen.px_of(name)} of camera {name}: more than {IMAGE_PX}")
    stretches = 1 if config.signature_window is None else config.signature_window.stretches
    if max(config.signature_dim, 1) * stretches > SIGNATURE_NUMBERS:
        raise ConfigError(
            f"{stretches} signatures of {config.signature_dim} numbers: more than {SIGNATURE_NUMBERS} together"
        )
    given = [tensor for name, tensor in tensors.items() if name.startswith("memory.")]
    memory = outline(lambda: registry.from_config(config.memory.to_dict()), given, f"memory {config.memory.name}")
    if memory is not None:
        _check_state(memory)


def _check_state(memory: Memory) -> None:
    try:
        size = sum(part.numel() * part.element_size() for part in memory.initial_state(1))
    except (NotImplementedError, RuntimeError, TypeError) as error:
        if "overflow" not in str(error) and "too large" not in str(error):
            return  # a mechanism that cannot be asked without its numbers
        size = STATE_BYTES + 1
    if size > STATE_BYTES:
        raise ConfigError(f"the state of memory {memory.name} has more than {STATE_BYTES} bytes by its configuration")


def _check_numbers(values: object, where: str) -> None:
    """Raise ConfigError naming a whole number that no size can be."""
    parts: Collection[tuple[Any, object]] = ()
    if isinstance(values, Mapping):
        parts = values.items()
    elif isinstance(values, (list, tuple)):
        parts = list(enumerate(values))
    elif isinstance(values, int) and abs(values) > LARGEST:
        raise ConfigError(f"{where} = {values!r}: more than {LARGEST}")
    for key, value in parts:
        _check_numbers(value, f"{where}.{key}")
