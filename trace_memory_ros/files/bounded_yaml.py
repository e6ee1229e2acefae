"""YAML from elsewhere: how deep and how long it is, asked before anything is built of it."""

from __future__ import annotations

from typing import Any

import yaml

from trace_memory_ros.files.strict import ConfigError

LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""By the C library where PyYAML has it."""
DEPTH = 50
"""Mappings and lists within one another."""


def check_depth(text: str | bytes, most: int | None = None) -> None:
    """Whether values lie no deeper than `DEPTH` in one another, and are at most `most`.

    libyaml's composer calls itself, and ends the process some way down. Raises ConfigError, yaml.YAMLError.
    """
    depth = 0
    for count, event in enumerate(yaml.parse(text, LOADER)):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        if depth > DEPTH:
            raise ConfigError(f"values lie more than {DEPTH} deep within one another")
        if most is not None and count > 2 * most:
            raise ConfigError(f"there are more than {most} values in it")
