"""The observation config says everything once, strictly."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.observation.config import (
    CameraConfig,
    ObservationConfig,
    SensorConfig,
    default_arm,
)


def test_default_arm_survives_yaml() -> None:
    for masked in (True, False):
        config = default_arm(base_masked=masked)
        assert ObservationConfig.from_dict(yaml.safe_load(yaml.safe_dump(config.to_dict()))) == config


def test_default_arm_is_the_robot() -> None:
    config = default_arm()
    assert config.state_dim == 17
    assert config.state[2:4] == ("masked.angular.z", "joint_states.position.left_joint_1")
    assert config.masked == (True,) * 3 + (False,) * 14
    assert [s.name for s in config.inputs] == ["overhead", "left_wrist", "right_wrist", "joint_states"]
    assert [s.name for s in default_arm(base_masked=False).inputs][-1] == "odom"
    assert config.period_ns == 100_000_000


def test_every_stream_kind_survives_its_mapping() -> None:
    config = ObservationConfig(
        cameras=(CameraConfig("front", "front/compressed", 99.5, "compressed", (0.2, 3.0)),),
        streams=(
            SensorConfig("left", "l", 50, select={"position": ("c", "a"), "velocity": ("a",)}),
            SensorConfig("base", "cmd", 60, type="geometry_msgs/msg/TwistStamped"),
            SensorConfig("wrist", "ft", 60, type="geometry_msgs/msg/WrenchStamped", select=("force", "torque.z")),
            SensorConfig(
                "gripper", "g", 60, stamp="received", type="std_msgs/msg/Float64MultiArray", select={"width": 2}
            ),
        ),
        state=("wrist.force.z", "gripper.width", "left.position.a", "left.velocity.a", "base.linear.x"),
        units={"gripper.width": "m"},
        tick_period_ms=33,
    )
    assert ObservationConfig.from_dict(yaml.safe_load(yaml.safe_dump(config.to_dict()))) == config
    assert config.path == ("gripper.width", "left.position.a", "base.linear.x")
    assert config.state_units == ("N", "m", "rad", "rad/s", "m/s")
    assert config.path_rows == (1, 2, 4) and config.path_dim == 3


CAMERA = {"name": "a", "topic": "b", "stale_after_ms": 9}
JOINTS = {**CAMERA, "name": "joint_states", "type": "sensor_msgs/msg/JointState", "select": ["left_joint_1"]}
OLD: dict[str, Any] = {
    "cameras": [CAMERA],
    "joints": ["x", "y"],
    "joint_streams": [{"name": "j", "topic": "j", "stale_after_ms": 9}],
    "base": None,
    "base_masked": True,
}


def test_a_configuration_of_schema_1_is_the_same_robot() -> None:
    config = ObservationConfig.from_dict(OLD)
    assert config.state == ("masked.linear.x", "masked.linear.y", "masked.angular.z", "j.position.x", "j.position.y")
    assert config.path == config.state
    base = {"name": "odom", "topic": "odom", "stale_after_ms": 9, "kind": "twist"}
    moving = ObservationConfig.from_dict({**OLD, "base": base, "base_masked": False})
    assert moving.state[:3] == ("odom.linear.x", "odom.linear.y", "odom.angular.z")
    assert [stream.name for stream in moving.inputs] == ["a", "j", "odom"]
    assert moving.streams[1].type == "geometry_msgs/msg/TwistStamped"


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"joint_streams": []}, "no joint stream gives x"),
        ({"joint_streams": [{**OLD["joint_streams"][0], "joints": ["z"]}]}, "'z' is not in"),
        ({"base_masked": False}, "name the base stream, or set base_masked"),
        ({"bases": 1}, "unknown key 'bases'"),
        (
            {"base_masked": False, "base": {"name": "odom", "topic": "odom", "stale_after_ms": 9, "kind": "wheels"}},
            "base.kind = 'wheels': must be one of odometry, twist",
        ),
    ],
)
def test_mistakes_of_schema_1_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ObservationConfig.from_dict({**OLD, **changes})


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"camera": []}, "observation: unknown key 'camera'; did you mean 'cameras'"),
        ({"cameras": []}, "the first camera is the tick clock"),
        ({"cameras": {"overhead": 1}}, "observation.cameras = .* must be a list"),
        ({"cameras": [{"name": "a", "topic": "b"}]}, r"cameras\[0\]: key 'stale_after_ms' is missing"),
        ({"cameras": [{"name": "a", "topic": "", "stale_after_ms": 1}]}, "CameraConfig 'a': topic = ''"),
        ({"cameras": [{"name": "a", "topic": "b", "stale_after_ms": 0}]}, "stale_after_ms = 0"),
        (
            {"cameras": [{"name": "a", "topic": "b", "stale_after_ms": 9, "transport": "theora"}]},
            "transport = 'theora': must be one of raw, compressed",
        ),
        (
            {"cameras": [{"name": "joint_states", "topic": "b", "stale_after_ms": 9}]},
            "stream name 'joint_states' is used 2 times",
        ),
        ({"streams": []}, "streams is empty"),
        ({"streams": [{**JOINTS, "select": ["a", "a"]}]}, r"select names 'position.a' more than once"),
        ({"streams": [{**JOINTS, "select": None}]}, "select is missing"),
        ({"streams": [{**JOINTS, "select": 3}]}, "select = 3: must be a list"),
        ({"streams": [{**JOINTS, "select": {"position": "a", "x": ["b"]}}]}, "is given by no stream"),
        ({"streams": [{**JOINTS, "type": "sensor_msgs/msg/JoinState"}]}, "did you mean 'sensor_msgs/msg/JointState'"),
        ({"streams": [{**JOINTS, "type": "geometry_msgs/msg/Twist", "select": ["linear"]}]}, "set stamp: received"),
        ({"streams": [{**JOINTS, "type": "nav_msgs/msg/Odometry", "select": ["linear.w"]}]}, "did you mean 'linear."),
        ({"streams": [{**JOINTS, "name": "j.s"}]}, "a dot parts a stream from its field"),
        ({"streams": [{**JOINTS, "stamp": "log"}]}, "stamp = 'log': must be one of header, received"),
        ({"state": ["joint_states.position.left_joint_8"]}, "given by no stream; did you mean"),
        ({"state": ["masked.x"]}, "stream 'joint_states' gives no state channel"),
        ({"path": ["joint_states.velocity.left_joint_1"]}, "of path or units is no state channel"),
        ({"units": {"joint_states.position.left_joint_1": 3}}, "units of .* = 3"),
        ({"cameras": [{**CAMERA, "range_m": [3, 1]}]}, "the first must be smaller"),
        ({"image_px": 0}, "image_px = 0: must be an integer, at least 1"),
        ({"thumbnail_px": 64}, "thumbnail_px = 64.*image_px = 48"),
        ({"tick_period_ms": 33.3}, "tick_period_ms = 33.3"),
    ],
)
def test_mistakes_are_named(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        ObservationConfig.from_dict({**default_arm().to_dict(), **changes})
