"""A wall-clock deadline for late inputs that is fair to inputs which are late only because this process was."""

from __future__ import annotations

import time
from collections.abc import Callable

from rclpy.node import Node
from rclpy.timer import Timer

ROUND_NS = 2_000_000
MAX_ROUNDS = 20


class DrainedDeadline:
    """Calls `callback` at a wall time, after the inputs that waited in their queues by then were handled.

    The executor serves timers before subscriptions. On a busy machine a process may sleep past the deadline with all
    its inputs arrived, and would give them up unread. So the deadline first lets rounds of other callbacks pass until
    one brings no input, at most `MAX_ROUNDS` of `ROUND_NS`.
    """

    def __init__(self, node: Node, callback: Callable[[], None]) -> None:
        self._callback = callback
        self._at_ns: int | None = None
        self._rounds = 0
        self._input_seen = False
        self.timer: Timer = node.create_timer(1.0, self._expire, autostart=False)

    def note_input(self) -> None:
        """An input was handled."""
        self._input_seen = True

    def set(self, at_ns: int | None) -> None:
        """Move the deadline to `at_ns` of `time.monotonic_ns`, or take it away."""
        if at_ns == self._at_ns:
            return
        self._at_ns = at_ns
        self._rounds = 0
        if at_ns is None:
            self.timer.cancel()
        else:
            self._arm(max(0, at_ns - time.monotonic_ns()))

    def _arm(self, in_ns: int) -> None:
        self.timer.timer_period_ns = in_ns
        self.timer.reset()

    def _expire(self) -> None:
        self.timer.cancel()
        if self._rounds == 0 or (self._input_seen and self._rounds < MAX_ROUNDS):
            self._rounds += 1
            self._input_seen = False
            self._arm(ROUND_NS)
            return
        self._at_ns = None
        self._callback()
