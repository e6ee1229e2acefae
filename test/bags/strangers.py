"""Robots that nobody here owns, as their drivers publish: topic names, types and rates; the motion is made up."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import cv2
import numpy as np
from rosbags.rosbag2 import Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from trace_memory_ros.bags.messages import filled
from trace_memory_ros.bags.writer import STORAGES

BEGIN_NS = 1_750_000_000_000_000_000
LAG_S = 0.06
"""By how much arms are behind their commands."""
TEXTS = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": (
        "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n"
    ),
    "control_msgs/msg/JointTrajectoryControllerState": (
        "std_msgs/Header header\nstring[] joint_names\n"
        "trajectory_msgs/JointTrajectoryPoint reference\ntrajectory_msgs/JointTrajectoryPoint feedback\n"
    ),
    "control_msgs/msg/GripperCommand": "float64 position\nfloat64 max_effort\n",
    "ur_msgs/msg/IOStates": "bool[] digital_in_states\nfloat64[] analog_in_states\n",
    "interbotix_xs_msgs/msg/JointGroupCommand": "string name\nfloat32[] cmd\n",
    "foxglove_msgs/msg/CompressedVideo": "time timestamp\nstring frame_id\nuint8[] data\nstring format\n".replace(
        "time ", "builtin_interfaces/Time "
    ),
}

Plain = dict[str, Any]


class Topic(NamedTuple):
    """A topic. make: its message's fields without header at a time in s. late_s: until it is recorded.

    stamped: whether its header, if it has one, tells the time. begin_s: when its publisher starts.
    """

    name: str
    type_name: str
    rate_hz: float
    make: Callable[[float], Plain]
    late_s: float = 0.002
    stamped: bool = True
    begin_s: float = 0.0


@cache
def store() -> Typestore:
    """ROS 2's types, and those of drivers."""
    found = get_typestore(Stores.ROS2_JAZZY)
    for name, text in TEXTS.items():
        found.register(get_types_from_msg(text, name))
    return found


def record(
    bag: Path, topics: Sequence[Topic], seconds: float = 3.0, clock_off_s: float = 0.0, storage: str = "mcap"
) -> Path:
    """The robot's bag; clock_off_s: how far the recorder's clock is ahead."""
    rows = [row for topic in topics for row in _messages(topic, seconds, clock_off_s)]
    with Writer(bag, version=9, storage_plugin=STORAGES[storage]) as writer:
        known = {t.name: writer.add_connection(t.name, t.type_name, typestore=store()) for t in topics}
        for log_ns, name, data in sorted(rows, key=lambda row: row[:2]):
            writer.write(known[name], log_ns, data)
    return bag


def _messages(topic: Topic, seconds: float, clock_off_s: float) -> list[tuple[int, str, bytes]]:
    rows = []
    fields = dict(store().fielddefs[topic.type_name][1])
    # All topics of one camera have its stamps.
    source = topic.name.split("/")[1] if "Image" in topic.type_name else topic.name
    offset_s = topic.begin_s + (sum(source.encode()) % 17) / 17 * 0.3 / topic.rate_hz
    for k in range(int((seconds - offset_s) * topic.rate_hz) + 1):
        t = offset_s + k / topic.rate_hz
        ns = BEGIN_NS + round(1e9 * t)
        plain = topic.make(t)
        if topic.stamped and "header" in fields:
            plain = {"header": {"stamp": stamp(ns)}, **plain}  # what `make` says of it counts
        elif "timestamp" in fields:
            plain = {"timestamp": stamp(ns), **plain}
        data = bytes(store().serialize_cdr(filled(topic.type_name, plain, store()), topic.type_name))
        rows.append((ns + round(1e9 * (topic.late_s + clock_off_s)), topic.name, data))
    return rows


def stamp(ns: int) -> Plain:
    """A Time."""
    return dict(zip(("sec", "nanosec"), divmod(ns, 1_000_000_000), strict=True))


def aim(t: float, count: int, of: int = 0) -> list[float]:
    """Where `count` joints shall be, rad; of: whose."""
    rng = np.random.default_rng([of, count])
    size, pace, begin = rng.uniform(0.3, 1.0, count), rng.uniform(1.0, 3.0, count), rng.uniform(-2, 2, count)
    return [float(value) for value in begin + size * np.sin(pace * t)]


