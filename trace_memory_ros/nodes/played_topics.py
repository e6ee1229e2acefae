"""Which topics of a bag go to a live memory: those that its checkpoint observes, and never a recorded command."""

from __future__ import annotations

from collections.abc import Mapping

from trace_memory_ros.nodes.robot_topics import RobotTopics


def sensor_topics(checkpoint: str, namespace: str = "", renamed: Mapping[str, str] | None = None) -> tuple[str, ...]:
    """Absolute names of the topics that memory_node subscribes to with `checkpoint`, a folder or a shipped name.

    namespace: that of the node. renamed: name in the checkpoint -> name that the node was remapped to.
    Raises ValueError as `RobotTopics.of_checkpoint`.
    """
    topics = RobotTopics.of_checkpoint(checkpoint).streams.values()
    return tuple(dict.fromkeys(absolute((renamed or {}).get(topic, topic), namespace) for topic in topics))


def lost_in_play(checkpoint: str) -> str:
    """Which streams a played bag cannot give the memory, why, and what can; empty where there is none.

    Raises ValueError as `RobotTopics.of_checkpoint`.
    """
    inputs = RobotTopics.of_checkpoint(checkpoint).observation.inputs
    received = [one.name for one in inputs if one.stamp == "received"]
    if not received or len(received) == len(inputs):
        return ""
    return (
        f"{', '.join(received)}: stamped when received, which in a played bag is now, far from the recorded stamps of "
        "the other streams: no tick will be usable; take trace-memory replay, which goes by the bag's log times"
    )


def absolute(topic: str, namespace: str = "") -> str:
    """A topic as it stands in a bag: `/namespace/topic`; one that begins with a slash is absolute already."""
    if topic.startswith("/"):
        return topic
    space = namespace.strip("/")
    return f"/{space}/{topic}" if space else f"/{topic}"
