"""What a memory goes on from: snapshots while it ticks, and after a fault the youngest of them.

An episode that ends in order (reset, deactivation, SIGINT, SIGTERM) takes its snapshot with it, so that what is
found at activation was left by a fault: a killed process or launcher, a crash, an error, a power cut.
"""

from __future__ import annotations

import fcntl
from concurrent.futures import Future
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.memory.snapshot_file import SnapshotHead, read_snapshot
from trace_memory_ros.nodes.memory.snapshot_writer import SnapshotWriter
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime
from trace_memory_ros.runtime.snapshot import SnapshotError

SECOND_NS = 1_000_000_000
CLOCK_SLACK_S = 5.0
"""A snapshot from further ahead than this was written by another clock."""


@dataclass(frozen=True)
class Keeping:
    """Where and how often snapshots are kept, and which are gone on from. folder: None keeps none.

    max_age_s: 0 restores none. max_gap_ticks: control ticks that may lie between snapshot and first tick after.
    """

    folder: Path | None = None
    period_s: float = 1.0
    max_age_s: float = 30.0
    max_gap_ticks: int = 3_000


class Continuity:
    """Keeps and restores the memory of `runtime`; times are ns, `wall_ns` of the wall clock.

    name: of the node, one file each. story: in words, how this episode's memory began. lost: whether that lost
    something. fault: why the newest snapshot could not be kept, empty if it could.
    """

    def __init__(self, keeping: Keeping, name: str, runtime: MemoryRuntime) -> None:
        self.keeping = keeping
        self._runtime = runtime
        self._period_ns = runtime.config.observation.period_ns
        self._lock: IO[bytes] | None = None
        path = (keeping.folder or Path()) / f"{name.strip('/').replace('/', '.')}.safetensors"
        if keeping.folder is not None:
            self._lock = _claimed(path.with_suffix(".lock"))
            _sweep(path)
        self._writer = SnapshotWriter(path)
        self._next_ns = 0
        self._removal_fault = ""
        self._resuming: SnapshotHead | None = None
        self.story, self.lost = "", False
        self.restored, self.gap_ticks = False, 0

    @property
    def fault(self) -> str:
        return self._writer.fault or self._removal_fault

    def age_s(self, wall_ns: int) -> float | None:
        """Age of the snapshot on disk; None where there is none."""
        written = self._writer.written
        return None if written is None else (wall_ns - written.written_ns) / SECOND_NS

    def begin(self) -> None:
        """A new episode with an empty memory: what was kept of the one before is gone."""
        self._begin("began empty")
        self.forget()

    def forget(self) -> None:
        """The episode ended in order: nothing is to go on from it."""
        if self.keeping.folder is None:
            return
        try:
            self._writer.discard()
            self._removal_fault = ""
        except OSError as error:
            self._removal_fault = f"snapshot {self._writer.path} cannot be removed ({error}): remove it by hand"

    def recover(self, wall_ns: int) -> None:
        """Go on from a snapshot that a fault left behind, if it is young and of this model; `story` tells."""
        path = self._writer.path
        self._begin("began empty")
        if self.keeping.folder is None or not path.exists():
            return
        if not self.keeping.max_age_s:
            self._begin(f"began empty: restore_max_age_s = 0, so {path} was not looked at", lost=True)
            return
        try:
            head = read_snapshot(path, self._runtime)
        except (OSError, SnapshotError) as error:
            self._begin(f"began empty: {error}; {_set_aside(path)}", lost=True)
            return
        age_s = (wall_ns - head.written_ns) / SECOND_NS
        if not -CLOCK_SLACK_S <= age_s <= self.keeping.max_age_s:
            self._refuse(f"snapshot {path} is {age_s:.1f} s old, restore_max_age_s = {self.keeping.max_age_s:g}")
            return
        self._begin(f"restored from a snapshot {max(0.0, age_s):.1f} s old")
        self.restored, self._resuming = True, head

    def take_over(self, path: Path) -> int:
        """Go on from the snapshot at `path`, as if no time had passed; returns the tick to come. Raises OSError and
        SnapshotError."""
        head = read_snapshot(path, self._runtime)
        self._begin(f"restored from {path}")
        self.restored = True
        return head.next_tick

    def resume(self, next_tick: int, stamp_ns: int) -> None:
        """Go on after a silence of all streams; the next tick says how many ticks it took."""
        self._resuming = SnapshotHead(next_tick, stamp_ns, 0)

    def first_tick(self, stamp_ns: int) -> int | None:
        """The number of the tick at `stamp_ns`, the first after a restoration or a silence; None for any other.

        A gap beyond `max_gap_ticks`, or stamps that went back, empty the memory and begin a new episode at tick 0.
        """
        head, self._resuming = self._resuming, None
        if head is None:
            return None
        gap = 0 if head.stamp_ns < 0 else round((stamp_ns - head.stamp_ns) / self._period_ns) - 1
        if not 0 <= gap <= self.keeping.max_gap_ticks:
            limit = f"restore_max_gap_ticks = {self.keeping.max_gap_ticks}"
            self._refuse(f"{gap} control ticks lie between what it knew and the first tick after, {limit}")
            return 0
        self.gap_ticks += gap
        self.lost = self.lost or gap > 0
        if gap:
            self.story = f"{self.story}; {self.gap_ticks} control ticks of this episode are missing in it"
        return head.next_tick + gap

    def keep(self, next_tick: int, stamp_ns: int, wall_ns: int, now_ns: int) -> None:
        """After a tick: hand a snapshot to the disk where one is due at monotonic `now_ns`."""
        if self.keeping.folder is None or not self.keeping.period_s or now_ns < self._next_ns:
            return
        self._next_ns = now_ns + round(self.keeping.period_s * SECOND_NS)
        self._writer.offer(self._runtime.snapshot(), SnapshotHead(next_tick, stamp_ns, wall_ns))

    def write(self, path: Path, next_tick: int, stamp_ns: int, wall_ns: int) -> Future[None]:
        """Write a snapshot to `path`, off this thread; the future carries OSError."""
        return self._writer.write(path, self._runtime.snapshot(), SnapshotHead(next_tick, stamp_ns, wall_ns))

    def close(self) -> None:
        """Let another node have the folder."""
        self._writer.close()
        if self._lock is not None:
            self._lock.close()
            self._lock = None

    def _begin(self, story: str, lost: bool = False) -> None:
        self.story, self.lost = story, lost
        self.restored, self.gap_ticks = False, 0
        self._resuming = None

    def _refuse(self, why: str) -> None:
        self._runtime.reset()
        self._begin(f"began empty: {why}", lost=True)


def _claimed(path: Path) -> IO[bytes]:
    """The open lock file, held until it is closed or the process ends. Raises ConfigError."""
    remedy = "correct snapshot_dir, or leave it empty to keep no snapshots"
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise ConfigError(f"snapshot_dir {path.parent} cannot be written ({error}): {remedy}") from error
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        file.close()
        raise ConfigError(
            f"another memory_node of this name keeps its snapshots in {path.parent}: run one memory_node per "
            "namespace, or give each a snapshot_dir"
        ) from error
    return file


def _sweep(path: Path) -> None:
    """Remove what a process that was killed while it wrote left half-done."""
    for partial in path.parent.glob(f".{path.stem}.next.*{path.suffix}"):
        partial.unlink(missing_ok=True)


def _set_aside(path: Path) -> str:
    """Move a file that cannot be used out of the way, so that it can be looked at; says where it is."""
    aside = path.with_name(f"{path.stem}.refused{path.suffix}")
    try:
        path.replace(aside)
    except OSError as error:
        return f"it could not be set aside ({error})"
    return f"it was set aside as {aside}"
