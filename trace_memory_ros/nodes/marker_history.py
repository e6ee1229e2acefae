"""What the RViz panel remembers of an episode: the executed path and where the memory was written."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from trace_memory_ros.msg import MemoryDiagnostics


@dataclass(frozen=True)
class PathPoint:
    """One tick. t_s: seconds since the first tick; travelled: standardised path length (unitless);
    left_rad, right_rad: joint distance of each arm from its first pose, NaN where unknown."""

    t_s: float
    travelled: float
    left_rad: float
    right_rad: float


@dataclass(frozen=True)
class WriteEvent:
    """One write: when, after how much path, and the slot that got the largest share (-1: none)."""

    t_s: float
    travelled: float
    slot: int


def main_slot(route: Sequence[float]) -> int:
    """The slot with the largest share of a write, -1 where no share is a number."""
    shares = [(share, -slot) for slot, share in enumerate(route) if math.isfinite(share)]
    return -max(shares)[1] if shares else -1


def stamp_s(message: MemoryDiagnostics) -> float:
    """Header stamp in seconds."""
    return float(message.header.stamp.sec + message.header.stamp.nanosec * 1e-9)


class EpisodeHistory:
    """Path, writes and cue times of one episode, in bounded room.

    When `max_points` path points are held, every second one is dropped and from then on only every second tick is
    kept, and so on: an episode of any length is drawn whole, with between max_points / 2 and max_points points.
    Writes thin out the same way; `writes_seen` counts all of them.
    """

    def __init__(self, max_points: int) -> None:
        if max_points < 2:
            raise ValueError(f"max_points = {max_points}: a path needs at least 2")
        self._max_points = max_points
        self._identity: tuple[object, ...] = ()
        self._clear()

    def _clear(self) -> None:
        self._start_s = 0.0
        self._last_tick = -1
        self._points: list[PathPoint] = []
        self._head: PathPoint | None = None
        self._stride = 1
        self._ticks = 0
        self.writes: list[WriteEvent] = []
        self._write_stride = 1
        self.writes_seen = 0
        self.cue_s: tuple[float, float] | None = None
        self.greatest_norm = 0.0

    @property
    def points(self) -> list[PathPoint]:
        """The kept points, oldest first, and always the newest one."""
        if self._head is None or (self._points and self._points[-1] is self._head):
            return list(self._points)
        return [*self._points, self._head]

    def starts_anew(self, message: MemoryDiagnostics) -> bool:
        """Whether this tick belongs to another episode, or another memory, than those held."""
        return self._identity != _identity(message) or message.tick < self._last_tick

    def observe(self, message: MemoryDiagnostics, arms_rad: tuple[float, float], cue_visible: bool) -> bool:
        """Take in one tick; returns whether it began a new episode. A repeated tick changes nothing."""
        anew = self.starts_anew(message)
        if anew:
            self._clear()
            self._identity = _identity(message)
            self._start_s = stamp_s(message)
        if message.tick == self._last_tick:
            return anew
        self._last_tick = message.tick
        self.greatest_norm = max([self.greatest_norm, *(n for n in message.slot_norms if math.isfinite(n))])
        t_s = stamp_s(message) - self._start_s
        if cue_visible:
            self.cue_s = (self.cue_s[0] if self.cue_s else t_s, t_s)
        if math.isfinite(message.path_length):
            self._keep(PathPoint(t_s, float(message.path_length), *arms_rad))
            if message.wrote:
                self._keep_write(WriteEvent(t_s, float(message.path_length), main_slot(message.route)))
        return anew

    def _keep(self, point: PathPoint) -> None:
        self._head = point
        if self._ticks % self._stride == 0:
            self._points.append(point)
        self._ticks += 1
        if len(self._points) >= self._max_points:
            self._points = self._points[::2]
            self._stride *= 2

    def _keep_write(self, event: WriteEvent) -> None:
        if self.writes_seen % self._write_stride == 0:
            self.writes.append(event)
        self.writes_seen += 1
        if len(self.writes) >= self._max_points:
            self.writes = self.writes[::2]
            self._write_stride *= 2


def _identity(message: MemoryDiagnostics) -> tuple[object, ...]:
    return message.episode, message.mechanism, message.model_id
