"""A policy's outputs as messages, on the topic of each part."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.nodes import conversion, qos
from trace_memory_ros.nodes.lifecycle import ManagedNode
from trace_memory_ros.nodes.message_classes import fill, message_class
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import VELOCITIES, ActionConfig

Messages = Sequence[Any]
"""One per part."""


class CommandPublishers:
    """One publisher per part. Raises ConfigError for a message type whose package is not there."""

    def __init__(self, node: ManagedNode, actions: ActionConfig, observation: ObservationConfig) -> None:
        self._actions = actions
        self._period_ns = observation.period_ns
        self._rows = actions.relative_rows(observation)
        self._classes = [message_class(part.type, part.where) for part in actions.parts]
        self._still = [
            None if part.type not in VELOCITIES else message
            for part, message in zip(actions.parts, self.messages(np.zeros(len(actions.names))), strict=True)
        ]
        self.publishers = [
            node.create_lifecycle_publisher(kind, part.topic, qos.COMMAND)
            for kind, part in zip(self._classes, actions.parts, strict=True)
        ]

    def targets(self, action: NDArray[np.float32], state: NDArray[np.float64]) -> NDArray[np.float64]:
        """What is commanded: relative outputs of `action` `(A,)` are added to the `state` `(d_s,)` of their tick."""
        return np.where(self._rows >= 0, action + state[self._rows], action)

    def messages(self, targets: NDArray[np.float64]) -> Messages:
        """The messages of targets `(A,)`, without a stamp. Raises ReadError for those that are no command."""
        plain = self._actions.compose(targets, 0, self._period_ns)
        return [fill(kind(), values) for kind, values in zip(self._classes, plain, strict=True)]

    def publish(self, messages: Messages, stamp_ns: int, hold: bool = False) -> None:
        """Send the messages of one tick, stamped with it where their type has a header.

        hold: the robot shall stay where it is; a velocity is then replaced by zero.
        """
        stamp = conversion.time_of(stamp_ns)
        if hold:
            messages = [still or message for still, message in zip(self._still, messages, strict=True)]
        for part, message in zip(self._actions.parts, messages, strict=True):
            if part.kind.stamped:
                message.header.stamp = stamp
        for publisher, message in zip(self.publishers, messages, strict=True):
            publisher.publish(message)
