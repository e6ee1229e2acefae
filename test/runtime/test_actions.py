"""What a policy's outputs are called, what they are relative to, and how they become messages."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from fixtures import tiny_checkpoint

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.runtime import checkpoint
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart

TRAJECTORY, ARRAY = "trajectory_msgs/msg/JointTrajectory", "std_msgs/msg/Float64MultiArray"
POSE, TWIST = "geometry_msgs/msg/PoseStamped", "geometry_msgs/msg/Twist"
ARM = ActionPart("arm/trajectory", TRAJECTORY, ("elbow", "wrist"))
GRIPPER = ActionPart("gripper/commands", ARRAY, {"width": 0}, name="gripper", stamp="received", units={"width": "m"})

HAND = ActionPart(
    "hand/gripper_cmd",
    "control_msgs/action/ParallelGripperCommand",
    {"width": "position.finger"},
    name="hand",
    fixed={"effort.finger": 20.0},
    tolerance=0.002,
)


def observation(*streams: SensorConfig, **changes: object) -> ObservationConfig:
    arm = SensorConfig("arm", "joint_states", 100, select={"position": ["elbow", "wrist"], "velocity": ["elbow"]})
    return ObservationConfig((CameraConfig("eye", "image", 250),), streams or (arm,), **changes)  # type: ignore[arg-type]


def test_outputs_are_those_of_all_parts_in_order() -> None:
    config = ActionConfig((ARM, GRIPPER))
    assert config.names == ("elbow", "wrist", "gripper.width")
    assert config.units == ("rad", "rad", "m")
    assert config.columns == (slice(0, 2), slice(2, 3))
    assert config.split(np.array([1.0, 2.0, 3.0])) == ({"position.elbow": 1.0, "position.wrist": 2.0}, {"0": 3.0})


def test_messages_are_stamped_with_their_tick_where_they_have_a_header() -> None:
    config = ActionConfig((replace(ARM, frame_id="base"), GRIPPER))
    arm, gripper = config.compose([1.0, 2.0, 3.0], 5_000_000_007, 100_000_000)
    assert arm["header"] == {"stamp": {"sec": 5, "nanosec": 7}, "frame_id": "base"}
    assert arm["joint_names"] == ["elbow", "wrist"] and arm["points"][0]["positions"] == [1.0, 2.0]
    assert arm["points"][0]["time_from_start"] == {"sec": 0, "nanosec": 100_000_000}
    assert gripper == {"data": [3.0]}


@pytest.mark.parametrize(
    "config",
    [
        ActionConfig((ARM, GRIPPER)),
        ActionConfig((ActionPart("cmd_vel", TWIST, stamp="received"),)),
        ActionConfig((ActionPart("target", POSE, ("position", "rotation"), frame_id="base", relative=True),)),
        ActionConfig.of_trajectory("command", ["a", "position.x", "shoulder.pos"]),
        ActionConfig((ARM, HAND)),
    ],
)
def test_a_file_gives_back_what_was_written(config: ActionConfig) -> None:
    assert ActionConfig.from_dict(yaml.safe_load(yaml.safe_dump(config.to_dict()))) == config


def test_what_files_said_of_one_topic_still_loads() -> None:
    for kind, kind_name in (("joint_trajectory", TRAJECTORY), ("joint_state", "sensor_msgs/msg/JointState")):
        config = ActionConfig.from_dict({"topic": "command", "kind": kind, "names": ["b", "a", "left_suction"]})
        (part,) = config.parts
        assert (part.topic, part.type, config.names) == ("command", kind_name, ("b", "a", "left_suction"))
        assert part.stamp == "header" and not part.relative and config.to_dict()[0]["type"] == kind_name


WRONG = [
    ({"topic": "c", "kind": "twist", "names": ["a"]}, "must be one of joint_trajectory, joint_state"),
    ({"topic": "c", "kind": "joint_state", "names": ["a", "a"]}, "each commanded joint once"),
    ({"topic": "c", "kind": "joint_state", "names": "ab"}, "must be a list"),
    ("command", "must be a list"),
    ([], "actions is empty"),
    ([{"topic": "c"}], r"actions\[0\]: key 'type' is missing"),
    ([{"topic": "c", "type": TRAJECTORY, "select": ["a"], "unit": "m"}], "unknown key 'unit'; did you mean 'units'"),
    ([{"topic": "c", "type": TRAJECTORY}], "select is missing"),
    ([{"topic": "c", "type": "nav_msgs/msg/Odometry"}], "cannot be a command"),
    ([{"topic": "c", "type": TWIST}], "no header.*set stamp: received"),
    ([{"topic": "c", "type": TWIST, "stamp": "received", "frame_id": "base"}], "has no header; leave it out"),
    ([{"topic": "c", "type": TWIST, "stamp": "received", "relative": True}], "commands velocities"),
    ([{"topic": "c", "type": "geometry_msgs/msg/TwistStamped", "relative": True}], "commands velocities"),
    ([{"topic": "c", "type": TRAJECTORY, "select": ["a"], "relative": 1}], "must be true or false"),
    ([{"topic": "c", "type": TRAJECTORY, "select": ["a"], "name": "left.arm"}], "without a dot"),
    ([{"topic": "c", "type": TRAJECTORY, "select": ["a"], "units": {"b": "m"}}], "give units of outputs"),
    ([{"topic": "c", "type": ARRAY, "select": {"width": 1}, "stamp": "received"}], "needs every index from 0 on"),
    ([{"topic": "c", "type": TRAJECTORY, "select": {"position": ["a", "b"], "effort": ["a"]}}], "not for b"),
    (
        [{"topic": "l", "type": TRAJECTORY, "select": ["a"]}, {"topic": "r", "type": TRAJECTORY, "select": ["a"]}],
        "2 outputs are called 'a': give the parts names",
    ),
    (
        [{"topic": "c", "type": TRAJECTORY, "select": ["a"]}, {"topic": "c", "type": TRAJECTORY, "select": ["b"]}],
        "make them one",
    ),
    ([{"topic": "c", "type": TWIST, "stamp": "received", "tolerance": 0.1}], "is sent at every tick"),
    ([{**HAND.to_dict(), "tolerance": -1}], "tolerance = -1: must be a finite number"),
    ([{**HAND.to_dict(), "fixed": {"position.finger": 1.0}}], "none that is selected"),
    ([{**HAND.to_dict(), "fixed": {"effort.finger": float("nan")}}], "must be a finite number"),
    ([{"topic": None, "type": TRAJECTORY, "select": ["a"]}], "topic = None: must be a non-empty string"),
    ([{"topic": "c", "type": None}], "type = None: must be a non-empty string"),
    ([{"topic": "c", "type": "std_msgs/msg/Float64", "select": {"data": []}, "stamp": "received"}], "names no field"),
    ([{"topic": "c", "type": TRAJECTORY, "select": {"position": []}}], r"select = {'position': \(\)} names no field"),
    ([{**HAND.to_dict(), "fixed": [1.0]}], "must be a mapping"),
    ([{**HAND.to_dict(), "fixed": {3: 1.0}}], "fixed: '3' must be one number's name"),
    ([{"topic": "c", "type": "control_msgs/action/GripperCommand", "fixed": {"force": 1.0}}], "no field 'force'"),
]


def test_goals_of_an_action_hold_one_message_with_what_is_fixed() -> None:
    config = ActionConfig((HAND,))
    assert config.names == ("hand.width",) and config.units == ("rad",)
    (goal,) = config.compose([0.5], 7, 100)
    assert goal == {"command": {"name": ["finger"], "position": [0.5], "velocity": [], "effort": [20.0]}}
    single = ActionPart("cmd", "control_msgs/action/GripperCommand", fixed={"max_effort": 20.0})
    assert single.compose({"position": 0.04}, 7, 100) == {"command": {"position": 0.04, "max_effort": 20.0}}


def test_a_switch_that_is_a_service_is_asked_for_from_half_on() -> None:
    suction = ActionPart("vacuum/switch", "std_srvs/srv/SetBool", {"on": "data"}, name="vacuum")
    assert ActionConfig((suction,)).names == ("vacuum.on",)
    assert [suction.compose({"data": value}, 7, 100) for value in (0.4, 0.6)] == [{"data": False}, {"data": True}]


def test_what_every_command_carries_is_no_output() -> None:
    topic = ActionPart("cmd", "control_msgs/msg/GripperCommand", stamp="received", fixed={"max_effort": 20.0})
    assert topic.names == ("position",)
    assert topic.compose({"position": 0.04}, 7, 100) == {"position": 0.04, "max_effort": 20.0}
    text = f"[{{topic: cmd, type: {ARRAY}, select: {{elbow: 0, wrist: 2}}, stamp: received, fixed: {{1: 0.5}}}}]"
    array = ActionConfig.from_dict(yaml.safe_load(text))
    assert array.compose([3.0, 4.0], 7, 100) == [{"data": [3.0, 0.5, 4.0]}]
    assert ActionConfig.from_dict(yaml.safe_load(yaml.safe_dump(array.to_dict()))) == array


def test_goals_are_in_no_bag() -> None:
    with pytest.raises(
        ConfigError, match="on 'hand/gripper_cmd': what a server of control_msgs/action/Para.*'s actions_file"
    ):
        RecordingConfig(observation(), ActionConfig((ARM, HAND)))


@pytest.mark.parametrize(("data", "text"), WRONG)
def test_what_is_wrong_is_named(data: object, text: str) -> None:
    with pytest.raises(ConfigError, match=text):
        ActionConfig.from_dict(data)


def test_relative_outputs_find_the_channel_of_their_name() -> None:
    config = ActionConfig((replace(ARM, relative=True), GRIPPER))
    assert config.relative_rows(observation()).tolist() == [0, 1, -1]
    velocities = ActionConfig((ActionPart("c", TRAJECTORY, {"velocity": ["elbow"]}, relative=True),))
    assert velocities.relative_rows(observation()).tolist() == [2]
    finger = SensorConfig("gripper", "finger", 100, type=ARRAY, stamp="received", select={"width": 3, "force": 0})
    arm = SensorConfig("arm", "joint_states", 100, select={"position": ["elbow", "width"]})
    both = observation(arm, finger)
    assert ActionConfig((replace(GRIPPER, relative=True),)).relative_rows(both).tolist() == [2]


def test_relative_poses_find_position_and_rotation_columns() -> None:
    part = ActionPart("target", POSE, ("position", "rotation"), relative=True)
    hand = SensorConfig("hand", "pose", 100, type=POSE, select=("rotation", "position"))
    assert ActionConfig((part,)).relative_rows(observation(hand)).tolist() == [6, 7, 8, *range(6)]
    odom = SensorConfig("odom", "odom", 100, type="nav_msgs/msg/Odometry", select=("position", "rotation", "linear.x"))
    assert ActionConfig((part,)).relative_rows(observation(odom)).tolist() == list(range(9))
    twins = observation(*(SensorConfig(side, side, 100, type=POSE) for side in ("left", "right")))
    with pytest.raises(ConfigError, match=r"left\.position\.x, right\.position\.x are: give the part the name"):
        ActionConfig((part,)).relative_rows(twins)
    assert ActionConfig((replace(part, name="right"),)).relative_rows(twins).tolist() == list(range(9, 18))


def test_a_relative_output_without_a_channel_is_named() -> None:
    part = ActionPart("c", TRAJECTORY, ("elbow", "finger"), relative=True)
    with pytest.raises(
        ConfigError, match=r"'finger' is relative to a state channel of its name, and none is.*arm\.pos"
    ):
        ActionConfig((part,)).relative_rows(observation())


def test_a_checkpoint_keeps_its_actions_and_refuses_those_without_a_channel(tmp_path: Path) -> None:
    tiny_checkpoint(tmp_path / "old")
    loaded = checkpoint.load(tmp_path / "old")
    assert loaded.config.actions is None and "actions" not in loaded.config.to_dict()
    actions = ActionConfig((ActionPart("command", TRAJECTORY, ("left_joint_1",), relative=True), GRIPPER))
    config = replace(loaded.config, actions=actions)
    checkpoint.save(tmp_path / "new", config, loaded.tensors)
    assert checkpoint.load(tmp_path / "new").config.actions == actions
    with pytest.raises(ConfigError, match="relative to a state channel"):
        replace(config, actions=ActionConfig((ActionPart("command", TRAJECTORY, ("claw",), relative=True),)))
