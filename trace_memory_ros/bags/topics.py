"""Which type each configured topic must have, and what is wrong where a bag has another or none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.faults import BagFault
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.bags.storage import RawMessage
from trace_memory_ros.files.strict import nearest
from trace_memory_ros.observation.config import SensorConfig, StreamConfig
from trace_memory_ros.streams.cdr import Cdr, header_stamp_ns

PLAIN = (fields.BOOL, fields.TEXT, *fields.INTEGERS)
EPISODE_TYPES = (fields.STATUS, *PLAIN)
BRANCH_TYPES = (fields.STATUS, fields.TEXT, *fields.INTEGERS)


def is_stamped(stream: StreamConfig) -> bool:
    """Whether the stream's messages begin with a stamp and a text, as a header does."""
    return not isinstance(stream, SensorConfig) or stream.kind.stamped


def stamp_of(recording: RecordingConfig, stream: StreamConfig, cdr: Cdr, log_ns: int) -> int:
    """A message's stamp, by its header or its log time; `cdr` is behind the header afterwards. Raises CdrError."""
    header_ns = cdr.header().stamp_ns if is_stamped(stream) else 0
    return log_ns - recording.log_offset_ns if stream.stamp == "received" else header_ns


def recorded_stamp_ns(recording: RecordingConfig, stream: StreamConfig, raw: RawMessage) -> int:
    """The stamp of a recorded message. Raises CdrError."""
    return raw.log_ns - recording.log_offset_ns if stream.stamp == "received" else header_stamp_ns(raw.data)


def stream_topics(recording: RecordingConfig) -> dict[str, tuple[StreamConfig, ...]]:
    """The streams that each topic of the bag feeds."""
    found: dict[str, tuple[StreamConfig, ...]] = {}
    for stream in recording.observation.inputs:
        topic = recording.topic(stream.topic)
        found[topic] = (*found.get(topic, ()), stream)
    return found


def wanted_topics(recording: RecordingConfig) -> dict[str, tuple[str, tuple[str, ...]]]:
    """What each topic is for, and the types that it may have."""
    found: dict[str, tuple[str, tuple[str, ...]]] = {}
    for topic, streams in stream_topics(recording).items():
        found[topic] = (
            " and ".join(stream.name for stream in streams),
            tuple(dict.fromkeys(stream.message_type for stream in streams)),
        )
    for part in () if recording.actions is None else recording.actions.parts:
        topic = recording.topic(part.topic)
        others, types = found.get(topic, ("", ()))
        found[topic] = (f"{others} and actions" if others else "actions", tuple(dict.fromkeys((*types, part.type))))
    if recording.episodes.kind == "topic":
        found[recording.topic(recording.episodes.topic)] = ("episodes", EPISODE_TYPES)
    if recording.branches is not None and recording.branches.topic:
        found.setdefault(recording.topic(recording.branches.topic), ("branches", BRANCH_TYPES))
    return found


def faults_of(reader: BagReader, recording: RecordingConfig) -> list[BagFault]:
    """What was found wrong with the bag so far, but for what is about topics that the configuration does not use."""
    wanted = {"", *wanted_topics(recording)}
    return [fault for fault in reader.faults if fault.topic in wanted]


def topic_faults(reader: BagReader, recording: RecordingConfig) -> Iterator[BagFault]:
    """Topics that are missing, empty, or of a type that cannot serve."""
    for topic, (purpose, types) in wanted_topics(recording).items():
        fault = _topic_fault(reader, reader.path, topic, purpose, types)
        if fault is not None:
            yield fault


def _topic_fault(reader: BagReader, bag: Path, topic: str, purpose: str, types: tuple[str, ...]) -> BagFault | None:
    info = reader.topics.get(topic)
    where = f"topic {topic} ({purpose})"
    if info is None:
        serving = [name for name, other in reader.topics.items() if set(other.type_names) & set(types)]
        known = f"{nearest(topic, serving)}" if serving else f"the bag has no topic of type {' or '.join(types)}"
        return BagFault(bag, "is not in the bag", where, f"record it, or correct the configured topic; {known}")
    if not set(info.type_names) <= set(types):
        what = f"is {info.type_name}, needed is {' or '.join(types)}"
        return BagFault(bag, what, where, "correct the configured topic or its kind, or record the right one")
    if not info.messages:
        remedy = "check its publisher and the recorder's QoS, and record again"
        return BagFault(bag, "holds no message", where, remedy)
    return None
