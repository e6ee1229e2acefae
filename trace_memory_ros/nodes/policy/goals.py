"""Commands as goals of a ROS action: sent where the target moved, since each goal ends the one before."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future

from trace_memory_ros.nodes.message_classes import action_class
from trace_memory_ros.runtime.actions import ActionPart

Values = NDArray[np.float64]
ANSWER_S = 1.0
"""A server accepts or rejects within that time, or its answer is lost."""
AGAIN_S = 1.0
"""So long after a rejection the same target is tried again."""
FORGET_S = 1.0
"""After so long without commands someone else may have moved what the last goal moved."""


class Goal(NamedTuple):
    """message: of the action's goal type. targets: the part's outputs `(A_p,)`."""

    message: Any
    targets: Values


class GoalSender:
    """One action's goals, at most one of them unanswered. fault: called with the source and text of a fault.

    Results are not asked for: a gripper that holds something has not reached its goal.
    """

    def __init__(self, node: Node, part: ActionPart, fault: Callable[[str, str], None]) -> None:
        # Actions heed no remapping rule themselves.
        self.name = node.resolve_topic_name(part.topic)
        self._client: Any = ActionClient(node, action_class(part.type, part.where), self.name)
        self._tolerance, self._fault = part.tolerance, fault
        self._sent: Values | None = None
        self._asked: Future[Any] | None = None
        self._asked_at = self._given_at = self._rejected_at = -np.inf

    @property
    def taken(self) -> bool:
        """Whether there is a server."""
        return bool(self._client.server_is_ready())

    def publish(self, goal: Goal) -> None:
        """Take a tick's command; send it where the target is another than the last goal's."""
        now, taken = time.monotonic(), self.taken
        if now - self._given_at > FORGET_S or not taken:
            self._sent = None
        self._given_at = now
        if self._waits(now) or not taken or not self._moved(goal.targets):
            return
        self._sent, self._asked_at = goal.targets, now
        self._asked = self._client.send_goal_async(goal.message)
        self._asked.add_done_callback(partial(self._on_answer, goal.targets))

    def forget(self) -> None:
        """A new episode, or a person's word: the next command is sent, wherever the last goal was."""
        self._sent, self._rejected_at = None, -np.inf

    def close(self) -> None:
        """Leave the action; a goal goes on."""
        self._asked = None
        self._client.destroy()

    def _waits(self, now: float) -> bool:
        if self._asked is not None and now - self._asked_at > ANSWER_S:
            self._asked, self._sent = None, None
            self._fault(self.name, f"no answer to a goal within {ANSWER_S:g} s: see whether its controller hangs")
        return self._asked is not None or now - self._rejected_at < AGAIN_S

    def _moved(self, targets: Values) -> bool:
        return self._sent is None or bool((np.abs(targets - self._sent) > self._tolerance).any())

    def _on_answer(self, targets: Values, answer: Future[Any]) -> None:
        if answer is not self._asked:
            return
        self._asked = None
        handle: Any = None if answer.exception() else answer.result()
        if handle is not None and handle.accepted:
            return
        self._sent, self._rejected_at = None, time.monotonic()
        numbers = ", ".join(f"{value:g}" for value in targets)
        text = f"the goal {numbers} was rejected: see whether its controller is active, and its range"
        self._fault(self.name, text)
