"""Messages of rosbags' typestore, made without ROS: what the nodes' `conversion` makes with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags import fields
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.message_fields import SECOND_NS, TickReport, condition_fields, diagnostics_fields
from trace_memory_ros.runtime.shipped import PACKAGE

CONDITION = f"{PACKAGE}/msg/MemoryCondition"
DIAGNOSTICS = f"{PACKAGE}/msg/MemoryDiagnostics"


def make(type_name: str, **values: Any) -> Any:
    """A message of the typestore. Raises KeyError for an unknown type, TypeError for missing fields."""
    return typestore().types[type_name](**values)


def header(ns: int, frame_id: str = "") -> Any:
    """A std_msgs/Header stamped `ns`."""
    return make("std_msgs/msg/Header", stamp=_time(ns), frame_id=frame_id)


def image(pixels: NDArray[np.uint8], ns: int, frame_id: str = "camera", encoding: str = "rgb8") -> Any:
    """A sensor_msgs/Image of 8-bit pixels `(H, W, channels)` or `(H, W)`."""
    height, width = pixels.shape[:2]
    data = np.ascontiguousarray(pixels).reshape(-1)
    return make(
        fields.IMAGE,
        header=header(ns, frame_id),
        height=height,
        width=width,
        encoding=encoding,
        is_bigendian=0,
        step=data.size // height,
        data=data,
    )


def compressed_image(data: bytes, ns: int, layout: str = "jpeg", frame_id: str = "camera") -> Any:
    """A sensor_msgs/CompressedImage of a whole JPEG or PNG file."""
    content = np.frombuffer(data, dtype=np.uint8)
    return make(fields.COMPRESSED, header=header(ns, frame_id), format=layout, data=content)


def joint_state(names: Sequence[str], positions: Sequence[float] | NDArray[Any], ns: int) -> Any:
    """A sensor_msgs/JointState; positions in rad."""
    return make(
        fields.JOINTS,
        header=header(ns),
        name=list(names),
        position=np.ascontiguousarray(positions, dtype=np.float64),
        velocity=np.zeros(0),
        effort=np.zeros(0),
    )


def odometry(velocity: Sequence[float] | NDArray[Any], ns: int) -> Any:
    """A nav_msgs/Odometry of vx, vy (m/s) and yaw rate (rad/s)."""
    pose = make(
        "geometry_msgs/msg/PoseWithCovariance",
        pose=make(
            "geometry_msgs/msg/Pose",
            position=make("geometry_msgs/msg/Point", x=0.0, y=0.0, z=0.0),
            orientation=make("geometry_msgs/msg/Quaternion", x=0.0, y=0.0, z=0.0, w=1.0),
        ),
        covariance=np.zeros(36),
    )
    twist = make("geometry_msgs/msg/TwistWithCovariance", twist=_twist(velocity), covariance=np.zeros(36))
    return make(fields.ODOMETRY, header=header(ns, "odom"), child_frame_id="base_link", pose=pose, twist=twist)


def twist_stamped(velocity: Sequence[float] | NDArray[Any], ns: int) -> Any:
    """A geometry_msgs/TwistStamped of vx, vy (m/s) and yaw rate (rad/s)."""
    return make(fields.TWIST, header=header(ns, "base_link"), twist=_twist(velocity))


def trajectory(names: Sequence[str], targets: Sequence[float] | NDArray[Any], ns: int, period_ns: int) -> Any:
    """A trajectory_msgs/JointTrajectory of one point; `ns` is the stamp of the tick that it answers."""
    point = make(
        "trajectory_msgs/msg/JointTrajectoryPoint",
        positions=np.ascontiguousarray(targets, dtype=np.float64),
        velocities=np.zeros(0),
        accelerations=np.zeros(0),
        effort=np.zeros(0),
        time_from_start=make(
            "builtin_interfaces/msg/Duration", sec=period_ns // SECOND_NS, nanosec=period_ns % SECOND_NS
        ),
    )
    return make(fields.TRAJECTORY, header=header(ns), joint_names=list(names), points=[point])


def episode_status(ns: int, **values: Any) -> Any:
    """An EpisodeStatus; fields that are not given are zero, `branch` -1."""
    start: dict[str, Any] = {
        "task": "",
        "episode": 0,
        "seed": 0,
        "cue": 0,
        "phase": 0,
        "elapsed_s": 0.0,
        "cue_visible": False,
        "branch": -1,
        "success": False,
        "progress": 0.0,
        "ticks_expected": 0,
    }
    return make(fields.STATUS, header=header(ns), **(start | values))


def text(value: str) -> Any:
    """A std_msgs/String."""
    return make(fields.TEXT, data=value)


def condition_to_message(condition: Condition, streams: Sequence[str]) -> Any:
    """The MemoryCondition of a condition; `streams` in configured order, those without a held sample get stamp -1."""
    return make(CONDITION, header=header(condition.stamp_ns), **condition_fields(condition, streams))


def report_to_message(
    report: TickReport, streams: Sequence[str], counters: Mapping[str, StreamCounters], faults: Sequence[str] = ()
) -> Any:
    """The MemoryDiagnostics of a tick; `streams` in configured order."""
    values = diagnostics_fields(report, streams, counters, faults)
    return make(DIAGNOSTICS, header=header(report.condition.stamp_ns), **values)


def _time(ns: int) -> Any:
    return make("builtin_interfaces/msg/Time", sec=ns // SECOND_NS, nanosec=ns % SECOND_NS)


def _twist(velocity: Sequence[float] | NDArray[Any]) -> Any:
    vx, vy, yaw_rate = (float(value) for value in velocity)
    vector = "geometry_msgs/msg/Vector3"
    return make(
        "geometry_msgs/msg/Twist",
        linear=make(vector, x=vx, y=vy, z=0.0),
        angular=make(vector, x=0.0, y=0.0, z=yaw_rate),
    )
