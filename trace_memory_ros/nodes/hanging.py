"""Ends a process whose executor stands still, so that it may be started again: a node that hangs looks alive.

Fast DDS waits for ever for a lock in shared memory that another process held when it was killed, within `publish` and
with Python's interpreter lock taken. So no thread of Python can watch: `faulthandler`'s does, which needs neither.
"""

from __future__ import annotations

import faulthandler

from rclpy.node import Node

BEATS = 4
"""Times that a working executor says so within the timeout."""


class HangWatch:
    """While it is on, the process ends with exit code 1, and where every thread was on stderr, once no timer fires.

    node: whose executor is watched. timeout_s: how long it may stand still, above 0.
    """

    def __init__(self, node: Node, timeout_s: float) -> None:
        self._node, self._timeout_s = node, timeout_s
        self._timer = node.create_timer(timeout_s / BEATS, self._beat)
        self._beat()

    def _beat(self) -> None:
        faulthandler.dump_traceback_later(self._timeout_s, exit=True)

    def stop(self) -> None:
        """Watch no longer."""
        faulthandler.cancel_dump_traceback_later()
        self._node.destroy_timer(self._timer)
