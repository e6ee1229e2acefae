"""The action label of every tick: the newest recorded command that is stamped at or before it."""

from __future__ import annotations

from bisect import bisect_right, insort
from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.recording import ActionConfig
from trace_memory_ros.bags.storage import FIRST_NS, RawMessage
from trace_memory_ros.files.strict import nearest
from trace_memory_ros.streams.cdr import Cdr, CdrError
from trace_memory_ros.streams.joint_trajectory import recorded_points

Steps = list[tuple[int, NDArray[np.float32]]]


@dataclass(order=True)
class _Command:
    """steps: offset from the stamp (ns), and targets from there on; none for a command that cannot be used."""

    stamp_ns: int
    serial: int
    steps: Steps = field(compare=False)


class CommandTrack:
    """Commands of one episode, those stamped before its begin left out.

    refused: how many could not be used; fault: why the first of them. unstamped: header stamps of zero.
    """

    def __init__(self, config: ActionConfig, begin_stamp_ns: int = FIRST_NS) -> None:
        self.config = config
        self._begin_stamp_ns = begin_stamp_ns
        self.received = 0
        self.refused = 0
        self.unstamped = 0
        self.fault = ""
        self._commands: list[_Command] = []

    def take(self, raw: RawMessage) -> None:
        """Add a recorded command. One stamped 0 means `now` and counts from its log time."""
        try:
            cdr = Cdr(raw.data)
            stamp_ns = cdr.header().stamp_ns
        except CdrError as error:
            self.received += 1
            self._refuse(str(error))
            return
        if stamp_ns and stamp_ns < self._begin_stamp_ns:
            return
        self.received += 1
        if stamp_ns == 0:
            self.unstamped += 1
            stamp_ns = raw.log_ns
        try:
            steps = self._steps(cdr)
        except CdrError as error:
            self._refuse(str(error))
            steps = []
        insort(self._commands, _Command(stamp_ns, self.received, steps))

    def labels(self, stamps_ns: Sequence[int]) -> NDArray[np.float32]:
        """`(T, A)`: per tick stamp the newest command at or before it; NaN where there is none or it was refused."""
        out = np.full((len(stamps_ns), len(self.config.names)), np.nan, dtype=np.float32)
        times = [command.stamp_ns for command in self._commands]
        for row, stamp_ns in zip(out, stamps_ns, strict=True):
            newest = bisect_right(times, stamp_ns) - 1
            for offset_ns, targets in self._commands[newest].steps if newest >= 0 else ():
                if offset_ns <= stamp_ns - times[newest]:
                    row[:] = targets
        return out

    def _steps(self, cdr: Cdr) -> Steps:
        if self.config.kind == "joint_state":
            return [(0, self._targets(cdr.texts(), cdr.doubles()))]
        names, points = recorded_points(cdr)
        if not points:
            raise CdrError("command without a trajectory point")
        # A point is aimed at from the moment that the one before it was to be reached.
        begins = [0, *(point.from_start_ns for point in points[:-1])]
        return [(begin, self._targets(names, p.arrays["position"])) for begin, p in zip(begins, points, strict=True)]

    def _targets(self, names: Sequence[str], positions: NDArray[np.float64]) -> NDArray[np.float32]:
        if len(names) != len(positions):
            raise CdrError(f"command with {len(names)} joint names and {len(positions)} positions")
        given = dict(zip(names, positions.tolist(), strict=True))
        missing = [name for name in self.config.names if name not in given]
        if missing:
            raise CdrError(f"command without {', '.join(missing)}; {nearest(missing[0], names)}")
        with np.errstate(over="ignore"):  # becomes infinite, and is refused
            targets = np.array([given[name] for name in self.config.names], dtype=np.float32)
        if not np.isfinite(targets).all():
            raise CdrError("command with a target that is not finite")
        return targets

    def _refuse(self, why: str) -> None:
        self.refused += 1
        self.fault = self.fault or why
