"""Machine code kept on disk between processes, where the disk allows it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba


def kept(function: Callable[..., Any], options: dict[str, Any]) -> Any:
    """`function` compiled by numba for what it is called with, and kept on disk if there is a place to keep it."""
    try:
        return numba.njit(cache=True, **options)(function)
    except RuntimeError:  # nowhere to write: a read-only install, no home folder
        return numba.njit(**options)(function)


def compiled(function: Callable[..., Any], signature: str, options: dict[str, Any]) -> Any:
    """As `kept`, compiled or loaded now and for one signature alone."""
    kernel = kept(function, options)
    try:
        kernel.compile(signature)
    except Exception:  # a full disk, or what a power cut left of a file: numba passes on whatever reading it raises
        forget(kernel)
        return numba.njit(signature, **options)(function)
    kernel.disable_compile()
    return kernel


def forget(kernel: Any) -> None:
    """Delete what the disk holds of the functions in the kernel's file; who needs it next compiles it anew."""
    if kernel.stats.cache_path is None:
        return
    source = Path(kernel.py_func.__code__.co_filename).stem
    for kind in ("nbi", "nbc"):
        for file in Path(kernel.stats.cache_path).glob(f"{source}.*.{kind}"):
            try:
                file.unlink(missing_ok=True)
            except OSError:  # a read-only folder: it stays, and is compiled beside it
                return
