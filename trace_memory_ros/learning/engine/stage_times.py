"""Where the time of a training's steps goes."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from threading import Lock
from typing import Any

DRAW, BUILD = "draw", "build"
WAIT, AUGMENT, FORWARD, BACKWARD, OPTIMISER = "wait", "augment", "forward", "backward", "optimiser"
IN_TORCH = (AUGMENT, FORWARD, BACKWARD, OPTIMISER)
STEP = (WAIT, *IN_TORCH)
"""Stages that make up a step, one after the other: a batch is waited for, and then goes through torch."""
BEHIND = (DRAW, BUILD)
"""Stages that make a batch: inside of `WAIT` where no thread makes them ahead."""


class StageTimes:
    """Seconds by stage, from any thread. `settle`: waits for a device, so that work is booked where it was begun."""

    def __init__(self, settle: Callable[[], None] = lambda: None) -> None:
        self._settle = settle
        self._lock = Lock()
        self.seconds: dict[str, float] = {}
        self.steps = 0
        self.ticks = 0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Time what is done within."""
        begun = time.perf_counter()
        try:
            yield
        finally:
            if name in STEP:
                self._settle()
            with self._lock:
                self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - begun

    def stepped(self, ticks: int) -> None:
        """A step was done, over so many ticks of the memory."""
        self.steps += 1
        self.ticks += ticks

    @property
    def step_s(self) -> float:
        """Seconds of all steps."""
        return sum(self.seconds.get(name, 0.0) for name in STEP)

    @property
    def ticks_per_s(self) -> float:
        """Ticks of the memory, written or read, per second of steps; 0 before the first."""
        return self.ticks / self.step_s if self.step_s else 0.0

    def figures(self) -> dict[str, Any]:
        """Shares of the steps' time by stage, and what it took to make batches beside, for a summary."""
        whole = self.step_s or 1.0
        return {
            "steps": self.steps,
            "step_ms": 1e3 * whole / max(self.steps, 1),
            "ticks_per_s": self.ticks_per_s,
            "share": {name: self.seconds.get(name, 0.0) / whole for name in STEP},
            "in_torch": sum(self.seconds.get(name, 0.0) for name in IN_TORCH) / whole,
            "making_batches_ms": {name: 1e3 * self.seconds.get(name, 0.0) / max(self.steps, 1) for name in BEHIND},
        }
