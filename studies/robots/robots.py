"""Three robots that nobody here owns, as their drivers publish: made-up joints, rates, topics and message types.

An episode shows a red or a green panel for a while, not at its start, moves along one and the same path, and then turns
left or right by what the panel was.
"""

from __future__ import annotations

import shutil
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.bags import fields, messages
from trace_memory_ros.bags.layout import METADATA
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.bags.writer import BagFileWriter
from trace_memory_ros.streams.joint_trajectory import JOINT_TRAJECTORY

ANSWERS = ("left", "right")
COLOURS = ((200, 40, 40), (40, 170, 60))
BEGIN_NS = 1_750_000_000_000_000_000
SECOND_NS = 1_000_000_000
LATENCY_S = {"camera": 0.018, "command": 0.001}
LAG_S = 0.06
"""By how much an arm is behind its commands."""
CUE_SHARE = 0.25
"""Of an episode, for which the panel is shown."""
TURN = 0.5

Numbers = NDArray[np.float64]
Compose = Callable[["Moment"], Any]


class Moment(NamedTuple):
    """What is true at a time of an episode. pose: of the joints as measured; aim: as commanded. Both `(J,)`."""

    ns: int
    pose: Numbers
    aim: Numbers
    speed: Numbers
    picture: NDArray[np.uint8]


class Entry(NamedTuple):
    """A message to be published or recorded. ns: when it is sent, after the time that its header tells."""

    topic: str
    type_name: str
    ns: int
    data: bytes


@dataclass(frozen=True)
class Topic:
    """A topic of a robot: its rate, what it carries, and how late it comes; `picture`: whether it needs one."""

    name: str
    type_name: str
    rate_hz: float
    compose: Compose
    late_s: float = 0.002
    picture: bool = False


@dataclass(frozen=True)
class Robot:
    """A robot and its tick, which is that of its commands. turned: joints that tell left from right."""

    name: str
    tick_ms: int
    joints: int
    turned: tuple[int, ...]
    topics: tuple[Topic, ...]
    picture_px: tuple[int, int] = (120, 160)

    def episode(self, scene: int, seconds: float, begin_ns: int = BEGIN_NS) -> Iterator[Entry]:
        """Everything that is published in the episode of a scene, in the order of sending; even scenes are left."""
        play = Play(self, scene, seconds)
        entries = []
        for topic in self.topics:
            offset_s = play.rng.uniform(0, 0.4 / topic.rate_hz)
            for k in range(int((seconds - offset_s) * topic.rate_hz)):
                t = offset_s + k / topic.rate_hz
                message = topic.compose(play.at(t, begin_ns, topic.picture))
                sent_ns = begin_ns + round(1e9 * (t + topic.late_s))
                data = bytes(typestore().serialize_cdr(message, topic.type_name))
                entries.append(Entry(topic.name, topic.type_name, sent_ns, data))
        branch_ns = begin_ns + round(1e9 * play.branch_s)
        answer = bytes(typestore().serialize_cdr(messages.text(ANSWERS[scene % 2]), fields.TEXT))
        entries.append(Entry("/branch", fields.TEXT, branch_ns, answer))
        yield from sorted(entries, key=lambda entry: entry.ns)

    def recorded(self, bag: Path, scene: int, seconds: float) -> Path:
        """The bag of an episode, recorded where it is not there; what an interrupted call left is no bag."""
        if (bag / METADATA).exists():
            return bag
        shutil.rmtree(bag, ignore_errors=True)
        return self.record(bag, scene, seconds)

    def record(self, bag: Path, scene: int, seconds: float) -> Path:
        """An episode as `ros2 bag record` keeps it."""
        topics = {topic.name: topic.type_name for topic in self.topics} | {"/branch": fields.TEXT}
        with BagFileWriter(bag, topics, compression="chunk", whole=True) as writer:
            for entry in self.episode(scene, seconds):
                writer.write_raw(entry.topic, entry.data, entry.ns)
        return bag


