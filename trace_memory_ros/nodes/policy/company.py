"""Who else commands this node's topics, and whether anybody takes what it commands, as the graph knows it."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from typing import Any

from rclpy.node import Node

from trace_memory_ros.nodes.policy.served import ServerSender

LOOK_S = 0.2
"""How often the graph is asked: a look takes a fraction of a millisecond per topic."""
SETTLING_S = 3.0
"""After activation a controller may not be discovered yet."""


class Company:
    """Other publishers of a node's command topics, their subscribers, and the servers of `senders`.

    topics: as the node was made with them.

    An arm obeys whoever spoke last, so this node gives no command while another might, until a person who enables has
    accepted those that are there. One that was killed is in the graph for some seconds more. Others that command a
    server are not seen: clients are in the graph without sending anything, as MoveIt's.
    """

    def __init__(self, node: Node, topics: Sequence[str], senders: Sequence[ServerSender] = ()) -> None:
        self._node, self._senders = node, senders
        self._asked = list(topics)
        self._topics = [node.resolve_topic_name(topic) for topic in topics]
        self._accepted: set[tuple[int, ...]] = set()
        self._looked_at = self._since = -SETTLING_S
        self._rivals: list[str] = []

    def begin(self) -> None:
        """The node became active."""
        self._accepted = set()
        self._since = time.monotonic()
        self._looked_at = -LOOK_S

    def accept(self) -> None:
        """Whoever is there may command too."""
        self._accepted = {_gid(info) for topic in self._asked for info in self._publishers(topic)}
        self._looked_at = -LOOK_S

    @property
    def problem(self) -> str:
        """Why no command may be given; empty where one may."""
        if time.monotonic() - self._looked_at >= LOOK_S:
            self._looked_at = time.monotonic()
            self._rivals = sorted({name for topic in self._asked for name in self._rivals_on(topic)})
        if not self._rivals:
            return ""
        what = f"{', '.join(self._topics)}: also commanded by {', '.join(self._rivals)}"
        return f"{what}: no command, as an arm obeys whoever spoke last; end all but one, or call ~/enable to accept it"

    @property
    def untaken(self) -> str:
        """Which topics nobody takes; empty where all are taken, or it is too early to tell."""
        if time.monotonic() - self._since < SETTLING_S:
            return ""
        alone = [topic for topic in self._topics if not self._node.count_subscribers(topic)]
        alone += [sender.name for sender in self._senders if not sender.taken]
        remedy = "start the controller (ros2 control list_controllers), or remap to the topic that it takes"
        return f"nobody takes {', '.join(alone)}: {remedy}" if alone else ""

    def _rivals_on(self, topic: str) -> Iterator[str]:
        own, accepted_own = self._node.get_fully_qualified_name(), False
        names = []
        for info in self._publishers(topic):
            name = f"{info.node_namespace.rstrip('/')}/{info.node_name}"
            if _gid(info) in self._accepted:
                accepted_own = accepted_own or name == own
            else:
                names.append(name)
        if own in names and not accepted_own:
            names.remove(own)
        yield from names

    def _publishers(self, topic: str) -> list[Any]:
        # Which remaps it: of a resolved one it would tell of the topic that another rule makes of that.
        return list(self._node.get_publishers_info_by_topic(topic))


def _gid(info: Any) -> tuple[int, ...]:
    return tuple(info.endpoint_gid)
