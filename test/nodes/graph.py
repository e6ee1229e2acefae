"""What a node of the graph really declares, beside what a policy allows it."""

from __future__ import annotations

import time
from collections.abc import Mapping, Set
from xml.etree import ElementTree

from rclpy.action import get_action_client_names_and_types_by_node
from rclpy.node import Node

from trace_memory_ros.nodes.permissions import permissions, policy_xml
from trace_memory_ros.nodes.robot_topics import RobotTopics

RIGHTS = {"publish": "publisher", "subscribe": "subscriber", "reply": "service", "request": "client", "call": "action"}
PART_OF_ACTION = "/_action/"
Rights = Mapping[str, Set[str]]


def declared(seen_by: Node, node: str, namespace: str, least: int = 6, patience_s: float = 20.0) -> Rights:
    """Full names by right, as the graph knows them once it knows of `least` services and of no new ones."""
    space, deadline = f"/{namespace}" if namespace else "/", time.monotonic() + patience_s
    before: Rights = {}
    while True:
        found = {right: _names(seen_by, kind, node, space) for right, kind in RIGHTS.items()}
        if (found == before and len(found["reply"]) >= least) or time.monotonic() > deadline:
            return found
        before = found
        time.sleep(0.2)


def _names(seen_by: Node, kind: str, node: str, space: str) -> set[str]:
    if (node, space) not in seen_by.get_node_names_and_namespaces():
        return set()  # not heard of yet
    if kind == "action":
        return {name for name, _ in get_action_client_names_and_types_by_node(seen_by, node, space)}
    found = {name for name, _ in getattr(seen_by, f"get_{kind}_names_and_types_by_node")(node, space)}
    return {name for name in found if PART_OF_ACTION not in name}


def allowed(checkpoint: str, node: str, namespace: str, dry_run: bool = False, actions_file: str = "") -> Rights:
    """Full names by right, read from the written policy as SROS 2 reads it."""
    topics = RobotTopics.of_checkpoint(checkpoint).commanding(actions_file)
    text = policy_xml(permissions(topics, (), dry_run), namespace)
    return read(ElementTree.fromstring(text.encode()), node)


def read(policy: ElementTree.Element, node: str) -> Rights:
    """The rights of an enclave's profile: `~` is the node, what begins with no slash lies in its namespace."""
    (profile,) = (found for found in policy.iter("profile") if found.get("node") == node)
    space = (profile.get("ns") or "").rstrip("/") + "/"
    rights: dict[str, set[str]] = {right: set() for right in RIGHTS}
    for rule in profile:
        for right in RIGHTS:
            if rule.get(right) == "ALLOW":
                rights[right] |= {_full(entry.text or "", space, node) for entry in rule}
    return rights


def _full(name: str, space: str, node: str) -> str:
    if name.startswith("~"):
        return f"{space}{node}{name[1:]}"
    return name if name.startswith("/") else f"{space}{name}"


def unused(rights: Rights, used: Rights) -> set[str]:
    """What is allowed and not declared."""
    return {name for right, names in rights.items() for name in names - used[right]}
