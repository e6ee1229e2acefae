"""What each node may do in a secured ROS graph, as the policy file that `ros2 security create_permission` reads."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from xml.etree import ElementTree

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.nodes.played_topics import absolute
from trace_memory_ros.nodes.robot_topics import TOPIC, Remaps, RobotTopics
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, MARKERS_TOPIC, RECORD_TOPIC, SEEN_TOPIC
from trace_memory_ros.streams.joint_state import JOINT_STATE

VERSION = "0.2.0"
"""Of the policy format: that of ROS 2 since Foxy."""
OPERATOR = "operator"
MEMORY, POLICY, MARKER = "memory_node", "policy_node", "marker_node"
PARAMETERS = tuple(
    f"~/{name}"
    for name in (
        "describe_parameters",
        "get_parameter_types",
        "get_parameters",
        "list_parameters",
        "set_parameters",
        "set_parameters_atomically",
        "get_type_description",
    )
)
LIFECYCLE = tuple(
    f"~/{name}"
    for name in (
        "change_state",
        "get_state",
        "get_available_states",
        "get_available_transitions",
        "get_transition_graph",
    )
)
CALLED = {
    MEMORY: ("~/reset", "~/restore", "~/snapshot"),
    POLICY: ("~/reset", "~/enable", "~/disable"),
    MARKER: (),
}
"""The services that nodes have besides."""
SAID = ("/rosout", "/parameter_events")
CLOCK, DIAGNOSTICS = "/clock", "/diagnostics"


@dataclass(frozen=True)
class Permissions:
    """A node's rights; all else is denied to it. Names as in its source: `~/` its own, without a slash its namespace's.

    reply: services that it offers; request: those that it may call; call: actions whose goals it may give.
    """

    node: str
    publish: tuple[str, ...]
    subscribe: tuple[str, ...] = ()
    reply: tuple[str, ...] = ()
    request: tuple[str, ...] = ()
    call: tuple[str, ...] = ()


def permissions(topics: RobotTopics, remaps: Remaps = (), dry_run: bool = False) -> tuple[Permissions, ...]:
    """Of memory_node, policy_node, marker_node, and of a person's tools.

    dry_run: policy_node may show commands and send none, whatever its parameters say.
    """
    names = dict(remaps)
    streams = _named(topics.streams, names)
    sent: dict[str, dict[str, str]] = {"publish": {}, "request": {}, "call": {}}
    for name, topic in () if dry_run else topics.commands.items():
        kind = topics.served.get(topic)
        sent["publish" if kind is None else "call" if kind.is_action else "request"][name] = topic
    shown = tuple("~/dry_run/" + topic.removeprefix("~").lstrip("/") for topic in topics.commands.values())
    joints = {s.name: s.topic for s in topics.observation.streams if s.type == JOINT_STATE.name}
    watched = (*(f"{node}/transition_event" for node in CALLED), *(f"{POLICY}/{topic[2:]}" for topic in shown))
    offered = {node: (*own, *LIFECYCLE, *PARAMETERS) for node, own in CALLED.items()}
    return (
        Permissions(
            MEMORY,
            (CONDITION_TOPIC, RECORD_TOPIC, SEEN_TOPIC, DIAGNOSTICS, "~/transition_event", *SAID),
            (*streams, CLOCK),
            offered[MEMORY],
        ),
        Permissions(
            POLICY,
            (*_named(sent["publish"], names), *shown, DIAGNOSTICS, "~/transition_event", *SAID),
            (*streams, CONDITION_TOPIC, "~/stop", CLOCK),
            offered[POLICY],
            _named(sent["request"], names),
            _named(sent["call"], names),
        ),
        Permissions(
            MARKER,
            (MARKERS_TOPIC, "~/transition_event", *SAID),
            (CONDITION_TOPIC, RECORD_TOPIC, "episode", *(_named(joints, names) or ("joint_states",)), CLOCK),
            offered[MARKER],
        ),
        Permissions(
            OPERATOR,
            (f"{POLICY}/stop", *SAID),
            (CONDITION_TOPIC, RECORD_TOPIC, SEEN_TOPIC, MARKERS_TOPIC, DIAGNOSTICS, *SAID, CLOCK, *watched),
            request=tuple(f"{node}{name[1:]}" for node, names in offered.items() for name in names),
        ),
    )


def enclave(node: str, namespace: str = "") -> str:
    """The enclave that a launch of this package puts a node into: its own name."""
    return absolute(node, namespace)


def policy_xml(given: tuple[Permissions, ...], namespace: str = "") -> str:
    """The policy file: an enclave for each, named as the node. Raises ConfigError for what is no namespace."""
    if (bare := namespace.strip("/")) and (bare.startswith("~") or not TOPIC.fullmatch(bare)):
        raise ConfigError(f"namespace {namespace!r}: ROS takes none such; give one such as /lab/robot1")
    root = ElementTree.Element("policy", version=VERSION)
    enclaves = ElementTree.SubElement(root, "enclaves")
    for one in given:
        own = ElementTree.SubElement(enclaves, "enclave", path=enclave(one.node, namespace))
        profiles = ElementTree.SubElement(own, "profiles")
        profile = ElementTree.SubElement(profiles, "profile", ns=f"/{namespace.strip('/')}", node=one.node)
        for right, kind, names in (
            ("subscribe", "topic", one.subscribe),
            ("publish", "topic", one.publish),
            ("reply", "service", one.reply),
            ("request", "service", one.request),
            ("call", "action", one.call),
        ):
            if names:
                rule = ElementTree.SubElement(profile, f"{kind}s", {right: "ALLOW"})
                for name in sorted(set(names)):
                    ElementTree.SubElement(rule, kind).text = name
    ElementTree.indent(root)
    return f'<?xml version="1.0" encoding="UTF-8"?>\n{ElementTree.tostring(root, encoding="unicode")}\n'


def _named(topics: Mapping[str, str], remaps: Mapping[str, str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(remaps.get(topic, topic) for topic in topics.values()))
