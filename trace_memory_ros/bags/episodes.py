"""Where a bag's episodes begin and end."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import FIRST_NS, LAST_NS, RawMessage
from trace_memory_ros.bags.topics import recorded_stamp_ns, stream_topics, wanted_topics
from trace_memory_ros.streams.cdr import Cdr, CdrError

RUNNING, FINISHED = 1, 2
MARGIN_NS = 1_000_000_000
"""A message stamped within an episode was recorded no more than this before its begin or after its end."""


@dataclass(frozen=True)
class EpisodeSpan:
    """One episode of a bag: log times `[begin_ns, end_ns)` and header stamps `[begin_stamp_ns, end_stamp_ns)`.

    task, seed: as an EpisodeStatus names them. success: as one reports it; None where nothing does.
    """

    bag: str
    index: int
    begin_ns: int
    end_ns: int
    begin_stamp_ns: int = FIRST_NS
    end_stamp_ns: int = LAST_NS
    task: str = ""
    success: bool | None = None
    seed: int | None = None

    @property
    def bounded(self) -> bool:
        """Whether header stamps, too, decide what belongs to it."""
        return self.begin_stamp_ns > FIRST_NS or self.end_stamp_ns < LAST_NS


def spans(reader: BagReader, recording: RecordingConfig) -> list[EpisodeSpan]:
    """A bag's episodes in order. Raises BagFault where the rule finds none."""
    rule = recording.episodes
    if rule.kind == "bag":
        return [EpisodeSpan(str(reader.path), 0, reader.begin_ns, reader.end_ns)]
    found = _by_gaps(reader, recording) if rule.kind == "gap" else _by_topic(reader, recording)
    if not found:
        topic = recording.topic(rule.topic) if rule.kind == "topic" else recording.observation.cameras[0].topic
        raise BagFault(
            reader.path,
            "tells of no episode",
            f"topic {topic} (episodes)",
            "record it from before the first episode begins, or set episodes.kind: bag",
        )
    return found


