"""Joins the graph for a few seconds and notes what goes on there."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import Any

import rclpy
from rclpy.context import Context
from rclpy.exceptions import NameValidationException
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node, NodeNameNonExistentError
from rclpy.qos import ReliabilityPolicy

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.doctor.heard import Endpoint, Listening, Seen, TopicSeen
from trace_memory_ros.nodes.inputs import InputSubscriptions, resolved
from trace_memory_ros.nodes.transport import BUILTIN, DISTRO, PROFILES, RANGE
from trace_memory_ros.observation.alignment import Verdict
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import ActionConfig
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC

DISCOVERY_S = 6.0
"""Participants take some seconds to find one another; what is published meanwhile tells nothing."""
FEEDBACK = "/_action/feedback"
"""Behind an action's name, the topic that its server publishes on."""
FEEDBACK_TYPE = "_FeedbackMessage"
VARIABLES = (
    "ROS_DOMAIN_ID",
    DISTRO,
    RANGE,
    "ROS_STATIC_PEERS",
    BUILTIN,
    *PROFILES,
    "CYCLONEDDS_URI",
)


def listen(
    observation: ObservationConfig,
    actions: ActionConfig | None,
    seconds: float,
    namespace: str = "",
    remap: Sequence[str] = (),
) -> Seen:
    """Listen to a robot for `seconds`. remap: `OLD:=NEW` as for a node.

    Raises ConfigError for a rule or a namespace that ROS refuses, and as subscriptions do.
    """
    context = Context()
    # Without arguments rclpy would read those of the command, whose remaps are none of a ROS program's.
    rclpy.init(args=[], context=context)
    with ExitStack() as ends:
        ends.callback(rclpy.try_shutdown, context=context)
        node, graph = _node(context, namespace, remap), _onlooker(context)
        for made in (node, graph):
            ends.callback(made.destroy_node)
        return _Doctor(node, graph, observation, actions).seen(seconds)


def _node(context: Context, namespace: str, remap: Sequence[str]) -> Node:
    rules = [argument for rule in remap for argument in ("-r", rule)]
    try:
        return rclpy.create_node(
            "trace_memory_doctor",
            namespace=namespace,
            context=context,
            cli_args=["--ros-args", *rules] if rules else None,
            use_global_arguments=False,
        )
    except NameValidationException as error:
        said = " ".join(str(error).split())
        raise ConfigError(f"namespace {namespace!r}: {said}; write one such as cell/left") from error
    except RuntimeError as error:
        said = str(error).partition(", at ")[0]
        raise ConfigError(f"remaps {', '.join(remap)}: {said}; write OLD:=NEW, both as topics") from error


def _onlooker(context: Context) -> Node:
    """Asks the graph. A node with rules would rename every topic that it is asked about, resolved ones too."""
    return rclpy.create_node(
        "trace_memory_doctor_graph",
        context=context,
        use_global_arguments=False,
        enable_rosout=False,
        start_parameter_services=False,
    )


class _Doctor:
    def __init__(self, node: Node, graph: Node, observation: ObservationConfig, actions: ActionConfig | None) -> None:
        self._node, self._graph = node, graph
        self._streams = {s.name: TopicSeen(resolved(node, s.topic)) for s in observation.inputs}
        parts = actions.parts if actions else ()
        self._commands = {part.topic: TopicSeen(resolved(node, part.topic)) for part in parts}
        self._served = {part.topic for part in parts if part.is_served}
        self._conditions = TopicSeen(resolved(node, CONDITION_TOPIC))
        self._listening = Listening(observation, self._streams)
        # Best effort hears any publisher; what the nodes would not hear is judged by the endpoints.
        InputSubscriptions(node, observation, "best_effort", self._listening, self._after, lost=self._listening.lose)

    def seen(self, seconds: float) -> Seen:
        executor = SingleThreadedExecutor(context=self._node.context)
        executor.add_node(self._node)
        _spin(executor, DISCOVERY_S, self._all_found)
        for seen in self._streams.values():
            seen.clear()
        _spin(executor, seconds, lambda: False)
        ended_ns = time.time_ns()
        executor.shutdown()
        topics = self._others()
        for seen in (*self._streams.values(), *self._commands.values(), self._conditions):
            seen.types = topics.get(seen.name, ())
            seen.publishers = self._ends(self._graph.get_publishers_info_by_topic(seen.name))
            seen.subscribers = self._ends(self._graph.get_subscriptions_info_by_topic(seen.name))
        for topic in self._served:
            self._commands[topic].servers = self._servers(self._commands[topic].name)
        heard = (seconds, self._streams, self._commands, self._conditions)
        return Seen(*heard, topics, transport(), "/clock" in topics, ended_ns)

    def _all_found(self) -> bool:
        served = all(self._servers(self._commands[topic].name) for topic in self._served)
        return served and all(self._published(seen.name) for seen in self._streams.values())

    def _servers(self, name: str) -> list[Endpoint]:
        """Who serves an action or a service of that name, and of which type."""
        actions = self._ends(self._graph.get_publishers_info_by_topic(name + FEEDBACK))
        found = [replace(end, type_name=end.type_name.removesuffix(FEEDBACK_TYPE)) for end in actions]
        for node, space in self._graph.get_node_names_and_namespaces():
            with suppress(NodeNameNonExistentError):  # it ended meanwhile
                services = dict(self._graph.get_service_names_and_types_by_node(node, space))
                found += [Endpoint(f"{space.rstrip('/')}/{node}", kind) for kind in services.get(name, ())]
        return found

    def _after(self, stream: str, verdict: Verdict, stamp_ns: int) -> None:
        self._listening.note(stream, stamp_ns, time.time_ns())

    def _others(self) -> Mapping[str, tuple[str, ...]]:
        """Topics that somebody else publishes."""
        found = dict(self._graph.get_topic_names_and_types())
        return {name: tuple(types) for name, types in found.items() if self._published(name)}

    def _published(self, topic: str) -> bool:
        return bool(self._ends(self._graph.get_publishers_info_by_topic(topic)))

    def _ends(self, infos: Sequence[Any]) -> list[Endpoint]:
        own = self._node.get_fully_qualified_name()
        ends = [
            Endpoint(
                f"{info.node_namespace.rstrip('/')}/{info.node_name}",
                info.topic_type,
                info.qos_profile.reliability != ReliabilityPolicy.BEST_EFFORT,
            )
            for info in infos
        ]
        return [end for end in ends if end.node != own]


def _spin(executor: SingleThreadedExecutor, seconds: float, done: Callable[[], bool]) -> None:
    until = time.monotonic() + seconds
    while (left_s := until - time.monotonic()) > 0 and not done():
        executor.spin_once(timeout_sec=min(left_s, 0.1))


def transport() -> dict[str, str]:
    """The middleware, and the variables that decide whom it reaches."""
    from rclpy.utilities import get_rmw_implementation_identifier

    given = {name: os.environ[name] for name in VARIABLES if os.environ.get(name)}
    return {"RMW_IMPLEMENTATION": get_rmw_implementation_identifier(), "ROS_DOMAIN_ID": "0"} | given
