"""What is wrong with a decoded episode, counted per stream."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.actions import Commands, CommandTrack
from trace_memory_ros.bags.clocks import Doubt
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.ticks import RAGGED_MS, SpanTicks
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.streams.base import ReadError

ACTIONS, NO_LABEL = "actions", "labels a tick"
ONE_CLOCK = "stamp every message when its sample is taken, all by one clock"
AHEAD = "are stamped far ahead of the other streams", ONE_CLOCK
AFTER_A_PAUSE = (
    "come after a long pause of all streams, and are left out",
    "cut the bag into episodes there (episodes.kind: gap)",
)
SILENCE = ("no sample on ", "the newest sample on ")


def episode_faults(
    recording: RecordingConfig,
    ticks: SpanTicks,
    seen: Sequence[Observation],
    commands: Commands | None,
    actions: NDArray[np.float32] | None,
    doubts: Sequence[Doubt] = (),
) -> list[BagFault]:
    """Faults of an episode whose ticks are `seen`: of its streams, of its ticks, of its commands and their clocks."""
    found = list(_stream_faults(recording, ticks))
    found += ticks.faults
    found += _tick_faults(ticks, seen)
    if commands is not None and actions is not None:
        found += [doubt.fault for doubt in doubts]
        for topic, track in commands.tracks.items():
            doubted = any(doubt.topic in ("", topic) for doubt in doubts)
            labels = None if doubted else actions[:, commands.columns(topic)]
            found += _command_faults(ticks, topic, track, labels)
    return found


def label_faults(notes: Sequence[BagFault]) -> list[BagFault]:
    """Those of an episode's notes that tell why ticks have no action."""
    return [note for note in notes if f"({ACTIONS})" in note.where or NO_LABEL in note.what]


def _stream_faults(recording: RecordingConfig, ticks: SpanTicks) -> Iterator[BagFault]:
    span, fed_by = ticks.span, ticks.feeder.counters
    # Where all are ahead, it is of none of the others.
    paused = all(fed_by[stream.name].ahead for stream in recording.observation.inputs)
    for stream in recording.observation.inputs:
        counted, fed = ticks.observer.counters[stream.name], fed_by[stream.name]
        where = f"topic {recording.topic(stream.topic)} ({stream.name}), episode {span.index}"
        total = fed.fed + fed.malformed + fed.unstamped

        def fault(count: int, what: str, remedy: str, where: str = where, total: int = total) -> BagFault:
            return BagFault(span.bag, f"{count} of {total} messages {what}", where, remedy)

        if not total:
            remedy = "check its publisher; an episode needs every stream"
            yield BagFault(span.bag, "has no message in the episode", where, remedy)
        if fed.malformed:
            what = f"cannot be read ({ticks.feeder.faults[stream.name]})"
            yield fault(fed.malformed, what, "restore the bag from a copy, or record again")
        if fed.unstamped:
            yield fault(fed.unstamped, "have a stamp of zero", f"let the driver fill header.stamp: {ONE_CLOCK}")
        refused, texts = counted.rejected - fed.placed - fed.unstamped, _content_faults(ticks, stream.name)
        ahead = min(fed.ahead, refused) if texts else refused
        if refused > ahead:
            what, remedy = _split(texts[0])
            yield fault(refused - ahead, f"are unusable ({what})", remedy)
        if ahead:
            yield fault(ahead, *(AFTER_A_PAUSE if paused else AHEAD))
        if counted.out_of_order:
            what = "are stamped as one before them, or earlier: they are left out"
            yield fault(counted.out_of_order, what, f"one publisher per topic, rising stamps: {ONE_CLOCK}")
        if counted.late:
            yield fault(
                counted.late, "were recorded after their tick had fired", "speed the stream up, or record again"
            )


