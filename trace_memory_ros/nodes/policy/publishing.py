"""A policy's outputs as messages, on the topic of each part."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.lifecycle import ManagedNode
from trace_memory_ros.nodes.message_classes import fill, message_class, server_class
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.policy.served import ActionSender, ServerCommand, ServerSender, ServiceSender
from trace_memory_ros.observation.config import ObservationConfig
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart
from trace_memory_ros.runtime.limits import is_place, velocity_columns
from trace_memory_ros.runtime.message_fields import MS_NS
from trace_memory_ros.signature.normalise import Standardiser
from trace_memory_ros.streams.base import Plain
from trace_memory_ros.streams.joint_trajectory import JOINT_TRAJECTORY, SECOND_NS
from trace_memory_ros.streams.served import ServedType

NOW = "now"
DRY_RUN = "~/dry_run/"
NOWHERE = -1
LATE_S = 1.0
"""On a busy machine what moves may be stopped so long after it is due."""
Values = NDArray[np.float64]


class CommandPublishers:
    """One publisher per part, or who sends to its server; implements `commands.Publisher`.

    names: the policy's outputs in its own order. shown: what training showed of the state. fault: as of `ServerSender`.
    Raises ConfigError for a message type whose package is not there.
    """

    def __init__(
        self,
        node: ManagedNode,
        actions: ActionConfig,
        names: Sequence[str],
        observation: ObservationConfig,
        shown: Standardiser,
        settings: PolicyNodeParameters,
        fault: Callable[[str, str], None],
    ) -> None:
        self._actions = actions
        self._order = [list(names).index(name) for name in actions.names]
        self._period_ns = observation.period_ns
        self._relative = actions.relative_rows(observation)
        self._shown, self._channels = shown, observation.state
        self._places = place_rows(actions, observation)
        self.velocity = np.array(velocity_columns(actions), dtype=bool)
        self._starts_now = settings.trajectory_stamp == NOW
        self._reach_ns = settings.time_from_start_ms * MS_NS or observation.period_ns
        self._with_velocities = settings.trajectory_velocities
        self._dry = settings.dry_run
        kinds, self._makers = zip(*map(self._made_as, actions.parts), strict=True)
        parted = [(part, self.velocity[at]) for part, at in zip(actions.parts, actions.columns, strict=True)]
        self._by_velocity = [bool(moves.all()) for _, moves in parted]
        self._goes_on = [_goes_on(part, moves) for part, moves in parted]
        self._recent_s = max(1e-3 * settings.hold_ms, 2e-9 * self._period_ns) + LATE_S
        self._made = self._told = np.zeros(len(actions.names))
        self._told_at = -np.inf
        profile = qos.command(settings.command_age_limit_ms)

        def outlet(kind: Any, part: ActionPart) -> Any:
            served = self._served(part)
            if served is None:
                return node.create_lifecycle_publisher(kind, self._topic(part), profile)
            return (ActionSender if served.is_action else ServiceSender)(node, part, fault)

        self._outlets = list(map(outlet, kinds, actions.parts))
        self.senders = [one for one in self._outlets if isinstance(one, ServerSender)]
        self.publishers = [one for one in self._outlets if not isinstance(one, ServerSender)]
        self.topics = [self._topic(part) for part in actions.parts if self._served(part) is None]

    @property
    def moves_by_velocity(self) -> bool:
        """Whether something goes on moving when commands cease."""
        return any(self._goes_on)

    @property
    def without_place(self) -> list[str]:
        """Outputs of which no state channel tells where they are, in their unit."""
        lacking = (self._places == NOWHERE) & ~self.velocity
        return [name for name, none in zip(self._actions.names, lacking, strict=True) if none]

    def targets(self, action: NDArray[np.float32], state: Values) -> Values:
        """What is commanded: relative outputs of `action` `(A,)` are added to the `state` `(d_s,)` of their tick."""
        ordered = action[self._order]
        return np.where(self._relative >= 0, ordered + state[self._relative], ordered)

    def beyond_training(self, state: Values) -> list[str]:
        """Channels of the `state` `(d_s,)` that an output is added to and that are far beyond what training showed."""
        far = self._shown.at_limit(self._shown.apply(state))
        return [self._channels[row] for row in np.unique(self._relative[self._relative >= 0]) if far[row]]

    def place(self, state: Values) -> Values:
        """Where each output is `(A,)`: 0 for velocities, NaN for what no channel tells."""
        return np.where(self.velocity, 0.0, np.where(self._places >= 0, state[self._places], np.nan))

    def messages(self, targets: Values, stamp_ns: int) -> Sequence[Any]:
        plain = self._actions.compose(targets, stamp_ns, self._period_ns)
        self._made = targets
        return [make(values) for make, values in zip(self._makers, plain, strict=True)]

    def publish(self, messages: Sequence[Any]) -> None:
        for outlet, message in zip(self._outlets, messages, strict=True):
            outlet.publish(message)
        self._told, self._told_at = self._made, time.monotonic()

    def still(self, stamp_ns: int) -> None:
        plain = self._actions.compose(np.where(self.velocity, 0.0, self._told), stamp_ns, self._period_ns)
        # Positions in the same message stay as they were told, unless that is so long ago that others may have moved.
        recent = time.monotonic() - self._told_at <= self._recent_s
        for row, (outlet, make, values) in enumerate(zip(self._outlets, self._makers, plain, strict=True)):
            if self._by_velocity[row] or (recent and self._goes_on[row]):
                outlet.publish(make(values))

    def _topic(self, part: ActionPart) -> str:
        return dry_topic(part.topic) if self._dry else part.topic

    def _served(self, part: ActionPart) -> ServedType | None:
        """What a server takes of a part; None for a topic, as there is for each in a dry run."""
        return part.kind if isinstance(part.kind, ServedType) and not self._dry else None

    def _made_as(self, part: ActionPart) -> tuple[Any, Callable[[Plain], Any]]:
        """The class of what is sent, and what makes it of a part's content; in a dry run that of a message, to show."""
        served = part.kind
        if not isinstance(served, ServedType):
            kind = message_class(part.type, part.where)
            return kind, lambda values: fill(kind(), self._accepted(part.type, values))
        if self._dry:
            kind = message_class(served.command.name, part.where)
            return kind, lambda values: fill(kind(), served.inner(values))
        kind = server_class(part.type, part.where)
        made = kind.Goal if served.is_action else kind.Request
        return kind, lambda values: ServerCommand.of(fill(made(), values), values)

    def _accepted(self, type_name: str, values: Plain) -> Plain:
        """What joint_trajectory_controller takes: a begin that is not over yet, and no velocity at the end."""
        if type_name != JOINT_TRAJECTORY.name:
            return values
        if self._starts_now:
            values["header"]["stamp"] = {"sec": 0, "nanosec": 0}
        seconds, nanoseconds = divmod(self._reach_ns, SECOND_NS)
        for point in values["points"]:
            point["time_from_start"] = {"sec": seconds, "nanosec": nanoseconds}
            if point["positions"] and not self._with_velocities:
                point["velocities"] = []
        return values


def _goes_on(part: ActionPart, velocity: NDArray[np.bool_]) -> bool:
    """Whether something goes on when the part's commands cease: by a velocity, of what no output gives a place to."""
    names = [name.partition(".")[2] or name for name in part.fields]
    placed = {name for name, moves in zip(names, velocity, strict=True) if not moves}
    return any(moves and name not in placed for name, moves in zip(names, velocity, strict=True))


def dry_topic(topic: str) -> str:
    """Where a dry run shows what would go to `topic`."""
    return DRY_RUN + topic.removeprefix("~").lstrip("/")


def place_rows(actions: ActionConfig, observation: ObservationConfig) -> NDArray[np.int64]:
    """`(A,)`: the state channel that tells where an output is, -1 where none in its unit or several are of its name."""
    rows = []
    for part in actions.parts:
        for one, name in zip(part.selected, part.names, strict=True):
            unit = part.units.get(one.output, one.field.unit)
            found = observation.channels_of(name, "" if one.given else one.field.name)
            row = observation.state.index(found[0]) if len(found) == 1 else NOWHERE
            known = row != NOWHERE and is_place(observation.state_units[row], unit)
            rows.append(row if known else NOWHERE)
    return np.array(rows, dtype=np.int64)