def pose(t: float, count: int, of: int = 0) -> list[float]:
    """Where they are."""
    return aim(t - LAG_S, count, of)


def width(t: float) -> float:
    """Of a gripper that opens and closes, m."""
    return 0.04 + 0.03 * float(np.sin(2 * t))


def pixels(t: float) -> np.ndarray:
    """A picture `(12, 16, 3)`."""
    return np.random.default_rng(round(1000 * t)).integers(0, 255, (12, 16, 3), dtype=np.uint8)


def image(encoding: str = "rgb8") -> Callable[[float], Plain]:
    """A raw image: colour, or depth in mm."""
    if encoding == "16UC1":
        return lambda t: {"height": 12, "width": 16, "encoding": encoding, "step": 32, "data": bytes(384)}
    return lambda t: {"height": 12, "width": 16, "encoding": encoding, "step": 48, "data": pixels(t).tobytes()}


def jpeg(t: float) -> Plain:
    """A compressed image."""
    done, data = cv2.imencode(".jpg", pixels(t))
    assert done
    return {"format": "rgb8; jpeg compressed bgr8", "data": data.tobytes()}


def joints(names: Sequence[str], of: int = 0, wanted: bool = False, velocity: bool = False) -> Callable[[float], Plain]:
    """A JointState; wanted: of what is commanded."""

    def make(t: float) -> Plain:
        at = (aim if wanted else pose)(t, len(names), of)
        more = {"velocity": [(b - a) / 0.01 for a, b in zip(at, pose(t + 0.01, len(names), of), strict=True)]}
        return {"name": list(names), "position": at, **(more if velocity else {})}

    return make


def trajectory(names: Sequence[str], of: int = 0) -> Callable[[float], Plain]:
    """A JointTrajectory of one point."""
    return lambda t: {"joint_names": list(names), "points": [{"positions": aim(t, len(names), of)}]}


def numbers(make: Callable[[float], Any]) -> Callable[[float], Plain]:
    """A message of std_msgs."""
    return lambda t: {"data": make(t)}


def vectors(first: str, second: str, inner: str = "") -> Callable[[float], Plain]:
    """Two vectors that move."""

    def make(t: float) -> Plain:
        both = {name: dict(zip("xyz", aim(t, 3, i + 7), strict=True)) for i, name in enumerate((first, second))}
        return {inner: both} if inner else both

    return make


def drive(t: float) -> Plain:
    """A Twist of a base with two wheels."""
    return {"linear": {"x": 0.3 * float(np.sin(t))}, "angular": {"z": 0.5 * float(np.cos(t))}}


def odometry(t: float) -> Plain:
    """Of that base."""
    return {"child_frame_id": "base", "twist": {"twist": drive(t - LAG_S)}}


def pose_of_a_hand(t: float) -> Plain:
    """A PoseStamped."""
    return {"pose": {"position": dict(zip("xyz", pose(t, 3, 3), strict=True)), "orientation": {"w": 1.0}}}


IMAGE, COMPRESSED = "sensor_msgs/msg/Image", "sensor_msgs/msg/CompressedImage"
JOINTS, TRAJECTORY = "sensor_msgs/msg/JointState", "trajectory_msgs/msg/JointTrajectory"
ARRAY, ARRAY_32 = "std_msgs/msg/Float64MultiArray", "std_msgs/msg/Float32MultiArray"
FLOAT, DOUBLE, BOOL, TEXT = (f"std_msgs/msg/{name}" for name in ("Float32", "Float64", "Bool", "String"))
WRENCH, POSE, IMU = "geometry_msgs/msg/WrenchStamped", "geometry_msgs/msg/PoseStamped", "sensor_msgs/msg/Imu"
TWIST, TWIST_STAMPED, ODOMETRY = "geometry_msgs/msg/Twist", "geometry_msgs/msg/TwistStamped", "nav_msgs/msg/Odometry"
CONTROLLER, DYNAMIC = "control_msgs/msg/JointTrajectoryControllerState", "control_msgs/msg/DynamicJointState"

