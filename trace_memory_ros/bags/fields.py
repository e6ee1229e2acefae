"""The messages that a robot's streams are made of, read from CDR without copying what is large."""

from __future__ import annotations

from typing import NamedTuple

from trace_memory_ros.observation.config import TRANSPORTS
from trace_memory_ros.observation.content import CompressedImage, RawImage, VideoPacket
from trace_memory_ros.streams.cdr import Cdr
from trace_memory_ros.streams.scalars import INTEGERS as INTEGERS

IMAGE, COMPRESSED = TRANSPORTS["raw"], TRANSPORTS["compressed"]
JOINTS = "sensor_msgs/msg/JointState"
ODOMETRY = "nav_msgs/msg/Odometry"
TWIST = "geometry_msgs/msg/TwistStamped"
TRAJECTORY = "trajectory_msgs/msg/JointTrajectory"
STATUS = "trace_memory_ros/msg/EpisodeStatus"
BOOL, TEXT = "std_msgs/msg/Bool", "std_msgs/msg/String"


class Status(NamedTuple):
    """Of an EpisodeStatus what episodes and branches are cut by."""

    task: str
    episode: int
    phase: int
    branch: int
    success: bool
    seed: int


def image(cdr: Cdr) -> RawImage:
    """The rest of an Image after its header."""
    height, width = cdr.unsigned(), cdr.unsigned()
    encoding = cdr.text()
    big = int(cdr.unpack("B", 1)[0])
    step, size = cdr.unsigned(), cdr.unsigned()
    return RawImage(cdr.raw(size), encoding, height, width, step, big)


def compressed(cdr: Cdr) -> CompressedImage:
    """The rest of a CompressedImage after its header."""
    text = cdr.text()
    return CompressedImage(cdr.raw(cdr.unsigned()), text)


def video(cdr: Cdr) -> VideoPacket:
    """The rest of a CompressedVideo after timestamp and frame."""
    data = cdr.raw(cdr.unsigned())
    return VideoPacket(data, cdr.text())


def ffmpeg(cdr: Cdr) -> VideoPacket:
    """The rest of an FFMPEGPacket after its header."""
    cdr.unpack("ii", 4)  # width, height
    encoding = cdr.text()
    cdr.unpack("Q", 8)  # presentation time
    cdr.unpack("BB", 1)  # flags, is_bigendian
    return VideoPacket(cdr.raw(cdr.unsigned()), encoding)


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
