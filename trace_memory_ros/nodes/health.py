"""Faults of a node: each distinct one is logged once and shown in diagnostics for as long as it lasts."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from diagnostic_msgs.msg import DiagnosticArray, DiagnosticStatus, KeyValue
from rclpy.node import Node

from trace_memory_ros.nodes.conversion import header
from trace_memory_ros.nodes.memory.findings import Finding, Level, worst

RECENT_S = 3.0
"""A fault seen within this time is current; older ones stay listed as past."""

MAX_FAULTS = 64
"""Texts that differ in their numbers must not fill the memory of a node that runs for weeks."""


@dataclass
class _Fault:
    source: str
    count: int = 0
    seen_s: float = 0.0
    logged: bool = False


class Health:
    """Distinct fault texts by source, with how often and when they were last seen; at most `MAX_FAULTS`."""

    def __init__(self) -> None:
        self._faults: dict[str, _Fault] = {}
        self._crowded = False
        self._logged_s = 0.0

    def note(self, source: str, text: str) -> bool:
        """Remember a fault, where there are too many in place of the one seen longest ago; True if it is to be logged.

        That is the first time, but once many were forgotten no sooner than `RECENT_S` after the one logged before.
        """
        now = time.monotonic()
        if text not in self._faults and len(self._faults) >= MAX_FAULTS:
            del self._faults[min(self._faults, key=lambda known: self._faults[known].seen_s)]
            self._crowded = True
        fault = self._faults.setdefault(text, _Fault(source))
        fault.source, fault.seen_s = source, now
        fault.count += 1
        if fault.logged or (self._crowded and now - self._logged_s < RECENT_S):
            return False
        fault.logged, self._logged_s = True, now
        return True

    @property
    def faults(self) -> list[str]:
        """Distinct faults so far, in order of first appearance."""
        return list(self._faults)

    @property
    def current(self) -> list[str]:
        """Faults seen within the last `RECENT_S`."""
        now = time.monotonic()
        return [text for text, fault in self._faults.items() if now - fault.seen_s < RECENT_S]

    def entries(self) -> list[KeyValue]:
        return [
            KeyValue(key=f"fault: {fault.source}", value=f"{text} ({fault.count} times)")
            for text, fault in self._faults.items()
        ]


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