UR = [f"{name}_joint" for name in ("shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3")]
SIX = ["base", "shoulder", "elbow", "forearm", "wrist", "flange"]
GRIPPED = ["shoulder_pan", "shoulder_lift", "elbow", "wrist_1", "wrist_2", "wrist_3"]
NUMBERED = [f"joint_{i}" for i in range(1, 7)]
LIFTED = ["torso_lift", *(f"arm_{i}" for i in range(1, 5))]
PANDA = [f"fr3_joint{i}" for i in range(1, 8)]
VX = ["waist", "shoulder", "elbow", "forearm_roll", "wrist_angle", "wrist_rotate", "gripper"]
SO = ["shoulder_pan", "shoulder_lift", "elbow_flex", "wrist_flex", "wrist_roll", "gripper"]


def controller_state(names: Sequence[str]) -> Callable[[float], Plain]:
    """What a joint_trajectory_controller tells."""
    return lambda t: {
        "joint_names": list(names),
        "reference": {"positions": aim(t, len(names))},
        "feedback": {"positions": pose(t, len(names))},
    }


def dynamic(names: Sequence[str]) -> Callable[[float], Plain]:
    """What a joint_state_broadcaster tells beside joint states."""
    return lambda t: {
        "joint_names": list(names),
        "interface_values": [{"interface_names": ["position"], "values": [at]} for at in pose(t, len(names))],
    }


def in_two_orders(names: Sequence[str]) -> Callable[[float], Plain]:
    """Joint states whose order changes."""

    def make(t: float) -> Plain:
        order = range(len(names)) if round(1000 * t) % 2 else range(len(names))[::-1]
        at = pose(t, len(names))
        return {"name": [names[i] for i in order], "position": [at[i] for i in order]}

    return make


def shuffled(count: int) -> Callable[[float], Any]:
    """Targets in the order of a controller that is not the joints'."""
    return lambda t: aim(t, count)[::-1]


