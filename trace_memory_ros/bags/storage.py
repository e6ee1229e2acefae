"""What both storage formats of rosbag2 hand over: topics, and messages in log order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, Protocol

from trace_memory_ros.bags.faults import BagFault

FIRST_NS = -(2**63)
LAST_NS = 2**63 - 1


class RawMessage(NamedTuple):
    """A recorded message. type_name: `package/msg/Name`. log_ns: when it was recorded. data: CDR."""

    topic: str
    type_name: str
    log_ns: int
    data: bytes | memoryview


class TopicInfo(NamedTuple):
    """A topic of a bag. type_names: normally one. definition: `.msg` or IDL text, empty if the bag has none.

    messages: how many the bag claims to hold.
    """

    name: str
    type_names: tuple[str, ...]
    messages: int
    definition: str = ""

    @property
    def type_name(self) -> str:
        return ", ".join(self.type_names)


class Storage(Protocol):
    """One storage file. faults: what was found wrong with it so far."""

    faults: list[BagFault]

    def topics(self) -> list[TopicInfo]: ...

    def times_ns(self) -> tuple[int, int] | None:
        """Log times of the first and last message; None for an empty file."""

    def messages(self, topics: frozenset[str] | None, begin_ns: int, end_ns: int) -> Iterator[RawMessage]:
        """Messages logged in `[begin_ns, end_ns)` in log order; None means all topics."""

    def close(self) -> None: ...


def merge_topics(infos: list[TopicInfo]) -> dict[str, TopicInfo]:
    """One entry per topic name, counts added up."""
    merged: dict[str, TopicInfo] = {}
    for info in infos:
        known = merged.get(info.name, TopicInfo(info.name, (), 0))
        types = tuple(dict.fromkeys((*known.type_names, *info.type_names)))
        text = known.definition or info.definition
        merged[info.name] = TopicInfo(info.name, types, known.messages + info.messages, text)
    return merged
