"""ROS actions whose goals are commands: how ros2_control's gripper controllers, and most grippers, are moved."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.streams import gripper
from trace_memory_ros.streams.base import CommandType, Field, Plain
from trace_memory_ros.streams.joint_state import JOINT_STATE


@dataclass(frozen=True)
class GoalType:
    """Implements `CommandType` for an action whose goal is one message, `command`; it is sent, and never read.

    name: as `control_msgs/action/GripperCommand`.
    """

    name: str
    command: CommandType
    stamped: bool = False

    @property
    def usual(self) -> tuple[str, ...]:
        return self.command.usual

    def fields(self, name: str) -> tuple[Field, ...]:
        return self.command.fields(name)

    def reader(self, fields: Sequence[str]) -> NoReturn:
        raise ConfigError(not_recorded(self.name))

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        return {"command": self.command.compose(targets, period_ns)}


def not_recorded(name: str) -> str:
    """Why an action's goals are no recording, and what to do."""
    return (
        f"goals of {name} are on no topic, so no bag holds them: name the topic that the demonstrator moved it by, or "
        "its measured place, and give the action to policy_node's actions_file"
    )


GRIPPER = GoalType("control_msgs/action/GripperCommand", gripper.COMMAND)
PARALLEL_GRIPPER = GoalType("control_msgs/action/ParallelGripperCommand", JOINT_STATE)
