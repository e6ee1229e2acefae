"""Messages to our types and back. Arrays go through `array.array`, which rclpy copies whole instead of by element."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from builtin_interfaces.msg import Time
from nav_msgs.msg import Odometry
from numpy.typing import NDArray
from sensor_msgs.msg import Image, JointState
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory

from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.runtime.condition import Condition
from trace_memory_ros.runtime.message_fields import SECOND_NS, TickReport, condition_fields, diagnostics_fields
from trace_memory_ros.runtime.message_fields import stamp_ns as stamp_ns

_TYPE_CODES = {"uint8": "B", "float32": "f", "int64": "q", "uint64": "Q"}


class CommandError(ValueError):
    """A command that cannot be obeyed."""


def time_of(ns: int) -> Time:
    """Message stamp of nanoseconds."""
    return Time(sec=ns // SECOND_NS, nanosec=ns % SECOND_NS)


def header(ns: int, frame_id: str = "") -> Header:
    """Header stamped `ns` nanoseconds."""
    return Header(stamp=time_of(ns), frame_id=frame_id)


def image_message(pixels: NDArray[np.uint8], ns: int, frame_id: str) -> Image:
    """An rgb8 image `(H, W, 3)`."""
    height, width, _ = pixels.shape
    return Image(
        header=header(ns, frame_id), height=height, width=width, encoding="rgb8", step=3 * width, data=_sequence(pixels)
    )


def joint_message(positions: Mapping[str, float], ns: int) -> JointState:
    """Joint positions by name, rad."""
    return JointState(header=header(ns), name=list(positions), position=list(positions.values()))


def odometry_message(velocity: NDArray[np.float64], ns: int) -> Odometry:
    """vx, vy (m/s) and yaw rate (rad/s) in the base frame."""
    message = Odometry(header=header(ns, "odom"), child_frame_id="base_link")
    message.pose.pose.orientation.w = 1.0
    twist = message.twist.twist
    twist.linear.x, twist.linear.y, twist.angular.z = (float(v) for v in velocity)
    return message


def command_targets(message: JointTrajectory, names: Sequence[str]) -> NDArray[np.float64]:
    """Targets in the order of `names`. Raises `CommandError` for a missing joint, no point, or a target not finite."""
    if not message.points:
        raise CommandError("command without a trajectory point: send one point with the targets as positions")
    positions = message.points[0].positions
    if len(positions) != len(message.joint_names):
        raise CommandError(f"command with {len(message.joint_names)} joint names and {len(positions)} positions")
    given = dict(zip(message.joint_names, positions, strict=True))
    missing = [name for name in names if name not in given]
    if missing:
        raise CommandError(f"command without {', '.join(missing)}: name every one of the {len(names)} actuators")
    targets = np.array([given[name] for name in names], dtype=np.float64)
    if not np.isfinite(targets).all():
        bad = [name for name, value in zip(names, targets, strict=True) if not np.isfinite(value)]
        raise CommandError(f"command with a target that is not finite for {', '.join(bad)}")
    return targets


def condition_message(condition: Condition, streams: Sequence[str]) -> MemoryCondition:
    """The message of a condition; `streams` in configured order, those without a held sample get stamp -1."""
    return MemoryCondition(header=header(condition.stamp_ns), **_rosidl(condition_fields(condition, streams)))


def diagnostics_message(
    report: TickReport, streams: Sequence[str], counters: Mapping[str, StreamCounters], faults: Sequence[str]
) -> MemoryDiagnostics:
    """The message of a tick; `streams` in configured order."""
    values = _rosidl(diagnostics_fields(report, streams, counters, faults))
    return MemoryDiagnostics(header=header(report.condition.stamp_ns), **values)


def _rosidl(values: Mapping[str, Any]) -> dict[str, Any]:
    return {name: _sequence(value) if isinstance(value, np.ndarray) else value for name, value in values.items()}


def _sequence(values: NDArray[Any]) -> array[Any] | list[Any]:
    """Message values of any array, row-major: an `array.array` is set in microseconds, an ndarray or a list is not."""
    code = _TYPE_CODES.get(values.dtype.name)
    if code is None:
        return list(values.tolist())
    out = array(code)
    out.frombytes(values.tobytes())
    return out
