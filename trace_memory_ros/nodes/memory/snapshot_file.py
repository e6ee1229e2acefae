"""A memory snapshot on disk: one safetensors file with a checksum, replaced whole."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import load, save_file

from trace_memory_ros.files import atomic
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.snapshot import Arrays, SnapshotError

FILE_VERSION = 1
HEAD = "node.head"
CHECKSUM = "node.sha256"
SPARE_BYTES = 2**20
"""What a file may be longer than the arrays in it: names, shapes and alignment."""


@dataclass(frozen=True)
class SnapshotHead:
    """Where a memory stood: the tick to come, the stamp of the one before it (-1: none yet), and the wall clock."""

    next_tick: int
    stamp_ns: int
    written_ns: int


def write_snapshot(path: Path, arrays: Arrays, head: SnapshotHead) -> None:
    """Write a runtime's snapshot, on disk when it returns. Raises OSError naming the path."""
    numbers = [FILE_VERSION, head.next_tick, head.stamp_ns, head.written_ns]
    whole = arrays | {HEAD: np.array(numbers, dtype=np.int64)}
    try:
        with atomic.replacing(path) as partial:
            save_file(whole | {CHECKSUM: checksum(whole)}, partial)
    except (OSError, SafetensorError) as error:
        raise OSError(
            f"snapshot {path} cannot be written ({error}): check that its folder exists, is writable and has room"
        ) from error


def check_replaceable(path: Path) -> None:
    """Raise OSError where something lies at `path` that is no snapshot: to write one there would lose it."""
    if not path.is_file() or not path.stat().st_size:
        return
    try:
        with safe_open(path, "numpy") as file:
            written_by_a_node = HEAD in file.keys()  # noqa: SIM118 - it is no mapping
    except SafetensorError:
        written_by_a_node = False
    if not written_by_a_node:
        raise OSError(f"{path} is no snapshot, and stays as it is: correct snapshot_path, or remove the file")


def read_snapshot(path: Path, runtime: MemoryRuntime) -> SnapshotHead:
    """Restore the runtime and say where it stands.

    Raises OSError for a file that is not there, `SnapshotError` for one that is damaged or of another model; the
    runtime is then as before.
    """
    if not path.is_file():
        raise FileNotFoundError(f"there is no snapshot file {path}: call ~/snapshot first, or correct snapshot_path")
    most = 2 * sum(array.nbytes for array in runtime.snapshot().values()) + SPARE_BYTES
    if path.stat().st_size > most:
        raise SnapshotError(f"{path} has {path.stat().st_size} bytes, one of this model at most {most}: not one of it")
    try:
        arrays = load(path.read_bytes())
    except Exception as error:  # whatever safetensors and numpy make of damaged bytes
        raise SnapshotError(f"{path} is not a safetensors file ({error}): take the snapshot again") from error
    head = _checked_head(path, arrays)
    runtime.restore({name: array for name, array in arrays.items() if name not in (HEAD, CHECKSUM)})
    return head


def checksum(arrays: Mapping[str, np.ndarray]) -> np.ndarray:
    """SHA-256 over names, types, shapes and contents, `(32,)` uint8."""
    digest = hashlib.sha256()
    for name in sorted(arrays):
        array = np.ascontiguousarray(arrays[name])
        digest.update(f"{name} {array.dtype} {array.shape}\n".encode())
        digest.update(array.tobytes())
    return np.frombuffer(digest.digest(), dtype=np.uint8)


def _checked_head(path: Path, arrays: Arrays) -> SnapshotHead:
    head = arrays.get(HEAD)
    if head is None or head.shape != (4,) or head.dtype != np.int64 or CHECKSUM not in arrays:
        raise SnapshotError(f"{path} has no {HEAD} and {CHECKSUM}: this memory_node did not write it; take it again")
    version, next_tick, stamp_ns, written_ns = (int(number) for number in head)
    if version != FILE_VERSION:
        raise SnapshotError(f"{path} is of version {version}, this node reads {FILE_VERSION}: take the snapshot again")
    content = {name: array for name, array in arrays.items() if name != CHECKSUM}
    if not np.array_equal(arrays[CHECKSUM], checksum(content)) or next_tick < 0:
        raise SnapshotError(f"{path} is damaged: its content has another checksum than it says; take it again")
    return SnapshotHead(next_tick, stamp_ns, written_ns)