def _by_gaps(reader: BagReader, recording: RecordingConfig) -> list[EpisodeSpan]:
    """Cut in the middle of the clock camera's pauses, so that all streams keep what lies around its images.

    Where its stamps fall as far, a clock was put back, or a simulator began again: there too.
    """
    topic = recording.topic(recording.observation.cameras[0].topic)
    gap_ns = round(recording.episodes.gap_s * 1e9)
    marks = [(stamp_ns, log_ns) for log_ns, stamp_ns in _stamps(reader, recording, topic)]
    stamped = [mark for mark in marks if mark[0]]
    cuts = [(a[1] + b[1]) // 2 for a, b in pairwise(stamped) if abs(b[0] - a[0]) > gap_ns]
    edges = [reader.begin_ns, *cuts, reader.end_ns] if marks else []
    return [EpisodeSpan(str(reader.path), i, begin, end) for i, (begin, end) in enumerate(pairwise(edges))]


def _messages(reader: BagReader, recording: RecordingConfig, topic: str) -> Iterator[RawMessage]:
    """A topic's messages, from a pass over all that will be decoded, which compares their numbers with the tables."""
    return (raw for raw in reader.messages(wanted_topics(recording)) if raw.topic == topic)


def _stamps(reader: BagReader, recording: RecordingConfig, topic: str) -> Iterator[tuple[int, int]]:
    """Log time and stamp of the messages of the clock camera's topic."""
    clock = recording.observation.cameras[0]
    for raw in _messages(reader, recording, topic):
        try:
            yield raw.log_ns, recorded_stamp_ns(recording, clock, raw)
        except CdrError:
            continue


def _by_topic(reader: BagReader, recording: RecordingConfig) -> list[EpisodeSpan]:
    topic = recording.topic(recording.episodes.topic)
    if reader.topics[topic].type_names == (fields.STATUS,):
        return _by_status(reader, recording, topic)
    return _by_values(reader, recording, topic)


def _by_status(reader: BagReader, recording: RecordingConfig, topic: str) -> list[EpisodeSpan]:
    """From the first to the last report of a running episode, its FINISHED, by header stamps."""
    seen: list[list[_Report]] = []
    malformed = 0
    streams = stream_topics(recording)
    times: dict[str, list[tuple[int, int]]] = {name: [] for name in streams}
    for raw in reader.messages(wanted_topics(recording)):
        if raw.topic in times:
            with suppress(CdrError):
                times[raw.topic].append((raw.log_ns, recorded_stamp_ns(recording, streams[raw.topic][0], raw)))
        if raw.topic != topic:
            continue
        try:
            cdr = Cdr(raw.data)
            report = _Report(raw.log_ns, cdr.header().stamp_ns, fields.status(cdr))
        except CdrError:
            malformed += 1
            continue
        same = next((reports for reports in reversed(seen) if report.continues(reports)), None)
        # A finished status that is kept for late joiners is of an episode before the recording.
        if same is not None and report.status.phase in (RUNNING, FINISHED):
            same.append(report)
        elif report.status.phase == RUNNING:
            seen.append([report])
    _note_malformed(reader, topic, malformed)
    for index, reports in enumerate(seen):
        _note_doubts(reader, f"topic {topic}, episode {index}", reports)
    found = _parted([_span_of(str(reader.path), index, reports) for index, reports in enumerate(seen)])
    _note_misplaced(reader, found, times)
    return found


class _Report(NamedTuple):
    """An EpisodeStatus as it was recorded."""

    log_ns: int
    stamp_ns: int
    status: fields.Status

    def continues(self, reports: list[_Report]) -> bool:
        """Whether it is of the episode of `reports`: the same number, and not running again after its end."""
        if self.status.episode != reports[0].status.episode:
            return False
        ends = [report.stamp_ns for report in reports if report.status.phase == FINISHED]
        return self.status.phase != RUNNING or not ends or self.stamp_ns <= max(ends)


def _span_of(bag: str, index: int, reports: list[_Report]) -> EpisodeSpan:
    """The span of an episode's reports, in whatever order they were recorded."""
    logs, stamps = [report.log_ns for report in reports], [report.stamp_ns for report in reports]
    last = next((r.status for r in reversed(reports) if r.status.phase == FINISHED), reports[-1].status)
    return EpisodeSpan(
        bag,
        index,
        min(logs) - MARGIN_NS,
        max(logs) + MARGIN_NS,
        min(stamps),
        max(stamps) + 1,
        last.task,
        last.success if last.phase == FINISHED else None,
        last.seed,
    )


def _parted(found: list[EpisodeSpan]) -> list[EpisodeSpan]:
    """Spans whose log times do not reach into an episode before or after that has the same stamps.

    That is as of a simulator that begins again for each: neither would be told from the other by stamps.
    """
    parted = list(found)
    for k, (one, next_) in enumerate(pairwise(found)):
        shared = one.begin_stamp_ns < next_.end_stamp_ns and next_.begin_stamp_ns < one.end_stamp_ns
        last_ns, first_ns = one.end_ns - MARGIN_NS, next_.begin_ns + MARGIN_NS
        if shared and last_ns <= first_ns:
            cut = (last_ns + first_ns) // 2
            parted[k] = replace(parted[k], end_ns=min(one.end_ns, cut))
            parted[k + 1] = replace(next_, begin_ns=max(next_.begin_ns, cut))
    return parted


def _note_doubts(reader: BagReader, where: str, reports: list[_Report]) -> None:
    """Name what makes an episode's begin or end uncertain."""
    if all(report.status.phase != FINISHED for report in reports):
        what = "is never reported as finished: it ends with its last report"
        reader.note(BagFault(reader.path, what, where, "record until the episode has ended"))
    falls = sum(b.stamp_ns < a.stamp_ns for a, b in pairwise(reports))
    if falls:
        what = f"{falls} reports are stamped before one that was recorded earlier: it may begin or end elsewhere"
        reader.note(BagFault(reader.path, what, where, "one publisher, rising stamps, by the clock of the sensors"))


def _note_misplaced(reader: BagReader, found: list[EpisodeSpan], times: dict[str, list[tuple[int, int]]]) -> None:
    """Name messages that belong to an episode by their stamps and were recorded long before or after it."""
    for topic, pairs in times.items():
        log, stamp = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
        stamped = [(span.begin_stamp_ns <= stamp) & (stamp < span.end_stamp_ns) for span in found]
        logged = [(span.begin_ns <= log) & (log < span.end_ns) for span in found]
        placed = np.any(list(map(np.logical_and, stamped, logged)), axis=0)
        for span, inside in zip(found, stamped, strict=True):
            count = int((inside & ~placed).sum())
            if count:
                what = (
                    f"{count} messages are stamped within the episode and recorded over 1 s off it: they are left out"
                )
                where, remedy = f"topic {topic}, episode {span.index}", "record and stamp by one clock"
                reader.note(BagFault(reader.path, what, where, remedy))


def _note_malformed(reader: BagReader, topic: str, count: int) -> None:
    if count:
        what = f"{count} messages cannot be read: an episode may begin or end elsewhere"
        where, remedy = f"topic {topic} (episodes)", "restore the bag from a copy, or record again"
        reader.note(BagFault(reader.path, what, where, remedy))


def _by_values(reader: BagReader, recording: RecordingConfig, topic: str) -> list[EpisodeSpan]:
    """While a Bool is true, an integer is one number >= 0, or a String is one text that is not empty; by log times."""
    edges: list[tuple[int, object]] = []
    malformed = 0
    for raw in _messages(reader, recording, topic):
        try:
            value = fields.plain(Cdr(raw.data), raw.type_name)
        except CdrError:
            malformed += 1
            continue
        if not edges or edges[-1][1] != value:
            edges.append((raw.log_ns, value))
    _note_malformed(reader, topic, malformed)
    edges.append((reader.end_ns, None))
    running = [(a, b[0]) for a, b in pairwise(edges) if _runs(a[1])]
    return [
        EpisodeSpan(str(reader.path), i, begin, end, task=value if isinstance(value, str) else "")
        for i, ((begin, value), end) in enumerate(running)
    ]


def _runs(value: object) -> bool:
    if isinstance(value, (bool, str)):
        return bool(value)
    return isinstance(value, int) and value >= 0
