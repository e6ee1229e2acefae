"""What both storage formats of rosbag2 hand over: topics, and messages in log order."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple, Protocol

from trace_memory_ros.bags.faults import BagFault

FIRST_NS = -(2**63)
LAST_NS = 2**63 - 1
_EARLY_TYPE = re.compile(r"([A-Za-z]\w*)/([A-Za-z]\w*)")


def absolute(name: str) -> str:
    """The one name of a topic, whether its recorder wrote `/joint_states` or `joint_states`."""
    return name if name.startswith("/") else "/" + name


def modern(type_name: str) -> str:
    """A message type as `package/msg/Name`; the first recorders wrote `package/Name`."""
    early = _EARLY_TYPE.fullmatch(type_name)
    return f"{early[1]}/msg/{early[2]}" if early else type_name


def not_cdr(bag: object, topic: str, encoding: str, where: str) -> BagFault:
    """The fault of a topic whose messages are not encoded as those of ROS 2."""
    remedy = "record it with `ros2 bag record`, or leave the topic out of the configuration"
    fault = BagFault(bag, f"is encoded as {encoding!r}, ROS 2 messages as 'cdr'", f"{where}, topic {topic}", remedy)
    fault.topic = absolute(topic)
    return fault


class RawMessage(NamedTuple):
    """A recorded message. type_name: `package/msg/Name`. log_ns: when it was recorded. data: CDR."""

    topic: str
    type_name: str
    log_ns: int
    data: bytes | memoryview


class TopicInfo(NamedTuple):
    """A topic of a bag. type_names: normally one. definition: `.msg` or IDL text, empty if the bag has none.

    messages: how many the bag claims to hold. recorded: the names that it has there, without a leading slash too.
    """

    name: str
    type_names: tuple[str, ...]
    messages: int
    definition: str = ""
    recorded: tuple[str, ...] = ()

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
        """Messages on these topics, by their absolute names, logged in `[begin_ns, end_ns)`, in log order."""

    def close(self) -> None: ...


def merge_topics(infos: list[TopicInfo]) -> dict[str, TopicInfo]:
    """One entry per topic name, counts added up."""
    merged: dict[str, TopicInfo] = {}
    for info in infos:
        known = merged.get(info.name, TopicInfo(info.name, (), 0))
        types = tuple(dict.fromkeys((*known.type_names, *info.type_names)))
        text = known.definition or info.definition
        recorded = tuple(dict.fromkeys((*known.recorded, *info.recorded)))
        merged[info.name] = TopicInfo(info.name, types, known.messages + info.messages, text, recorded)
    return merged
