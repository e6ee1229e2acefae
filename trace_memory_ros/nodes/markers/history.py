"""What the RViz panel remembers of an episode: the executed path, where the memory was written and where it refused."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Generic, TypeVar

from trace_memory_ros.msg import MemoryDiagnostics
from trace_memory_ros.nodes.markers import entries

Item = TypeVar("Item")


@dataclass(frozen=True)
class PathPoint:
    """One tick. t_s: seconds since the first tick; travelled: standardised path length (unitless);
    moved: joint distance per curve from its first pose, NaN where unknown."""

    t_s: float
    travelled: float
    moved: Mapping[str, float]


@dataclass(frozen=True)
class WriteEvent:
    """One write, done or refused: when, after how much path, and the entry that got the largest share (-1: none)."""

    t_s: float
    travelled: float
    slot: int


class Thinned(Generic[Item]):
    """A series of any length in bounded room.

    When `most` items are held, every second one is dropped and from then on only every second is kept, and so on: a
    long series is held whole, with between most / 2 and most items. `seen` counts all of them.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._stride = 1
        self.items: list[Item] = []
        self.seen = 0

    def add(self, item: Item) -> None:
        """Take in the next one."""
        if self.seen % self._stride == 0:
            self.items.append(item)
        self.seen += 1
        if len(self.items) >= self._most:
            self.items = self.items[::2]
            self._stride *= 2


def stamp_s(message: MemoryDiagnostics) -> float:
    """Header stamp in seconds."""
    return float(message.header.stamp.sec + message.header.stamp.nanosec * 1e-9)


class EpisodeHistory:
    """Path, writes, refused writes and cue times of one episode, at most `max_points` of each, see `Thinned`."""

    def __init__(self, max_points: int) -> None:
        if max_points < 2:
            raise ValueError(f"max_points = {max_points}: a path needs at least 2")
        self._max_points = max_points
        self._identity: tuple[object, ...] = ()
        self._clear()

    def _clear(self) -> None:
        self._start_s = 0.0
        self._last_tick = -1
        self._points: Thinned[PathPoint] = Thinned(self._max_points)
        self._writes: Thinned[WriteEvent] = Thinned(self._max_points)
        self._refusals: Thinned[WriteEvent] = Thinned(self._max_points)
        self._head: PathPoint | None = None
        self.cue_s: tuple[float, float] | None = None
        self.greatest_norm = 0.0

    @property
    def points(self) -> list[PathPoint]:
        """The kept points, oldest first, and always the newest one."""
        kept = self._points.items
        if self._head is None or (kept and kept[-1] is self._head):
            return list(kept)
        return [*kept, self._head]

    @property
    def writes(self) -> list[WriteEvent]:
        """The kept writes, oldest first."""
        return self._writes.items

    @property
    def refusals(self) -> list[WriteEvent]:
        """The kept writes that were due and that a gate refused, oldest first."""
        return self._refusals.items

    @property
    def writes_seen(self) -> int:
        """All writes, kept or not."""
        return self._writes.seen

    def starts_anew(self, message: MemoryDiagnostics) -> bool:
        """Whether this tick belongs to another episode, or another memory, than those held."""
        return self._identity != _identity(message) or message.tick < self._last_tick

    def observe(self, message: MemoryDiagnostics, moved: Mapping[str, float], cue_visible: bool) -> bool:
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
            self._head = PathPoint(t_s, float(message.path_length), moved)
            self._points.add(self._head)
            event = WriteEvent(t_s, float(message.path_length), entries.written(message))
            if message.wrote:
                self._writes.add(event)
            elif message.due and entries.refused(message):
                self._refusals.add(event)
        return anew


def _identity(message: MemoryDiagnostics) -> tuple[object, ...]:
    return message.instance, message.episode, message.mechanism, message.model_id
