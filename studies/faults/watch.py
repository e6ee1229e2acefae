"""Everything that nodes say, as it comes off the wire: conditions, commands, diagnostics."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from diagnostic_msgs.msg import DiagnosticArray
from numpy.typing import NDArray
from rclpy.serialization import serialize_message
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

from studies.faults.robot import ARM, GRIP, JOINTS
from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.node_client import NodeClient

OK, WARN, ERROR = 0, 1, 2
STATUSES = {MemoryCondition.OK: "OK", MemoryCondition.STALE: "STALE", MemoryCondition.INVALID: "INVALID"}


@dataclass(frozen=True)
class Condition:
    """What a condition says of itself. empty: an OK one whose arrays are not finite, or all zero."""

    got_ns: int
    stamp_ns: int
    tick: int
    episode: int
    instance: int
    status: str
    reason: str
    restored: bool
    gap_ticks: int
    model_id: str
    empty: bool
    missing: tuple[str, ...]


@dataclass(frozen=True)
class Command:
    """A command of the arm, or of the jaw, whose stamp is 0. sent_ns: when it was written, got_ns: when it came."""

    sent_ns: int
    got_ns: int
    stamp_ns: int
    values: NDArray[np.float64]


@dataclass(frozen=True)
class Status:
    """One status of /diagnostics."""

    at: float
    level: int
    message: str
    values: dict[str, str]


class Watch:
    """Subscribes to all of it; `clear` forgets what was heard, diagnostics of before `clear` included.

    sizes: of conditions, bytes.
    """

    arm_type = JointTrajectory

    def __init__(self, client: NodeClient) -> None:
        node = client.node
        self.conditions: list[Condition] = []
        self.arm: list[Command] = []
        self.jaw: list[Command] = []
        self.health: dict[str, Status] = {}
        self.sizes: list[int] = []
        node.create_subscription(MemoryCondition, "memory/condition", self._on_condition, qos.CONDITION)
        self._node = node
        self._commands: list[Any] = []
        self.take_commands()
        node.create_subscription(DiagnosticArray, "/diagnostics", self._on_health, qos.DIAGNOSTICS)

    def take_commands(self) -> None:
        """Subscribe to commands, as a controller does."""
        create = self._node.create_subscription
        self._commands = [
            create(self.arm_type, ARM, self._on_arm, qos.COMMAND),
            create(Float64MultiArray, GRIP, self._on_jaw, qos.COMMAND),
        ]

    def ignore_commands(self) -> None:
        """Nobody takes them any more."""
        for subscription in self._commands:
            self._node.destroy_subscription(subscription)
        self._commands = []

    def clear(self) -> None:
        """Look anew."""
        for heard in (self.conditions, self.arm, self.jaw, self.health, self.sizes):
            heard.clear()

    @property
    def newest(self) -> Condition | None:
        """The newest condition."""
        return self.conditions[-1] if self.conditions else None

    def caught_up(self) -> bool:
        """Whether no command is newer than the newest condition: two topics come in no order."""
        conditions = (one.stamp_ns for one in self.conditions)
        return max((one.stamp_ns for one in self.arm), default=0) <= max(conditions, default=0)

    def statuses(self, count: int) -> list[str]:
        """Statuses of the newest conditions."""
        return [one.status for one in self.conditions[-count:]]

    def says(self, name: str, level: int, words: Sequence[str] = ()) -> bool:
        """Whether the newest status `name` is at least of `level`, with all words in its message or in one value."""
        status = self.health.get(name)
        if status is None or status.level < level:
            return False
        texts = [status.message, *status.values.values()]
        return not words or any(all(word in text for word in words) for text in texts)

    def value(self, name: str, key: str) -> str:
        """A value of a status; empty where it says none."""
        status = self.health.get(name)
        return status.values.get(key, "") if status else ""

    def bad(self) -> list[str]:
        """Statuses that are not OK, in words."""
        levels = {WARN: "WARN", ERROR: "ERROR"}
        return [f"{n} {levels[s.level]}: {s.message}" for n, s in self.health.items() if s.level in levels]

    def _on_condition(self, message: MemoryCondition) -> None:
        self.sizes.append(len(serialize_message(message)))
        arrays = [np.asarray(part) for part in (message.tokens, message.vector, message.read_weights)]
        ok = message.status == MemoryCondition.OK
        empty = not all(np.isfinite(part).all() for part in arrays) or not np.any(arrays[1])
        pairs = zip(message.input_names, message.input_stamps_ns, strict=True)
        self.conditions.append(
            Condition(
                time.time_ns(),
                conversion.stamp_ns(message.header.stamp),
                int(message.tick),
                int(message.episode),
                int(message.instance),
                STATUSES[message.status],
                message.reason,
                bool(message.restored),
                int(message.gap_ticks),
                message.model_id,
                ok and empty,
                tuple(name for name, stamp in pairs if ok and stamp <= 0),
            )
        )

    def _on_arm(self, message: JointTrajectory, info: Any) -> None:
        given = dict(zip(message.joint_names, message.points[0].positions, strict=True)) if message.points else {}
        values = np.array([given.get(name, np.nan) for name in JOINTS])
        self.arm.append(_command(conversion.stamp_ns(message.header.stamp), values, info))

    def _on_jaw(self, message: Float64MultiArray, info: Any) -> None:
        self.jaw.append(_command(0, np.array(message.data), info))

    def _on_health(self, message: DiagnosticArray) -> None:
        now = time.monotonic()
        for status in message.status:
            level = int.from_bytes(status.level, "little")
            values = {entry.key: entry.value for entry in status.values}
            self.health[status.name] = Status(now, level, status.message, values)


def _command(stamp_ns: int, values: NDArray[np.float64], info: Any) -> Command:
    return Command(int(info["source_timestamp"]), int(info["received_timestamp"]), stamp_ns, values)
