"""Files from elsewhere: how large they are, asked before room is made for them."""

from __future__ import annotations

import stat
from pathlib import Path

from trace_memory_ros.files.strict import ConfigError


def read_file(path: Path, most: int) -> bytes:
    """A whole file of at most so many bytes. Raises OSError, ConfigError for what is no plain file or is larger."""
    found = path.stat()
    if not stat.S_ISREG(found.st_mode):
        raise ConfigError(f"{path} is no plain file")
    if found.st_size > most:
        raise ConfigError(f"{path} has {found.st_size} bytes, more than the {most} that are read")
    with path.open("rb") as file:
        # So much is made room for before anything is read.
        return file.read(found.st_size)
