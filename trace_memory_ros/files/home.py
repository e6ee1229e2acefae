"""Paths that begin with `~`, which configurations have and no shell has opened."""

from __future__ import annotations

from pathlib import Path

from trace_memory_ros.files.strict import ConfigError


def opened(path: str | Path) -> Path:
    """`path` without `~`. Raises ConfigError for the home of a user who is not there."""
    try:
        return Path(path).expanduser()
    except RuntimeError as error:
        raise ConfigError(f"{path}: {error} Give the whole path") from error
