"""How simulated time passes: as fast as commands arrive, or with the wall clock."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.runtime.message_fields import MS_NS

SECOND_NS = 1_000_000_000
STEP_NS = 5 * MS_NS
"""Stamps are rounded to the physics step, so that each names a state that was really simulated."""


class Setpoint(NamedTuple):
    """Targets `(A,)` and the simulated time within which they are to be reached."""

    targets: NDArray[np.float64]
    within_s: float


class World(Protocol):
    """The running episode, as a pace drives it. Times are simulated ns since the episode began."""

    def advance_to(self, time_ns: int) -> None: ...

    def apply(self, setpoint: Setpoint) -> None: ...

    def publish_images(self, time_ns: int) -> None: ...

    def publish_joints(self, time_ns: int) -> None: ...

    def publish_status(self, time_ns: int) -> None: ...

    @property
    def finished(self) -> bool: ...


@dataclass
class PaceCounts:
    """What went wrong with time in this episode."""

    ticks: int = 0
    commands: int = 0
    commands_missed: int = 0
    commands_ignored: int = 0
    overruns: int = 0
    worst_lag_ms: float = 0.0


class Pace(Protocol):
    """One episode's clockwork. `poll` does what is due at wall time `now_ns` and says when to be called again."""

    counts: PaceCounts

    def poll(self, now_ns: int) -> int | None:
        """Work, then the wall time in ns of the next call; None once the episode is over."""

    def command(self, time_ns: int, setpoint: Setpoint, now_ns: int) -> int | None:
        """Take the command that answers the tick at `time_ns`; returns like `poll`."""


class LockStepPace:
    """A tick waits for the command stamped with it, at most `timeout_ns` of wall time; then it goes on, counted."""

    def __init__(self, world: World, period_ns: int, timeout_ns: int) -> None:
        self.counts = PaceCounts()
        self._world = world
        self._period_ns = period_ns
        self._timeout_ns = timeout_ns
        self._time_ns = -period_ns
        self._deadline_ns = 0

    def poll(self, now_ns: int) -> int | None:
        if self._time_ns >= 0:
            if now_ns < self._deadline_ns:
                return self._deadline_ns
            self.counts.commands_missed += 1
        return self._next(now_ns)

    def command(self, time_ns: int, setpoint: Setpoint, now_ns: int) -> int | None:
        if time_ns != self._time_ns:
            self.counts.commands_ignored += 1
            return self._deadline_ns
        self.counts.commands += 1
        self._world.apply(setpoint)
        return self._next(now_ns)

    def _next(self, now_ns: int) -> int | None:
        self._time_ns += self._period_ns
        self._world.advance_to(self._time_ns)
        if self._world.finished:
            return None
        self.counts.ticks += 1
        self._deadline_ns = now_ns + self._timeout_ns
        # Rendering is slow: after it, all streams of a tick follow each other at once.
        self._world.publish_images(self._time_ns)
        self._world.publish_joints(self._time_ns)
        self._world.publish_status(self._time_ns)
        return self._deadline_ns


class RealTimePace:
    """Cameras and joints each stream on a grid that contains the control ticks, with the wall clock.

    A command takes effect at the first grid point after it arrived; one that answers an earlier episode is ignored.
    Late work is done late, in order, and counted as an overrun when later than one grid interval: simulated time never
    skips.
    """

    def __init__(self, world: World, period_ns: int, camera_rate_hz: int, joint_rate_hz: int, start_ns: int) -> None:
        self.counts = PaceCounts()
        self._world = world
        self._start_ns = start_ns
        self._period_ns = period_ns
        self._grid = merged_grid(period_ns, camera_rate_hz, joint_rate_hz)
        self._cameras = set(grid(period_ns, camera_rate_hz))
        self._joints = set(grid(period_ns, joint_rate_hz))
        self._tolerance_ns = period_ns // len(self._grid)
        self._index = 0
        self._pending: Setpoint | None = None
        self._over = False

    def poll(self, now_ns: int) -> int | None:
        if self._over:
            return None
        due = self._due_ns()
        if now_ns < self._start_ns + due:
            return self._start_ns + due
        # One grid point per call: commands and services get their turn between late ones.
        self._run(due, now_ns - self._start_ns - due)
        return None if self._over else self._start_ns + self._due_ns()

    def command(self, time_ns: int, setpoint: Setpoint, now_ns: int) -> int | None:
        if time_ns < 0:
            self.counts.commands_ignored += 1
            return self.poll(now_ns)
        self.counts.commands += 1
        self._pending = setpoint
        return self.poll(now_ns)

    def _due_ns(self) -> int:
        periods, slot = divmod(self._index, len(self._grid))
        return periods * self._period_ns + self._grid[slot]

    def _run(self, due_ns: int, lag_ns: int) -> None:
        slot = self._grid[self._index % len(self._grid)]
        self._index += 1
        self._world.advance_to(due_ns)
        if self._pending is not None:
            self._world.apply(self._pending)
            self._pending = None
        if slot == 0:
            if self._world.finished:
                self._over = True
                return
            self.counts.ticks += 1
        self.counts.worst_lag_ms = max(self.counts.worst_lag_ms, lag_ns / MS_NS)
        self.counts.overruns += lag_ns > self._tolerance_ns
        if slot in self._joints:
            self._world.publish_joints(due_ns)
        if slot in self._cameras:
            # Last, as rendering takes milliseconds, in which a joint's sample would lie.
            self._world.publish_images(due_ns)
        if slot == 0:
            self._world.publish_status(due_ns)


def grid(period_ns: int, rate_hz: int) -> list[int]:
    """Times within one control period at which a stream of `rate_hz` samples, ns, rounded to the physics step.

    Raises `ValueError` unless the period holds a whole number of samples.
    """
    count, rest = divmod(period_ns * rate_hz, SECOND_NS)
    if rest or count < 1:
        raise ValueError(f"{rate_hz} Hz has no whole number of samples in a control period of {period_ns / MS_NS:g} ms")
    return [round(i * period_ns / count / STEP_NS) * STEP_NS for i in range(count)]


def merged_grid(period_ns: int, *rates_hz: int) -> Sequence[int]:
    """All sampling times of several streams within one control period, in order, each once."""
    return sorted({time for rate in rates_hz for time in grid(period_ns, rate)})