SIX_AXIS_GRIPPER = (
    Topic("/camera/color/image_raw/compressed", COMPRESSED, 30, jpeg, 0.02),
    Topic("/joint_states", JOINTS, 125, joints(GRIPPED)),
    Topic("/gripper/width", FLOAT, 40, numbers(width)),
    Topic("/forward_position_controller/commands", ARRAY, 20, numbers(shuffled(6))),
    Topic("/gripper/command", DOUBLE, 20, numbers(lambda t: width(t + LAG_S))),
    Topic("/human_interaction", JOINTS, 5, joints(["hand_x", "hand_y"], 5)),
)
TWO_ARMS_WRENCH = (
    Topic("/cell/camera/image_raw", IMAGE, 30, image(), 0.02),
    Topic("/hand_camera/image_raw", IMAGE, 15, image(), 0.02),
    Topic("/left/joint_states", JOINTS, 100, joints(NUMBERED, 1, velocity=True)),
    Topic("/right/joint_states", JOINTS, 100, joints(NUMBERED, 2, velocity=True)),
    Topic("/right/wrench", WRENCH, 100, vectors("force", "torque", "wrench")),
    Topic("/left/arm_controller/joint_trajectory", TRAJECTORY, 50, trajectory(NUMBERED, 1)),
    Topic("/right/arm_controller/joint_trajectory", TRAJECTORY, 50, trajectory(NUMBERED, 2)),
)
MOBILE_MANIPULATOR = (
    Topic("/head_camera/rgb/image_raw", IMAGE, 15, image(), 0.02),
    Topic("/head_camera/depth/image_raw", IMAGE, 15, image("16UC1"), 0.02),
    Topic("/odom", ODOMETRY, 50, odometry),
    Topic("/joint_states", JOINTS, 50, joints(LIFTED)),
    Topic("/imu", IMU, 50, vectors("angular_velocity", "linear_acceleration")),
    Topic("/cmd_vel", TWIST, 10, drive),
    Topic("/arm_controller/command", TRAJECTORY, 10, trajectory(LIFTED)),
)
UNIVERSAL = (
    Topic("/camera/color/image_raw", IMAGE, 15, image(), 0.02),
    Topic("/joint_states", JOINTS, 100, in_two_orders(UR)),
    Topic("/dynamic_joint_states", DYNAMIC, 100, dynamic(UR)),
    Topic("/scaled_joint_trajectory_controller/joint_trajectory", TRAJECTORY, 20, trajectory(UR)),
    Topic("/scaled_joint_trajectory_controller/controller_state", CONTROLLER, 20, controller_state(UR)),
    Topic("/controller/reference", JOINTS, 100, joints(UR, wanted=True)),
    Topic("/force_torque_sensor_broadcaster/wrench", WRENCH, 100, vectors("force", "torque", "wrench")),
    Topic("/tcp_pose_broadcaster/pose", POSE, 100, pose_of_a_hand),
    Topic("/io_and_status_controller/io_states", "ur_msgs/msg/IOStates", 50, lambda t: {}),
    Topic("/io_and_status_controller/robot_program_running", BOOL, 2, numbers(lambda t: True)),
    Topic("/speed_scaling_state_broadcaster/speed_scaling", DOUBLE, 50, numbers(lambda t: 100.0)),
    Topic("/tf", "tf2_msgs/msg/TFMessage", 50, lambda t: {}),
)
FRANKA = (
    Topic("/wrist/color/image_raw", IMAGE, 30, image(), 0.02),
    Topic("/wrist/color/image_raw/compressed", COMPRESSED, 30, jpeg, 0.02),
    Topic("/wrist/color/image_rect_color", IMAGE, 30, image(), 0.02),
    Topic("/franka/joint_states", JOINTS, 100, joints(PANDA)),
    Topic(
        "/franka_gripper/joint_states",
        JOINTS,
        30,
        lambda t: {"name": ["fr3_finger_joint1", "fr3_finger_joint2"], "position": [width(t) / 2, width(t) / 2]},
    ),
    # All joints once more, as joint_state_publisher collects them.
    Topic("/joint_states", JOINTS, 30, joints(PANDA)),
    Topic("/joint_states_desired", JOINTS, 100, joints(PANDA, wanted=True)),
    Topic("/cartesian_impedance_controller/equilibrium_pose", POSE, 30, pose_of_a_hand),
    Topic("/target_pose", POSE, 30, pose_of_a_hand),
)
ALOHA = (
    *(Topic(f"/cam_{place}/image_raw", IMAGE, 30, image(), 0.02) for place in ("high", "left_wrist", "right_wrist")),
    *(Topic(f"/puppet_{side}/joint_states", JOINTS, 100, joints(VX, i)) for i, side in enumerate(("left", "right"))),
    *(
        Topic(f"/master_{side}/joint_states", JOINTS, 100, joints(VX, i, wanted=True))
        for i, side in enumerate(("left", "right"))
    ),
    Topic("/puppet_left/commands/joint_group", "interbotix_xs_msgs/msg/JointGroupCommand", 50, lambda t: {}),
)
SO_101 = (
    Topic("/camera1/jpeg", COMPRESSED, 30, jpeg, 0.02),
    Topic("/follower/joint_states", JOINTS, 50, joints(SO)),
    Topic("/leader/joint_states", JOINTS, 50, joints(SO, wanted=True)),
)
NAMESPACED = tuple(topic._replace(name=f"/lab/robot1{topic.name}") for topic in SIX_AXIS_GRIPPER)
WITHOUT_STAMPS = (
    Topic("/camera/image_raw", IMAGE, 15, image(), 0.02),
    Topic("/joint_states", JOINTS, 50, joints(SIX), stamped=False),
    Topic("/joint_command", JOINTS, 20, joints(SIX, wanted=True), stamped=False),
)
LARGE = (
    *MOBILE_MANIPULATOR,
    *(Topic(f"/safety/zone_{i}", BOOL, 2, numbers(lambda t: False)) for i in range(20)),
    *(Topic(f"/battery/cell_{i}/voltage", FLOAT, 2, numbers(lambda t: 3.7)) for i in range(20)),
    *(Topic(f"/node_{i}/transition_event", TEXT, 1, numbers(lambda t: "")) for i in range(80)),
    *(Topic(f"/camera_{i}/camera_info", "sensor_msgs/msg/CameraInfo", 2, lambda t: {}) for i in range(40)),
    *(Topic(f"/lidar_{i}/points", "sensor_msgs/msg/PointCloud2", 2, lambda t: {}) for i in range(33)),
)

STRANGERS: Mapping[str, tuple[Topic, ...]] = {
    "six_axis_gripper": SIX_AXIS_GRIPPER,
    "two_arms_wrench": TWO_ARMS_WRENCH,
    "mobile_manipulator": MOBILE_MANIPULATOR,
    "universal": UNIVERSAL,
    "franka": FRANKA,
    "aloha": ALOHA,
    "so_101": SO_101,
    "namespaced": NAMESPACED,
    "without_stamps": WITHOUT_STAMPS,
    "large": LARGE,
}
