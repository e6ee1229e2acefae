"""The action label of every tick: of each command topic the newest command that is stamped at or before it, or at most
`ahead_ms` after it.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.described import Described
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import FIRST_NS, RawMessage
from trace_memory_ros.bags.time_base import ClockMarks, fallen_back
from trace_memory_ros.runtime.actions import ActionPart
from trace_memory_ros.runtime.message_fields import MS_NS
from trace_memory_ros.streams.base import ReadError, RecordedReader, Steps, StepsReader
from trace_memory_ros.streams.cdr import Cdr, CdrError


@dataclass(order=True)
class _Command:
    """steps: offset from the stamp (ns), and targets from there on; none for a command that cannot be used."""

    stamp_ns: int
    serial: int
    steps: Steps = field(compare=False)


class CommandTrack:
    """Commands of one part in one episode, those stamped before its begin left out.

    seen: how many there are with these, received: without them. refused: how many could not be read; fault: why the
    first of them. unstamped: header stamps of zero, which cannot be used. marks: when they were stamped and recorded.
    Those that a clock stamped again after it had fallen back are left out, as samples of streams are.
    """

    def __init__(
        self, part: ActionPart, log_offset_ns: int = 0, begin_stamp_ns: int = FIRST_NS, definition: str = ""
    ) -> None:
        self.part = part
        self._log_offset_ns = log_offset_ns
        self._begin_stamp_ns = begin_stamp_ns
        self._reader = part.kind.reader(part.fields)
        self._in_steps = isinstance(self._reader, StepsReader)
        self._described = None if isinstance(self._reader, RecordedReader) else Described(part.type, definition)
        self.seen = 0
        self.received = 0
        self.refused = 0
        self.unstamped = 0
        self.fault: CdrError | ReadError | None = None
        self.marks = ClockMarks()
        self._commands: list[_Command] = []
        self._unplaced: list[tuple[int, int]] = []

    def take(self, raw: RawMessage) -> None:
        """Add a recorded command."""
        self.seen += 1
        try:
            if raw.type_name != self.part.type:
                raise CdrError(f"message is {raw.type_name}, needed is {self.part.type}")
            cdr = Cdr(raw.data)
            header_ns = cdr.header().stamp_ns if self.part.kind.stamped else 0
        except CdrError as error:
            self.received += 1
            self._refuse(error)
            return
        received = self.part.stamp == "received"
        if header_ns and not received:
            self.marks.note(raw.log_ns, header_ns)
        stamp_ns = raw.log_ns - self._log_offset_ns if received else header_ns
        if stamp_ns and stamp_ns < self._begin_stamp_ns:
            return
        self.received += 1
        if stamp_ns == 0:
            self.unstamped += 1
            self._unplaced.append((raw.log_ns, self.received))
            return
        try:
            steps = self._steps(cdr, raw)
        except (CdrError, ReadError) as error:
            self._refuse(error)
            steps = []
        self._commands.append(_Command(stamp_ns, self.received, steps))

    @property
    def fallen(self) -> int:
        """How many a clock stamped that had fallen back."""
        return len(self._commands) - len(self._rising)

    def targets(self, stamps_ns: Sequence[int]) -> NDArray[np.float64]:
        """`(T, A)`: per tick stamp the newest command at or before it, or up to `ahead_ms` after it.

        NaN where there is none or it cannot be used.
        """
        out = np.full((len(stamps_ns), len(self.part.fields)), np.nan)
        commands = self._placed()
        times = [command.stamp_ns - self.part.ahead_ms * MS_NS for command in commands]
        for row, stamp_ns in zip(out, stamps_ns, strict=True):
            newest = bisect_right(times, stamp_ns) - 1
            for offset_ns, targets in commands[newest].steps if newest >= 0 else ():
                if offset_ns <= stamp_ns - times[newest]:
                    row[:] = targets
        return out

    def first_steps(self) -> tuple[NDArray[np.int64], NDArray[np.float64]]:
        """Stamps `(N,)` and first targets `(N, A)` of the commands that can be used."""
        usable = [command for command in self._rising if command.steps]
        stamps = np.array([command.stamp_ns for command in usable], dtype=np.int64)
        return stamps, np.array([c.steps[0][1] for c in usable]).reshape(len(usable), len(self.part.fields))

    @cached_property
    def _rising(self) -> list[_Command]:
        """Commands by stamp, without those of a clock that fell back. To be asked for when all were taken."""
        if self.part.stamp == "received":
            return sorted(self._commands)
        again = fallen_back(np.array([command.stamp_ns for command in self._commands], dtype=np.int64))
        return sorted(command for command, left_out in zip(self._commands, again, strict=True) if not left_out)

    def _placed(self) -> list[_Command]:
        """All commands by stamp; one without a stamp stands about where it belongs, so that none before it is held."""
        lag_ns = self.marks.lag_ns
        if lag_ns is None:
            return self._rising
        return sorted([*self._rising, *(_Command(log - lag_ns, serial, []) for log, serial in self._unplaced)])

    def _steps(self, cdr: Cdr, raw: RawMessage) -> Steps:
        reader = self._reader
        if self._described is not None:
            message = self._described.message(raw.data)
            steps = reader.steps_live(message) if isinstance(reader, StepsReader) else [(0, reader.live(message))]
        elif self._in_steps:
            steps = reader.steps_recorded(cdr)  # type: ignore[attr-defined]
        else:
            steps = [(0, reader.recorded(cdr))]  # type: ignore[attr-defined]
        with np.errstate(over="ignore"):  # becomes infinite, and is refused
            if not all(np.isfinite(targets.astype(np.float32)).all() for _, targets in steps):
                raise ReadError("a target is not finite as float32: correct the publisher of the commands")
        return steps

    def _refuse(self, error: CdrError | ReadError) -> None:
        self.refused += 1
        self.fault = self.fault or error


class Commands:
    """The commands of all parts in one episode. definitions: of topics, as the bag has them."""

    def __init__(
        self,
        recording: RecordingConfig,
        begin_stamp_ns: int = FIRST_NS,
        definitions: Mapping[str, str] | None = None,
    ) -> None:
        assert recording.actions is not None
        self._actions = recording.actions
        self._rows = self._actions.relative_rows(recording.observation)
        texts = definitions or {}
        self.tracks = {
            recording.topic(part.topic): CommandTrack(
                part, recording.log_offset_ns, begin_stamp_ns, texts.get(recording.topic(part.topic), "")
            )
            for part in self._actions.parts
        }

    def labels(self, stamps_ns: Sequence[int], state: NDArray[np.float64]) -> NDArray[np.float32]:
        """`(T, A)` of ticks and their states `(T, d_s)`; NaN where a command, or the state it is relative to, lacks."""
        targets = np.concatenate([track.targets(stamps_ns) for track in self.tracks.values()], axis=1)
        relative = self._rows >= 0
        targets[:, relative] -= state[:, self._rows[relative]]
        return targets.astype(np.float32)

    def columns(self, topic: str) -> slice:
        """Where the labels of a topic's commands stand."""
        return self._actions.columns[list(self.tracks).index(topic)]
