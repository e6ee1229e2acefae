"""A memory snapshot on disk: one safetensors file, replaced whole."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load_file, save_file

from trace_memory_ros.files import atomic
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.snapshot import SnapshotError

NEXT_TICK = "node.next_tick"


def write_snapshot(path: Path, runtime: MemoryRuntime, next_tick: int) -> None:
    """Write the runtime's state and the number of the tick to come. Raises OSError naming the path."""
    arrays = runtime.snapshot() | {NEXT_TICK: np.array([next_tick], dtype=np.int64)}
    try:
        with atomic.replacing(path) as partial:
            save_file(arrays, partial)
    except (OSError, SafetensorError) as error:
        raise OSError(
            f"snapshot {path} cannot be written ({error}): check that its folder exists and is writable"
        ) from error


def read_snapshot(path: Path, runtime: MemoryRuntime) -> int:
    """Restore the runtime and return the number of the tick to come.

    Raises OSError for a file that is not there, `SnapshotError` for one that is damaged or of another model; the
    runtime is then as before.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no snapshot file {path}: call ~/snapshot first, or correct snapshot_path")
    try:
        arrays = load_file(path)
    except SafetensorError as error:
        raise SnapshotError(f"{path} is not a safetensors file ({error}): take the snapshot again") from error
    if NEXT_TICK not in arrays or arrays[NEXT_TICK].shape != (1,):
        raise SnapshotError(f"{path} has no {NEXT_TICK}: memory_node did not write it; take the snapshot again")
    next_tick = int(arrays.pop(NEXT_TICK)[0])
    runtime.restore(arrays)
    return next_tick
