"""Faults of a node: each distinct one is logged once and shown in diagnostics for as long as it lasts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from trace_memory_ros.nodes.conversion import header
from trace_memory_ros.nodes.memory.findings import Finding, Level, worst

RECENT_S = 3.0
"""A fault seen within this time is current; older ones stay listed as past."""

MAX_FAULTS = 64
"""Texts that differ in their numbers must not fill the memory of a node that runs for weeks."""


class Health:
    """Distinct fault texts by source, with how often and when they were last seen."""

    def __init__(self) -> None:
        self._count: dict[str, int] = {}
        self._source: dict[str, str] = {}
        self._seen: dict[str, float] = {}

    def note(self, source: str, text: str) -> bool:
        """Remember a fault; True the first time, when it is to be logged."""
        first = text not in self._count
        if first and len(self._count) >= MAX_FAULTS:
            return False
        self._count[text] = self._count.get(text, 0) + 1
        self._source[text] = source
        self._seen[text] = time.monotonic()
        return first

    @property
    def faults(self) -> list[str]:
        """Distinct faults so far, in order of first appearance."""
        return list(self._count)

    @property
    def current(self) -> list[str]:
        """Faults seen within the last `RECENT_S`."""
        now = time.monotonic()
        return [text for text, seen in self._seen.items() if now - seen < RECENT_S]

    def entries(self) -> list[KeyValue]:
        return [KeyValue(key=f"fault: {self._source[t]}", value=f"{t} ({n} times)") for t, n in self._count.items()]


def status_array(node: Node, findings: Sequence[Finding], health: Health) -> DiagnosticArray:
    """The node's own status, the worst of all and of what is current in `health`, then one per part."""
    found = worst(list(findings))
    current = health.current
    if current and found.level == Level.OK:
        found = Finding("", Level.WARN, current[-1])
    name = node.get_fully_qualified_name().strip("/")
    own = DiagnosticStatus(level=_byte(found.level), name=name, message=found.message, values=health.entries())
    if found.level == Level.OK:
        own.message = "working"
    parts = [
        DiagnosticStatus(
            level=_byte(finding.level),
            name=f"{name}: {finding.part}",
            message=finding.message,
            values=[KeyValue(key=key, value=value) for key, value in finding.values.items()],
        )
        for finding in findings
    ]
    return DiagnosticArray(header=header(time.time_ns()), status=[own, *parts])


def _byte(level: Level) -> bytes:
    return bytes([level])


def diagnostic_array(node: Node, health: Health, values: Mapping[str, str], error: str = "") -> DiagnosticArray:
    """One status of the node: ERROR with `error`, WARN while a fault is current, else OK."""
    current = health.current
    level, message = DiagnosticStatus.OK, "working"
    if current:
        level, message = DiagnosticStatus.WARN, current[-1]
    if error:
        level, message = DiagnosticStatus.ERROR, error
    status = DiagnosticStatus(
        level=level,
        name=node.get_fully_qualified_name().strip("/"),
        message=message,
        hardware_id="",
        values=[KeyValue(key=key, value=value) for key, value in values.items()] + health.entries(),
    )
    return DiagnosticArray(header=header(time.time_ns()), status=[status])
