"""Message types by ROS name: the package's own, and those that other packages bring by entry point."""

from __future__ import annotations

from functools import cache

from trace_memory_ros.files import entry_points
from trace_memory_ros.files.strict import ConfigError, nearest
from trace_memory_ros.streams import arrays, controller_states, gripper, scalars, served, twist
from trace_memory_ros.streams.base import CommandType, StreamType
from trace_memory_ros.streams.imu import IMU
from trace_memory_ros.streams.joint_state import JOINT_STATE
from trace_memory_ros.streams.joint_trajectory import JOINT_TRAJECTORY
from trace_memory_ros.streams.odometry import ODOMETRY
from trace_memory_ros.streams.pose import POSE_STAMPED
from trace_memory_ros.streams.wrench import WRENCH_STAMPED

GROUP = "trace_memory_ros.stream_types"
"""Entry point group: the name is the message type's, the object a `StreamType`."""

_OWN: tuple[StreamType, ...] = (
    JOINT_STATE,
    ODOMETRY,
    twist.TWIST_STAMPED,
    twist.TWIST,
    POSE_STAMPED,
    WRENCH_STAMPED,
    IMU,
    arrays.FLOAT64_ARRAY,
    arrays.FLOAT32_ARRAY,
    *scalars.SCALARS,
    JOINT_TRAJECTORY,
    controller_states.CONTROLLER_STATE,
    controller_states.DYNAMIC_JOINT_STATE,
    gripper.COMMAND,
    gripper.FEEDBACK,
    *served.TYPES,
)
OWN = {kind.name: kind for kind in _OWN}


def names() -> list[str]:
    """All message types that a stream can be of."""
    return sorted({*OWN, *entry_points.names(GROUP)})


@cache
def stream_type(name: str) -> StreamType:
    """The type of that name. Raises ConfigError naming it and what there is."""
    if name in OWN:
        return OWN[name]
    try:
        found = entry_points.load(GROUP, name, "message type")
    except entry_points.EntryPointError as error:
        raise ConfigError(str(error)) from error
    if found is None:
        raise ConfigError(
            f"message type {name!r} cannot be a stream; {nearest(name, names())}. Another package can bring it by the "
            f"entry point group {GROUP}"
        )
    kind: StreamType = found.value
    return kind


def brought_by(name: str) -> str:
    """The imported package that brings the type of that name; empty for one of this package's own."""
    found = None if name in OWN else entry_points.load(GROUP, name, "message type")
    return "" if found is None else found.origin.partition(":")[0].partition(".")[0]


def command_type(name: str) -> CommandType:
    """The type of that name, in which commands can be sent. Raises ConfigError."""
    kind = stream_type(name)
    if not isinstance(kind, CommandType):
        able = [other for other in names() if isinstance(stream_type(other), CommandType)]
        raise ConfigError(f"message type {name!r} cannot be a command; {nearest(name, able)}")
    return kind
