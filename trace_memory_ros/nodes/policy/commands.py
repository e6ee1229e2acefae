"""What policy_node sends: commands, the last one repeated for a while where there is none, then nothing."""

from __future__ import annotations

import time
from collections.abc import Callable

from trace_memory_ros.nodes.policy.publishing import Messages


class CommandOutput:
    """Commands of an episode and how many came to what.

    publish: sends messages with the stamp of the tick they answer, and whether they are repeated to hold the robot.
    fault: called with the source and text of a fault. hold_ms: how long the last command is repeated.
    """

    def __init__(
        self, publish: Callable[[Messages, int, bool], None], fault: Callable[[str, str], None], hold_ms: int
    ) -> None:
        self._send = publish
        self._fault = fault
        self._hold_ms = hold_ms
        self.restart()
        self.counts = {"commands": 0, "holds": 0, "no_command": 0}

    def restart(self) -> None:
        """A new episode: there is no last command; counts go on."""
        self._messages: Messages | None = None
        self._last_stamp_ns = 0
        self._unusable_since_ns: int | None = None

    def command(self, messages: Messages, stamp_ns: int) -> None:
        """Send the policy's answer."""
        self._messages = messages
        self._unusable_since_ns = None
        self._publish(stamp_ns, "commands")

    def hold(self, stamp_ns: int, source: str, reason: str) -> None:
        """Repeat the last command for a while, then fall silent."""
        self._fault(source, reason)
        now_ns = time.monotonic_ns()
        if self._unusable_since_ns is None:
            self._unusable_since_ns = now_ns
        if self._messages is None:
            self.counts["no_command"] += 1
        elif now_ns - self._unusable_since_ns <= self._hold_ms * 1_000_000:
            self._publish(stamp_ns, "holds")
        else:
            self.counts["no_command"] += 1
            self._fault("command", f"no usable condition for {self._hold_ms} ms: commands stopped until there is one")

    def repeat(self, source: str, reason: str) -> None:
        """Repeat the last command once, with its own stamp, if there is one."""
        if self._messages is not None:
            self._fault(source, reason)
            self._publish(self._last_stamp_ns, "holds")

    def refuse(self, source: str, reason: str) -> None:
        """Give no command: whoever asked is not whom this policy was trained with."""
        self.counts["no_command"] += 1
        self._messages = None
        self._fault(source, reason)

    def _publish(self, stamp_ns: int, counted: str) -> None:
        assert self._messages is not None
        self.counts[counted] += 1
        self._last_stamp_ns = stamp_ns
        self._send(self._messages, stamp_ns, counted == "holds")