def _content_faults(ticks: SpanTicks, stream: str) -> list[str]:
    """Texts about messages of a stream, without its name; those about its silence left out."""
    texts = [text.removeprefix(f"{stream}: ") for text in ticks.observer.faults if text.startswith(f"{stream}: ")]
    return [text for text in texts if not text.startswith(SILENCE)]


def _split(text: str) -> tuple[str, str]:
    """What is wrong, and the remedy, of a fault's text; either sign may part them."""
    at = max(text.rfind("; "), text.rfind(": "))
    return (text[:at], text[at + 2 :]) if at > 0 else (text, "check the publisher, or record again")


def _tick_faults(ticks: SpanTicks, seen: Sequence[Observation]) -> Iterator[BagFault]:
    span, observer = ticks.span, ticks.observer
    where = f"episode {span.index}"
    if not seen:
        what, _, remedy = observer.aligner.waiting_for.rpartition(": ")
        what = what or "is shorter than one tick: no tick has all its streams"
        remedy = remedy if observer.aligner.waiting_for else "record longer, and all streams over the same time"
        yield BagFault(span.bag, what, where, remedy)
    texts = Counter(text for k, o in enumerate(seen) for name, text in o.faults.items() if not _starts(ticks, name, k))
    first = {text: k for k, o in reversed(list(enumerate(seen))) for text in o.faults.values()}
    for text, count in texts.most_common():
        stream, _, rest = text.partition(": ")
        what, remedy = _split(rest)
        yield BagFault(
            span.bag,
            f"{count} of {len(seen)} ticks cannot be used: {stream}: {what}",
            f"{where}, tick {first[text]}",
            remedy,
        )


def _starts(ticks: SpanTicks, stream: str, tick: int) -> bool:
    """Whether a stream without a sample at `tick` may just have begun after the first camera, as streams do."""
    config = ticks.observer.config
    limit_ms = next(s.stale_after_ms for s in config.inputs if s.name == stream)
    held = ticks.first_held.get(stream)
    return held is not None and tick < held and held * config.tick_period_ms <= max(limit_ms, RAGGED_MS)


def _command_faults(
    ticks: SpanTicks, topic: str, commands: CommandTrack, labels: NDArray[np.float32] | None
) -> Iterator[BagFault]:
    """Faults of one part's commands; labels: None where it is said already why there are none."""
    span = ticks.span
    where = f"topic {topic} ({ACTIONS}), episode {span.index}"
    if commands.refused:
        what, remedy = str(commands.fault), "restore the bag from a copy, or record again"
        if isinstance(commands.fault, ReadError):
            what, remedy = _split(what)
        yield BagFault(
            span.bag, f"{commands.refused} of {commands.received} commands cannot be used ({what})", where, remedy
        )
    if commands.unstamped:
        what = f"{commands.unstamped} of {commands.received} commands have a stamp of zero: they are not used"
        remedy = "set stamp: received to take the times at which they were recorded, or stamp every command"
        yield BagFault(span.bag, what, where, remedy)
    if commands.fallen:
        what = f"{commands.fallen} of {commands.received} commands are stamped again as ones before them: left out"
        remedy = f"cut the bag into episodes where a clock was put back (episodes.kind: gap), or {ONE_CLOCK}"
        yield BagFault(span.bag, what, where, remedy)
    without = np.zeros(0, dtype=bool) if labels is None else np.asarray(np.isnan(labels).any(axis=1))
    first = int((~without).argmax()) if not without.all() else 0
    config = ticks.observer.config
    received = "received" in {commands.part.stamp, *(stream.stamp for stream in config.inputs)}
    if received and first * config.tick_period_ms <= RAGGED_MS:
        # A command that is dated when it comes answers the tick before: the first ticks have none.
        without[:first] = False
    if without.any():
        what = f"{int(without.sum())} of {without.size} ticks have no command that can be used"
        remedy = "record the commands from the episode's begin; those ticks cannot be learned from"
        yield BagFault(span.bag, what, f"{where}, tick {int(without.argmax())}", remedy)
