"""Commands to a server, as goals of an action or requests of a service: sent where they change."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray
from rclpy.action import ActionClient
from rclpy.node import Node
from rclpy.task import Future

from trace_memory_ros.nodes.message_classes import server_class
from trace_memory_ros.runtime.actions import ActionPart
from trace_memory_ros.streams.base import Plain

Values = NDArray[np.float64]
Fault = Callable[[str, str], None]
ANSWER_S = 1.0
"""A server answers within that time, or its answer is lost."""
AGAIN_S = 1.0
"""So long after a refusal the same command is tried again."""
FORGET_S = 1.0
"""After so long without commands someone else may have moved what the last one moved."""


class ServerCommand(NamedTuple):
    """message: an action's goal or a service's request. numbers: all that it holds."""

    message: Any
    numbers: Values

    @classmethod
    def of(cls, message: Any, content: Plain) -> ServerCommand:
        """content: the message's fields."""
        return cls(message, np.array([*_numbers(content)], dtype=np.float64))


class ServerSender(ABC):
    """Commands of one part, at most one of them unanswered. fault: called with the source and text of a fault."""

    def __init__(self, node: Node, part: ActionPart, fault: Fault) -> None:
        self.name = node.resolve_topic_name(part.topic)
        self._tolerance, self._fault = part.tolerance, fault
        self._sent: Values | None = None
        self._asked: Future[Any] | None = None
        self._asked_at = self._given_at = self._refused_at = -np.inf

    @property
    @abstractmethod
    def taken(self) -> bool:
        """Whether there is a server."""

    @abstractmethod
    def send(self, message: Any) -> Future[Any]:
        """Send a command; its answer will come."""

    @abstractmethod
    def refusal(self, answer: Any) -> str:
        """Why a server took no command, by its answer; empty where it did."""

    @abstractmethod
    def close(self) -> None:
        """Leave the server; what it was told goes on."""

    def publish(self, command: ServerCommand) -> None:
        """Take a tick's command; send it where it is another than the last one."""
        now, taken = time.monotonic(), self.taken
        if now - self._given_at > FORGET_S or not taken:
            self._sent = None
        self._given_at = now
        if self._waits(now) or not taken or not self._moved(command.numbers):
            return
        self._sent, self._asked_at = command.numbers, now
        self._asked = self.send(command.message)
        self._asked.add_done_callback(partial(self._on_answer, command.numbers))

    def forget(self) -> None:
        """A new episode, or a person's word: the next command is sent, whatever the last one was."""
        self._sent, self._refused_at = None, -np.inf

    def _waits(self, now: float) -> bool:
        if self._asked is not None and now - self._asked_at > ANSWER_S:
            self._asked, self._sent = None, None
            self._fault(self.name, f"no answer to a command within {ANSWER_S:g} s: see whether its controller hangs")
        return self._asked is not None or now - self._refused_at < AGAIN_S

    def _moved(self, numbers: Values) -> bool:
        return self._sent is None or bool((np.abs(numbers - self._sent) > self._tolerance).any())

    def _on_answer(self, numbers: Values, answer: Future[Any]) -> None:
        if answer is not self._asked:
            return
        self._asked = None
        error = answer.exception()
        why = self.refusal(answer.result()) if error is None else f"{type(error).__name__}: {error}"
        if not why:
            return
        self._sent, self._refused_at = None, time.monotonic()
        said = ", ".join(f"{number:g}" for number in numbers)
        self._fault(self.name, f"the command {said} was refused: {why}")


class ActionSender(ServerSender):
    """Goals of an action, each of which ends the one before.

    Results are not asked for: a gripper that holds something has not reached its goal.
    """

    def __init__(self, node: Node, part: ActionPart, fault: Fault) -> None:
        super().__init__(node, part, fault)
        # Actions heed no remapping rule themselves.
        self._client: Any = ActionClient(node, server_class(part.type, part.where), self.name)

    @property
    def taken(self) -> bool:
        return bool(self._client.server_is_ready())

    def send(self, message: Any) -> Future[Any]:
        answer: Future[Any] = self._client.send_goal_async(message)
        return answer

    def refusal(self, answer: Any) -> str:
        return "" if answer.accepted else "see whether its controller is active, and its range"

    def close(self) -> None:
        self._asked = None
        self._client.destroy()


class ServiceSender(ServerSender):
    """Requests of a service; where its answer has `success` and `message`, these tell of a refusal."""

    def __init__(self, node: Node, part: ActionPart, fault: Fault) -> None:
        super().__init__(node, part, fault)
        self._node = node
        self._client: Any = node.create_client(server_class(part.type, part.where), part.topic)

    @property
    def taken(self) -> bool:
        return bool(self._client.service_is_ready())

    def send(self, message: Any) -> Future[Any]:
        answer: Future[Any] = self._client.call_async(message)
        return answer

    def refusal(self, answer: Any) -> str:
        if getattr(answer, "success", True):
            return ""
        return getattr(answer, "message", "") or "its server does not say why"

    def close(self) -> None:
        self._asked = None
        self._node.destroy_client(self._client)


def _numbers(content: Any) -> Iterator[float]:
    if isinstance(content, Mapping):
        content = list(content.values())
    if isinstance(content, (list, tuple)):
        for part in content:
            yield from _numbers(part)
    elif not isinstance(content, str):
        yield float(content)
