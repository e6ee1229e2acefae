"""Snapshots written by a thread of their own: a slow or full disk delays no tick."""

from __future__ import annotations

import threading
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path

from trace_memory_ros.nodes.memory.snapshot_file import SnapshotHead, check_replaceable, write_snapshot
from trace_memory_ros.runtime.snapshot import Arrays


class SnapshotWriter:
    """Keeps the newest snapshot at `path`; of those that wait for the disk, only the newest is written.

    written: the head of the one on disk. fault: why the last attempt failed, empty after one that did not. Both may be
    read by any thread.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.written: SnapshotHead | None = None
        self.fault = ""
        self._next = path.with_name(f"{path.stem}.next{path.suffix}")
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="snapshot")
        self._lock = threading.Lock()
        self._waiting: tuple[Arrays, SnapshotHead] | None = None
        self._busy = False
        self._generation = 0

    def offer(self, arrays: Arrays, head: SnapshotHead) -> None:
        """Write this snapshot as soon as the disk has time, unless a newer one comes first."""
        with self._lock:
            self._waiting = arrays, head
            if self._busy:
                return
            self._busy = True
        self._pool.submit(self._drain)

    def write(self, path: Path, arrays: Arrays, head: SnapshotHead) -> Future[None]:
        """Write a snapshot elsewhere, over none but another; the future carries OSError where that failed."""
        return self._pool.submit(_write_over_none_but_another, path, arrays, head)

    def discard(self) -> None:
        """Let no snapshot of before be found any more, one that is being written included. Raises OSError."""
        with self._lock:
            self._generation += 1
            self._waiting, self.written = None, None
            self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Write no more; what the disk still has in hand is not waited for."""
        self._pool.shutdown(wait=False, cancel_futures=True)

    def _drain(self) -> None:
        while True:
            with self._lock:
                job, self._waiting, generation = self._waiting, None, self._generation
                if job is None:
                    self._busy = False
                    return
            try:
                self._replace(*job, generation)
                self.fault = ""
            except Exception as error:  # a thread that ends would end all snapshots, unsaid
                self.fault = str(error)

    def _replace(self, arrays: Arrays, head: SnapshotHead, generation: int) -> None:
        """Synced to disk beside the old one first: the lock is held for a rename alone."""
        write_snapshot(self._next, arrays, head)
        with self._lock:
            if generation == self._generation:
                self._next.replace(self.path)
                self.written = head
            else:
                self._next.unlink()


def _write_over_none_but_another(path: Path, arrays: Arrays, head: SnapshotHead) -> None:
    check_replaceable(path)
    write_snapshot(path, arrays, head)
