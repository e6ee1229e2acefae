"""What was seen of a robot's topics in a few seconds, in plain values."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.observation.content import CompressedImage, Content, Live, RawImage, VideoPacket
from trace_memory_ros.observation.images import ImageError
from trace_memory_ros.observation.samples import Deferred, InputError, SampleReader

LOOKED_AT = 20
"""Messages of a camera that are looked into: unpacking every image would slow the listening down. Numbers cost little,
and a message that lacks a joint may come among many that have it."""
MOST_STAMPS = 20_000


@dataclass(frozen=True)
class Endpoint:
    """A publisher or subscriber: its node's full name, its message type, and whether it is reliable."""

    node: str
    type_name: str
    reliable: bool = True


@dataclass
class TopicSeen:
    """One topic. name: resolved. types: as the graph knows them.

    arrivals_ns, stamps_ns: of its messages, wall clock and header. faults: why contents could not be used, and how
    often. shape: of the first message, in words. lost: messages that the middleware says it lost. servers: of an action
    or a service of that name.
    """

    name: str
    types: tuple[str, ...] = ()
    publishers: Sequence[Endpoint] = ()
    subscribers: Sequence[Endpoint] = ()
    arrivals_ns: list[int] = field(default_factory=list)
    stamps_ns: list[int] = field(default_factory=list)
    faults: Counter[str] = field(default_factory=Counter)
    shape: str = ""
    lost: int = 0
    servers: Sequence[Endpoint] = ()

    def clear(self) -> None:
        """Forget what was heard."""
        self.arrivals_ns.clear()
        self.stamps_ns.clear()
        self.faults.clear()
        self.lost = 0


@dataclass(frozen=True)
class Seen:
    """Everything. streams: by stream name. commands: by topic of the actions. topics: all of the graph, with types.

    transport: variables and what they are; seconds: how long was listened, until ended_ns of the wall clock, 0 where
    that is not known. sim_time: whether /clock is published.
    """

    seconds: float
    streams: Mapping[str, TopicSeen]
    commands: Mapping[str, TopicSeen]
    conditions: TopicSeen
    topics: Mapping[str, tuple[str, ...]]
    transport: Mapping[str, str]
    sim_time: bool = False
    ended_ns: int = 0


class Listening:
    """A `Sink` that looks into numbers, and the first images of every camera, and notes what cannot be used."""

    def __init__(self, config: ObservationConfig, topics: Mapping[str, TopicSeen]) -> None:
        self._reader = SampleReader(config, defer=True)
        self._topics = topics

    def push(self, stream: str, stamp_ns: int, arrival_ns: int, content: Content) -> Verdict:
        seen = self._topics[stream]
        if not seen.shape:
            seen.shape = shape_of(content)
        if len(seen.arrivals_ns) < LOOKED_AT or isinstance(content, (VideoPacket, Live)):
            try:
                value = self._reader.read(stream, content)
                if isinstance(value, Deferred):
                    assert value.image is not None
            except (InputError, ImageError) as error:
                seen.faults[str(error)] += 1
        return Verdict.ACCEPTED

    def lose(self, stream: str, count: int) -> None:
        """The middleware lost messages."""
        self._topics[stream].lost += count

    def note(self, stream: str, stamp_ns: int, arrival_ns: int) -> None:
        """A message of any stamp; arrival on the wall clock."""
        seen = self._topics[stream]
        if len(seen.arrivals_ns) < MOST_STAMPS:
            seen.arrivals_ns.append(arrival_ns)
            seen.stamps_ns.append(stamp_ns)


def shape_of(content: Content) -> str:
    """What a message holds, in words."""
    match content:
        case RawImage():
            return f"{content.encoding} {content.width}x{content.height}"
        case CompressedImage() | VideoPacket():
            return content.format
        case Live(message):
            names = getattr(message, "name", None)
            return f"{len(names)} joints" if isinstance(names, list) else type(message).__name__
    return ""
