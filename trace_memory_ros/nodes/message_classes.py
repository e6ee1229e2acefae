"""Message classes by ROS name, and messages filled from plain values."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from functools import cache
from typing import Any

from trace_memory_ros.files.strict import ConfigError


@cache
def message_class(name: str, where: str) -> Any:
    """The class of `package/msg/Name` or `package/action/Name_FeedbackMessage`. Raises ConfigError naming `where`."""
    package, kind, leaf = name.split("/")
    try:
        module = importlib.import_module(f"{package}.{kind}")
        action, _, part = leaf.partition("_")
        return getattr(getattr(module, action).Impl, part) if kind == "action" else getattr(module, leaf)
    except (ImportError, AttributeError) as error:
        raise ConfigError(_not_installed(name, where, error)) from error


@cache
def server_class(name: str, where: str) -> Any:
    """The class of `package/action/Name` or `package/srv/Name`. Raises ConfigError naming `where`."""
    package, kind, leaf = name.split("/")
    try:
        return getattr(importlib.import_module(f"{package}.{kind}"), leaf)
    except (ImportError, AttributeError) as error:
        raise ConfigError(_not_installed(name, where, error)) from error


def _not_installed(name: str, where: str, error: Exception) -> str:
    package = name.partition("/")[0].replace("_", "-")
    return (
        f"{where}: message type {name} is not installed ({error}): install ros-$ROS_DISTRO-{package} and source it, "
        "or leave it out"
    )


def fill(message: Any, values: Mapping[str, Any]) -> Any:
    """Set a message's fields from nested plain values; fields that are not given stay as they are."""
    kinds = message.get_fields_and_field_types()
    for name, value in values.items():
        if isinstance(value, Mapping):
            fill(getattr(message, name), value)
        elif isinstance(value, list) and value and isinstance(value[0], Mapping):
            package, leaf = kinds[name].removeprefix("sequence<").removesuffix(">").split("/")
            inner = message_class(f"{package}/msg/{leaf}", name)
            setattr(message, name, [fill(inner(), item) for item in value])
        else:
            setattr(message, name, value)
    return message
