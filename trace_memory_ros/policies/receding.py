"""Receding horizon: which action of which chunk is executed at a tick, and when the next chunk is begun."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Chunk = NDArray[np.float32]


class RecedingHorizon:
    """Executes chunks `(H, A)` one after the other, without ever waiting for one.

    A chunk that was computed from tick s holds the actions of the ticks s .. s + H - 1. It is executed for `execute`
    ticks; the next one is begun `lead` ticks before that and takes over when they have passed, or as soon as it is
    there. Until then the old one goes on, as far as it reaches: after ticks that nothing was executed at it may have
    ended, and the next one takes over at once.
    """

    def __init__(self, execute: int, lead: int) -> None:
        self.execute = execute
        self.lead = lead
        self.reset()

    def reset(self) -> None:
        """A new episode: nothing is executed or being computed."""
        self._chunk: Chunk | None = None
        self._seen = self._began = 0
        self._next: tuple[int, Chunk] | None = None
        self._begun_from: int | None = None

    def due(self, tick: int) -> bool:
        """Whether a chunk is to be computed from what is seen at `tick`."""
        if self._begun_from is not None or (self._next is not None and _reaches(*self._next, tick)):
            return False
        if self._chunk is None:
            return True
        ends = min(self._began + self.execute, self._seen + len(self._chunk))
        return tick >= ends - self.lead

    def begin(self, tick: int) -> None:
        """A chunk is being computed from the observation of `tick`."""
        self._begun_from = tick

    def offer(self, tick: int, chunk: Chunk) -> None:
        """Give the chunk that was computed from `tick`; one that was not begun, or before a reset, is ignored."""
        if tick == self._begun_from:
            self._begun_from, self._next = None, (tick, chunk)

    def abandon(self, tick: int) -> None:
        """The chunk begun from `tick` failed and will not come."""
        if tick == self._begun_from:
            self._begun_from = None

    def awaited(self, tick: int) -> bool:
        """Whether a chunk that is still being computed should be executed at `tick`."""
        begun = self._begun_from
        return begun is not None and (not _reaches(self._seen, self._chunk, tick) or tick >= begun + self.lead)

    def action(self, tick: int) -> Chunk | None:
        """The action `(A,)` of `tick`; None where no chunk reaches it."""
        if self._next is not None:
            seen, chunk = self._next
            if not _reaches(self._seen, self._chunk, tick) or tick >= seen + self.lead:
                self._chunk, self._seen, self._began, self._next = chunk, seen, tick, None
        if self._chunk is None or not _reaches(self._seen, self._chunk, tick):
            return None
        return self._chunk[tick - self._seen]


def _reaches(seen: int, chunk: Chunk | None, tick: int) -> bool:
    """Whether a chunk that was computed from the tick `seen` holds an action for `tick`."""
    return chunk is not None and 0 <= tick - seen < len(chunk)
