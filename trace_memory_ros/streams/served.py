"""Commands that a server takes: goals of a ROS action, as ros2_control's grippers want, and requests of a service."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.streams import gripper
from trace_memory_ros.streams.base import CommandType, Field, Plain
from trace_memory_ros.streams.joint_state import JOINT_STATE
from trace_memory_ros.streams.scalars import BOOL


@dataclass(frozen=True)
class ServedType:
    """Implements `CommandType`; it is sent, and never read.

    name: as `control_msgs/action/GripperCommand`, whose goal has one field, `command`, or `std_srvs/srv/SetBool`, whose
    request has the fields of a message. command: the type of that message.
    """

    name: str
    command: CommandType
    stamped: bool = False

    @property
    def is_action(self) -> bool:
        """Whether it is an action, and no service."""
        return "/action/" in self.name

    @property
    def usual(self) -> tuple[str, ...]:
        return self.command.usual

    def fields(self, name: str) -> tuple[Field, ...]:
        return self.command.fields(name)

    def reader(self, fields: Sequence[str]) -> NoReturn:
        raise ConfigError(not_recorded(self.name))

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        content = self.command.compose(targets, period_ns)
        return {"command": content} if self.is_action else content

    def inner(self, content: Plain) -> Plain:
        """The fields of the message in what `compose` gave."""
        return dict(content["command"]) if self.is_action else content


def not_recorded(name: str) -> str:
    """Why what a server is sent is no recording, and what to do."""
    return (
        f"what a server of {name} is sent is on no topic, so no bag holds it: name the topic that the demonstrator "
        "moved it by, or its measured place, and give the server to policy_node's actions_file"
    )


TYPES = (
    ServedType("control_msgs/action/GripperCommand", gripper.COMMAND),
    ServedType("control_msgs/action/ParallelGripperCommand", JOINT_STATE),
    ServedType("std_srvs/srv/SetBool", BOOL),
)