class Play:
    """One episode's motion and pictures by time."""

    def __init__(self, robot: Robot, scene: int, seconds: float) -> None:
        self.robot, self.side = robot, scene % 2
        # By name: robots with as many joints would move alike, and be shown their cues at the same times.
        own = zlib.crc32(robot.name.encode())
        self.rng = np.random.default_rng([scene, own])
        # What all episodes share, and what no two do.
        shared = np.random.default_rng(own)
        self._shape = shared.uniform(-1.0, 1.0, (3, robot.joints))
        self._own = 0.05 * self.rng.normal(size=(3, robot.joints))
        self._phase = self.rng.uniform(0, 2 * np.pi, (3, robot.joints))
        self.seconds = seconds
        self.cue_s = self.rng.uniform(0.1, 0.2) * seconds
        self.branch_s = 0.7 * seconds
        self._ground = self.rng.integers(90, 130, (*robot.picture_px, 3)).astype(np.uint8)
        self._place = self.rng.integers(0, [robot.picture_px[0] // 2, robot.picture_px[1] // 2])

    def at(self, t: float, begin_ns: int, picture: bool) -> Moment:
        """What is true `t` seconds after the begin."""
        aim, pose, before = self._aim(t), self._aim(t - LAG_S), self._aim(t - LAG_S - 0.01)
        shown = self._picture(t) if picture else np.zeros((0, 0, 3), np.uint8)
        return Moment(begin_ns + round(1e9 * t), pose, aim, (pose - before) / 0.01, shown)

    def _aim(self, t: float) -> Numbers:
        share = min(max(t, 0.0), self.branch_s) / self.seconds
        waves = np.arange(1, 4)[:, None] * np.pi * share
        aim = (0.5 * self._shape * np.sin(waves) / np.arange(1, 4)[:, None]).sum(axis=0)
        aim += (self._own * np.sin(waves + self._phase)).sum(axis=0)
        turn = min(max((t - self.branch_s) / (0.2 * self.seconds), 0.0), 1.0)
        aim[list(self.robot.turned)] += TURN * (2 * self.side - 1) * turn
        return np.asarray(aim)

    def _picture(self, t: float) -> NDArray[np.uint8]:
        picture = np.roll(self._ground, round(20 * t), axis=1)
        if self.cue_s <= t < self.cue_s + CUE_SHARE * self.seconds:
            height, width = self.robot.picture_px
            top, left = self._place
            picture[top : top + height // 2, left : left + width // 2] = COLOURS[self.side]
        return picture


def header(ns: int) -> dict[str, Any]:
    """A header's plain values."""
    return {"stamp": {"sec": ns // SECOND_NS, "nanosec": ns % SECOND_NS}, "frame_id": ""}


def joints_of(names: tuple[str, ...], first: int, velocities: bool = False) -> Compose:
    """A JointState of the joints from `first` on, in an order that is not theirs."""
    order = np.random.default_rng(len(names)).permutation(len(names))

    def compose(now: Moment) -> Any:
        rows = first + order
        values = {"name": [names[i] for i in order], "position": now.pose[rows]}
        more = {"velocity": now.speed[rows]} if velocities else {}
        return messages.filled(fields.JOINTS, {"header": header(now.ns), **values, **more})

    return compose


def numbers_of(type_name: str, pick: Callable[[Moment], Any]) -> Compose:
    """A message with a field `data`."""
    return lambda now: messages.filled(type_name, {"data": pick(now)})


def trajectory_of(names: tuple[str, ...], first: int, period_ms: int) -> Compose:
    """A JointTrajectory of one point for the joints from `first` on."""

    def compose(now: Moment) -> Any:
        targets = {f"position.{name}": float(now.aim[first + i]) for i, name in enumerate(names)}
        plain = JOINT_TRAJECTORY.compose(targets, period_ms * 1_000_000)
        return messages.filled(fields.TRAJECTORY, {"header": header(now.ns), **plain})

    return compose


def image(now: Moment) -> Any:
    """A raw picture."""
    return messages.image(now.picture, now.ns)


def jpeg(now: Moment) -> Any:
    """A JPEG picture."""
    done, file = cv2.imencode(".jpg", cv2.cvtColor(now.picture, cv2.COLOR_RGB2BGR), [cv2.IMWRITE_JPEG_QUALITY, 90])
    assert done
    return messages.compressed_image(file.tobytes(), now.ns, "rgb8; jpeg compressed bgr8")


def wrench(now: Moment) -> Any:
    """Forces that grow with speed, and gravity."""
    force = dict(zip("xyz", (*(3.0 * now.speed[:2]), -9.8), strict=True))
    torque = dict(zip("xyz", 0.1 * now.speed[2:5], strict=True))
    return messages.filled(
        "geometry_msgs/msg/WrenchStamped", {"header": header(now.ns), "wrench": {"force": force, "torque": torque}}
    )


def odometry(now: Moment) -> Any:
    """The base's velocity: joints 0 and 1 of the robot are its speed and its turning."""
    return messages.odometry((now.pose[0], 0.0, now.pose[1]), now.ns)


def drive(now: Moment) -> Any:
    """What the base is told."""
    return messages.filled(
        "geometry_msgs/msg/Twist", {"linear": {"x": float(now.aim[0])}, "angular": {"z": float(now.aim[1])}}
    )


SIX = ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")
ARM = tuple(f"joint_{i}" for i in range(1, 7))
MOBILE = ("torso_lift", "arm_1", "arm_2", "arm_3", "arm_4")

ROBOTS = {
    robot.name: robot
    for robot in (
        Robot(
            "six_axis_gripper",
            tick_ms=50,
            joints=7,
            turned=(0, 6),
            topics=(
                Topic("/camera/color/image_raw/compressed", fields.COMPRESSED, 30, jpeg, LATENCY_S["camera"], True),
                Topic("/joint_states", fields.JOINTS, 125, joints_of(SIX, 0)),
                Topic(
                    "/gripper/width",
                    "std_msgs/msg/Float32",
                    40,
                    numbers_of("std_msgs/msg/Float32", lambda now: 0.04 + 0.03 * float(now.pose[6])),
                ),
                Topic(
                    "/forward_position_controller/commands",
                    "std_msgs/msg/Float64MultiArray",
                    20,
                    numbers_of("std_msgs/msg/Float64MultiArray", lambda now: now.aim[:6].copy()),
                    LATENCY_S["command"],
                ),
                Topic(
                    "/gripper/command",
                    "std_msgs/msg/Float64",
                    20,
                    numbers_of("std_msgs/msg/Float64", lambda now: 0.04 + 0.03 * float(now.aim[6])),
                    LATENCY_S["command"],
                ),
            ),
        ),
        Robot(
            "two_arms_wrench",
            tick_ms=20,
            joints=12,
            turned=(0, 6),
            topics=(
                Topic("/cell/camera/image_raw", fields.IMAGE, 30, image, LATENCY_S["camera"], True),
                Topic("/hand_camera/image_raw", fields.IMAGE, 15, image, LATENCY_S["camera"], True),
                Topic("/left/joint_states", fields.JOINTS, 250, joints_of(ARM, 0, velocities=True)),
                Topic("/right/joint_states", fields.JOINTS, 250, joints_of(ARM, 6, velocities=True)),
                Topic("/right/wrench", "geometry_msgs/msg/WrenchStamped", 100, wrench),
                Topic("/left/arm_controller/joint_trajectory", fields.TRAJECTORY, 50, trajectory_of(ARM, 0, 20), 1e-3),
                Topic(
                    "/right/arm_controller/joint_trajectory", fields.TRAJECTORY, 50, trajectory_of(ARM, 6, 20), 0.001
                ),
            ),
        ),
        Robot(
            "mobile_manipulator",
            tick_ms=100,
            joints=7,
            turned=(1, 3),
            topics=(
                Topic("/head_camera/rgb/image_raw", fields.IMAGE, 15, image, LATENCY_S["camera"], True),
                Topic("/odom", fields.ODOMETRY, 50, odometry),
                Topic("/joint_states", fields.JOINTS, 50, joints_of(MOBILE, 2)),
                Topic("/cmd_vel", "geometry_msgs/msg/Twist", 10, drive, LATENCY_S["command"]),
                Topic("/arm_controller/command", fields.TRAJECTORY, 10, trajectory_of(MOBILE, 2, 100), 0.001),
            ),
        ),
    )
}
