"""A file is replaced in one move: whoever reads it finds the old content or the new, never half of either."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def replacing(path: Path) -> Iterator[Path]:
    """A path beside `path`, of the same suffix, to write to: on disk and in its place when the block ends.

    Where the block fails, what was written is gone and `path` is as it was.
    """
    partial = path.with_name(f".{path.stem}.{os.getpid()}{path.suffix}")
    try:
        yield partial
        with partial.open("rb") as written:
            os.fsync(written.fileno())
        partial.replace(path)
    finally:
        partial.unlink(missing_ok=True)


def write(path: Path, content: bytes | str) -> None:
    """Write a whole file in one move; text as UTF-8."""
    with replacing(path) as partial:
        partial.write_bytes(content.encode() if isinstance(content, str) else content)
