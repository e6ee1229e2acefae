"""The messages that a robot's streams are made of, read from CDR without copying what is large."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags.cdr import Cdr

IMAGE = "sensor_msgs/msg/Image"
COMPRESSED = "sensor_msgs/msg/CompressedImage"
JOINTS = "sensor_msgs/msg/JointState"
ODOMETRY = "nav_msgs/msg/Odometry"
TWIST = "geometry_msgs/msg/TwistStamped"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
STATUS = "trace_memory_ros/msg/EpisodeStatus"
BOOL, TEXT = "std_msgs/msg/Bool", "std_msgs/msg/String"
INTEGERS = {
    "std_msgs/msg/Int8": "b",
    "std_msgs/msg/Int16": "h",
    "std_msgs/msg/Int32": "i",
    "std_msgs/msg/Int64": "q",
    "std_msgs/msg/UInt8": "B",
    "std_msgs/msg/UInt16": "H",
    "std_msgs/msg/UInt32": "I",
    "std_msgs/msg/UInt64": "Q",
}
POSE_DOUBLES, COVARIANCE_DOUBLES = 7, 36


class ImageFields(NamedTuple):
    """Of a sensor_msgs/Image; the header has been read before."""

    height: int
    width: int
    encoding: str
    is_bigendian: int
    step: int
    data: memoryview


class TrajectoryPoint(NamedTuple):
    """positions: rad. from_start_ns: when it is to be reached, after the trajectory's stamp."""

    positions: NDArray[np.float64]
    from_start_ns: int


class Status(NamedTuple):
    """Of an EpisodeStatus what episodes and branches are cut by."""

    task: str
    episode: int
    phase: int
    branch: int
    success: bool
    seed: int


def image(cdr: Cdr) -> ImageFields:
    """The rest of an Image after its header."""
    height, width = cdr.unsigned(), cdr.unsigned()
    encoding = cdr.text()
    big = int(cdr.unpack("B", 1)[0])
    step, size = cdr.unsigned(), cdr.unsigned()
    return ImageFields(height, width, encoding, big, step, cdr.raw(size))


def compressed(cdr: Cdr) -> tuple[str, memoryview]:
    """Format and data of a CompressedImage after its header."""
    return cdr.text(), cdr.raw(cdr.unsigned())


def joints(cdr: Cdr, names: SameTexts | None = None) -> tuple[tuple[str, ...], NDArray[np.float64]]:
    """Names and positions (rad) of a JointState after its header; `names` remembers those of the message before."""
    return cdr.texts() if names is None else names.read(cdr), cdr.doubles()


class SameTexts:
    """Reads a sequence of strings that hardly ever changes: by comparing its bytes with the last one's."""

    def __init__(self) -> None:
        self._order = ""
        self._block = b""
        self._texts: tuple[str, ...] = ()

    def read(self, cdr: Cdr) -> tuple[str, ...]:
        """As `Cdr.texts`."""
        begin = -(-cdr.at // 4) * 4
        end = begin + len(self._block)
        if self._block and cdr.order == self._order and cdr.data[begin:end] == self._block:
            cdr.at = end
        else:
            self._texts = cdr.texts()
            self._order, self._block = cdr.order, bytes(cdr.data[begin : cdr.at])
        return self._texts


def odometry(cdr: Cdr) -> tuple[float, float, float]:
    """vx, vy (m/s) and yaw rate (rad/s) of an Odometry after its header."""
    cdr.text()
    cdr.doubles(POSE_DOUBLES + COVARIANCE_DOUBLES)
    return twist(cdr)


def twist(cdr: Cdr) -> tuple[float, float, float]:
    """vx, vy (m/s) and yaw rate (rad/s) of a Twist."""
    vx, vy, _, _, _, yaw_rate = cdr.doubles(6).tolist()
    return vx, vy, yaw_rate


def trajectory(cdr: Cdr) -> tuple[tuple[str, ...], list[TrajectoryPoint]]:
    """Joint names and points of a JointTrajectory after its header."""
    names = cdr.texts()
    points = []
    for _ in range(cdr.unsigned()):
        positions = cdr.doubles()
        for _ in range(3):  # velocities, accelerations, effort
            cdr.doubles()
        points.append(TrajectoryPoint(positions, cdr.stamp_ns()))
    return names, points


def status(cdr: Cdr) -> Status:
    """The fields of an EpisodeStatus after its header."""
    task = cdr.text()
    episode = cdr.unsigned()
    seed = int(cdr.unpack("q", 8)[0])
    cdr.unpack("i", 4)  # cue
    phase = int(cdr.unpack("B", 1)[0])
    cdr.unpack("f", 4)  # elapsed_s
    cdr.unpack("B", 1)  # cue_visible
    branch = int(cdr.unpack("i", 4)[0])
    return Status(task, episode, phase, branch, bool(cdr.unpack("B", 1)[0]), seed)


def plain(cdr: Cdr, type_name: str) -> str | int | bool:
    """The value of a std_msgs Bool, integer or String."""
    if type_name == TEXT:
        return cdr.text()
    if type_name == BOOL:
        return bool(cdr.unpack("B", 1)[0])
    kind = INTEGERS[type_name]
    return int(cdr.unpack(kind, 8 if kind in "qQ" else 4 if kind in "iI" else 2 if kind in "hH" else 1)[0])
