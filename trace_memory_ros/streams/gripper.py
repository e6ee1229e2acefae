"""Grippers of control_msgs: the command, and the feedback that a GripperCommand action publishes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from trace_memory_ros.streams.base import Field, Values, finite, grouped
from trace_memory_ros.streams.cdr import Cdr
from trace_memory_ros.streams.doubles import DoublesCommand, Numbers

COMMAND = DoublesCommand(
    "control_msgs/msg/GripperCommand",
    False,
    (Field("position", "m", True), Field("max_effort", "N")),
    Numbers(("position", "max_effort"), (0, 1), 2),
    usual=("position",),
)


class Feedback:
    """Implements `StreamType`: topic `.../_action/feedback`, whose numbers stand behind the goal's 16 bytes."""

    name = "control_msgs/action/GripperCommand_FeedbackMessage"
    stamped = False
    usual = ("position",)
    table = (Field("position", "m", True), Field("effort", "N"), Field("stalled"), Field("reached_goal"))

    def fields(self, name: str) -> tuple[Field, ...]:
        return grouped(self.table, name, self.name)

    def reader(self, fields: Sequence[str]) -> FeedbackReader:
        return FeedbackReader(fields)


class FeedbackReader:
    """Implements `RecordedReader`."""

    def __init__(self, fields: Sequence[str]) -> None:
        names = [field.name for field in Feedback.table]
        self._fields = tuple(fields)
        self._columns = [names.index(field) for field in fields]

    def live(self, message: Any) -> Values:
        feedback = message.feedback
        return self._selected([getattr(feedback, field.name) for field in Feedback.table])

    def recorded(self, cdr: Cdr) -> Values:
        cdr.raw(16)
        return self._selected([*cdr.doubles(2).tolist(), *cdr.unpack("??", 1)])

    def _selected(self, numbers: Sequence[float]) -> Values:
        return finite(np.array(numbers, dtype=np.float64)[self._columns], self._fields)


FEEDBACK = Feedback()
