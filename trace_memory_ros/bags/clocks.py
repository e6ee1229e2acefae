"""Whether an episode's commands count from the clock of its streams; where not, what to do about it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.actions import Commands, CommandTrack
from trace_memory_ros.bags.episodes import EpisodeSpan
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.bags.time_base import (
    AGREE_NS,
    RECEIVED_NS,
    SECOND_NS,
    ClockMarks,
    Motion,
    shift_by_motion,
)
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.streams.cdr import CdrError, header_stamp_ns

ALL_RECEIVED = "set stamp: received for all streams and parts"


class Doubt(NamedTuple):
    """Why commands label no tick. topic: theirs; empty for those of all parts."""

    topic: str
    fault: BagFault


class _Apart(NamedTuple):
    """How two clocks differ. shift_ns: what would move the commands to their place."""

    what: str
    shift_ns: int
    remedy: str


class EpisodeClocks:
    """Notes when the streams' messages were stamped and recorded. topics: whose messages it wants."""

    def __init__(self, recording: RecordingConfig, span: EpisodeSpan) -> None:
        self._recording = recording
        self._span = span
        streams = recording.observation.inputs
        self._names = {recording.topic(stream.topic): stream.name for stream in streams if stream.stamp == "header"}
        self._received = [stream for stream in streams if stream.stamp == "received"]
        self._marks = {topic: ClockMarks() for topic in self._names}
        self.topics = tuple(self._names)

    def take(self, raw: RawMessage) -> None:
        """Note a message of a stream that is stamped by its header."""
        try:
            stamp_ns = header_stamp_ns(raw.data)
        except CdrError:
            return
        if stamp_ns:
            self._marks[raw.topic].note(raw.log_ns, stamp_ns)

    def doubts(self, commands: Commands, stamps_ns: Sequence[int], state: NDArray[np.float64]) -> list[Doubt]:
        """What cannot be trusted of the commands; ticks' stamps `(T,)` and states `(T, d_s)` tell of the motion."""
        found = self._doubt_of_streams()
        if found is not None:
            return [found]
        doubts = []
        for topic, track in commands.tracks.items():
            apart = self._apart(track)
            if apart is None:
                continue
            names, shift_ns = self._by_motion(track, stamps_ns, state, apart.shift_ns)
            what = f"{apart.what}{_motion_text(names, shift_ns)}: none of them labels a tick"
            where = f"topic {topic} (actions), episode {self._span.index}"
            doubts.append(Doubt(topic, BagFault(self._span.bag, what, where, apart.remedy)))
        return doubts

    def _reference(self) -> tuple[str, ClockMarks] | None:
        """The stream stamped by its header whose messages are recorded soonest after their stamps."""
        lags = [(marks.lag_ns, topic) for topic, marks in self._marks.items() if marks.lag_ns is not None]
        if not lags:
            return None
        topic = min(lags)[1]
        return self._names[topic], self._marks[topic]

    def _doubt_of_streams(self) -> Doubt | None:
        reference = self._reference()
        if reference is None or not self._received:
            return None
        name, lag_ns = reference[0], reference[1].lag_ns
        assert lag_ns is not None
        off_ns = lag_ns - self._recording.log_offset_ns
        if abs(off_ns) <= self._tolerance_ns():
            return None
        stream = self._received[0]
        what = f"is stamped when received, {self._recorder(off_ns, name)}: no command labels a tick"
        where = f"topic {self._recording.topic(stream.topic)} ({stream.name}), episode {self._span.index}"
        return Doubt("", BagFault(self._span.bag, what, where, f"{ALL_RECEIVED}, or {_offset(lag_ns)}"))

    def _apart(self, track: CommandTrack) -> _Apart | None:
        """How the clocks of a part's commands and of the streams differ; None where they don't, or nothing was sent."""
        reference, lag_ns = self._reference(), track.marks.lag_ns
        offset_ns = self._recording.log_offset_ns
        if track.part.stamp == "received":
            if reference is None or not track.seen:
                return None
            own_ns = reference[1].lag_ns
            assert own_ns is not None
            what = f"commands count from their log times, {self._recorder(own_ns - offset_ns, reference[0])}"
            return self._beyond(what, offset_ns - own_ns, own_ns)
        if lag_ns is None:
            return None
        if reference is not None:
            off_ns = track.marks.lag_beside(reference[1])
            if abs(off_ns) <= AGREE_NS:
                return None
            what = f"commands are stamped {_apart(off_ns)} {_side(-off_ns)} {reference[0]}, as by another clock"
            own_ns = reference[1].lag_ns
            assert own_ns is not None
            remedy = f"stamp all by one clock, {ALL_RECEIVED}, or for this part, with {_offset(own_ns)}"
            return _Apart(what, off_ns, remedy)
        if self._names:
            return None
        what = f"commands count from their header stamps, {self._recorder(lag_ns - offset_ns, 'the commands')}"
        return self._beyond(what, lag_ns - offset_ns, lag_ns)

    def _beyond(self, what: str, shift_ns: int, offset_ns: int) -> _Apart | None:
        remedy = f"{ALL_RECEIVED}, or {_offset(offset_ns)}"
        return _Apart(what, shift_ns, remedy) if abs(shift_ns) > self._tolerance_ns() else None

    def _tolerance_ns(self) -> int:
        return max(self._recording.observation.period_ns, RECEIVED_NS)

    def _recorder(self, off_ns: int, whose: str) -> str:
        given = self._recording.log_offset_ms
        beyond = f" beyond log_offset_ms: {given}" if given else ""
        return f"and the recorder's clock is {_apart(off_ns)} {_side(off_ns)} the header stamps of {whose}{beyond}"

    def _by_motion(
        self, track: CommandTrack, stamps_ns: Sequence[int], state: NDArray[np.float64], around_ns: int
    ) -> tuple[list[str], int | None]:
        """Outputs that move a channel of the state, and the shift at which it follows them best."""
        pairs = _followed(track, self._recording.observation)
        if not pairs:
            return [], None
        outputs, channels = (list(one) for one in zip(*pairs, strict=True))
        stamps, targets = track.first_steps()
        motion = Motion(stamps, targets[:, outputs], np.asarray(stamps_ns, dtype=np.int64), state[:, channels])
        return [track.part.names[output] for output in outputs], shift_by_motion(motion, around_ns)


def _followed(track: CommandTrack, observation: ObservationConfig) -> list[tuple[int, int]]:
    """Outputs of a part and the state channels that follow them; none of relative ones."""
    channels = [None if track.part.relative else observation.channel_moved_by(name) for name in track.part.names]
    return [(output, channel) for output, channel in enumerate(channels) if channel is not None]


def _motion_text(names: Sequence[str], shift_ns: int | None) -> str:
    if not names:
        return ""
    if shift_ns is None:
        return " (the motion does not tell by how much)"
    return f" (moved by {shift_ns / SECOND_NS:+.2f} s they fit the motion of {', '.join(names)} best)"


def _offset(ns: int) -> str:
    return f"log_offset_ms: {round(ns / 1e6)}"


def _apart(ns: int) -> str:
    seconds = abs(ns) / SECOND_NS
    return f"{seconds:.1f} s" if seconds >= 1 else f"{seconds:.3f} s"


def _side(ns: int) -> str:
    return "ahead of" if ns > 0 else "behind"
