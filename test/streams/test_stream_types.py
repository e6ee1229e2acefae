"""Every message type gives the same numbers live and from CDR, and refuses what it cannot use by name."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rosbags.interfaces import Nodetype

from trace_memory_ros.bags.types import typestore
from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.streams import registry, scalars, served
from trace_memory_ros.streams.base import CommandType, ReadError, RecordedReader, StepsReader
from trace_memory_ros.streams.cdr import Cdr, CdrError
from trace_memory_ros.streams.select import selected

JOINTS = ("elbow", "wrist", "left.finger")
SELECTIONS: dict[str, Any] = {
    "sensor_msgs/msg/JointState": {"velocity": JOINTS, "position": ["wrist"], "effort": ["elbow"]},
    "nav_msgs/msg/Odometry": ["angular", "position", "rotation", "linear.x"],
    "geometry_msgs/msg/TwistStamped": ["angular.z", "linear"],
    "geometry_msgs/msg/Twist": None,
    "geometry_msgs/msg/PoseStamped": None,
    "geometry_msgs/msg/WrenchStamped": ["torque", "force.y"],
    "sensor_msgs/msg/Imu": ["linear_acceleration", "rotation", "angular_velocity.z"],
    "std_msgs/msg/Float64MultiArray": {"width": 2, "tilt": 0},
    "std_msgs/msg/Float32MultiArray": [1, "0"],
    "trajectory_msgs/msg/JointTrajectory": ["wrist", "left.finger"],
} | {kind.name: None for kind in scalars.SCALARS}
numbers = st.floats(-1e6, 1e6, width=32)


def filled(type_name: str, draw: st.DrawFn) -> Any:
    """A message of the typestore with drawn numbers in it, and texts and sequences of any length."""
    values = {name: value_of(kind, name, draw) for name, kind in typestore().fielddefs[type_name][1]}
    if "name" in values or "joint_names" in values:
        key = "name" if "name" in values else "joint_names"
        values[key] = draw(st.permutations([*JOINTS, "extra"]))
    return typestore().types[type_name](**values)


def value_of(kind: Any, name: str, draw: st.DrawFn) -> Any:
    node, detail = kind
    if node == Nodetype.NAME:
        return filled(detail, draw)
    if node == Nodetype.BASE:
        base = detail[0]
        if base == "string":
            return draw(st.text(max_size=5).filter(lambda text: "\0" not in text))
        if base == "bool":
            return draw(st.booleans())
        if base.startswith("float"):
            return draw(numbers)
        low, high = np.iinfo(base).min, np.iinfo(base).max
        return draw(st.integers(int(low), int(high)))
    (inner, element), size = detail
    count = size or (4 if name in ("position", "velocity", "effort", "positions", "velocities", "data") else 1)
    if inner == Nodetype.NAME:
        return [filled(element, draw) for _ in range(draw(st.integers(1, 2)))]
    if element[0] == "string":
        return [draw(st.text(alphabet="abc", max_size=3)) for _ in range(count)]
    dtype = np.dtype(element[0])
    return np.array([draw(numbers) for _ in range(count)]).astype(dtype)


def recorded(type_name: str, message: Any, fields: list[str], little: bool) -> np.ndarray:
    kind = registry.stream_type(type_name)
    cdr = Cdr(bytes(typestore().serialize_cdr(message, type_name, little_endian=little)))
    if kind.stamped:
        cdr.header()
    reader = kind.reader(fields)
    assert isinstance(reader, RecordedReader)
    return reader.recorded(cdr)


@settings(deadline=None, max_examples=400)
@given(st.data(), st.sampled_from(sorted(SELECTIONS)), st.booleans())
def test_live_equals_recorded(data: st.DataObject, type_name: str, little: bool) -> None:
    kind = registry.stream_type(type_name)
    fields = [one.field.name for one in selected(kind, SELECTIONS[type_name], "x")]
    message = filled(type_name, data.draw)
    try:
        live = kind.reader(fields).live(message)
    except ReadError as error:
        with pytest.raises(ReadError, match=re.escape(str(error))):
            recorded(type_name, message, fields, little)
        return
    assert live.dtype == np.float64 and live.shape == (len(fields),)
    np.testing.assert_array_equal(recorded(type_name, message, fields, little), live)
    whole = bytes(typestore().serialize_cdr(message, type_name, little_endian=little))
    for end in range(4, len(whole) - 8, 7):
        try:
            cdr = Cdr(whole[:end])
            if kind.stamped:
                cdr.header()
            kind.reader(fields).recorded(cdr)  # type: ignore[attr-defined]
        except (CdrError, ReadError):
            continue


def test_every_own_type_is_tested_here_or_by_its_definition() -> None:
    by_definition = {name for name in registry.OWN if name.startswith("control_msgs/")}
    sent = {kind.name for kind in served.TYPES}
    assert set(SELECTIONS) | by_definition | sent == set(registry.OWN)


def as_message(value: Any) -> Any:
    """Plain nested values as attributes."""
    from types import SimpleNamespace

    if isinstance(value, Mapping):
        return SimpleNamespace(**{name: as_message(item) for name, item in value.items()})
    return [as_message(item) for item in value] if isinstance(value, list) else value


COMMANDS: dict[str, Any] = {
    "sensor_msgs/msg/JointState": {"position": ["a", "b"], "velocity": ["a", "b"]},
    "trajectory_msgs/msg/JointTrajectory": ["a", "b"],
    "std_msgs/msg/Float64MultiArray": [0, 1, 2],
    "std_msgs/msg/Float32MultiArray": [0],
    "geometry_msgs/msg/Twist": ["linear.x", "angular.z"],
    "geometry_msgs/msg/TwistStamped": ["linear", "angular"],
    "geometry_msgs/msg/PoseStamped": None,
    "control_msgs/msg/GripperCommand": ["position", "max_effort"],
    "std_msgs/msg/Float64": None,
    "std_msgs/msg/Int16": None,
    "std_msgs/msg/Bool": None,
}


@settings(deadline=None, max_examples=200)
@given(st.data(), st.sampled_from(sorted(COMMANDS)))
def test_what_is_composed_is_read_back(data: st.DataObject, type_name: str) -> None:
    kind = registry.command_type(type_name)
    fields = [one.field.name for one in selected(kind, COMMANDS[type_name], "x")]
    values = {field: data.draw(st.integers(-50, 50)) / 4 for field in fields}
    if type_name.startswith("std_msgs/msg/") and "Array" not in type_name and "Float" not in type_name:
        values = {field: float(abs(round(value)) % 2) for field, value in values.items()}
    message = as_message(kind.compose(values, 50_000_000)) if "Pose" not in type_name else None
    if message is None:
        return
    np.testing.assert_array_equal(kind.reader(fields).live(message), [values[field] for field in fields])


@settings(deadline=None)
@given(st.lists(st.floats(-1, 1), min_size=4, max_size=4).filter(lambda q: np.linalg.norm(q) > 0.2))
def test_orientations_survive_six_numbers(quaternion: list[float]) -> None:
    kind = registry.command_type("geometry_msgs/msg/PoseStamped")
    fields = [one.field.name for one in selected(kind, None, "x")]
    position = {"x": 0.5, "y": -1.0, "z": 2.0}
    axes = dict(zip("xyzw", quaternion, strict=True))
    message = as_message({"pose": {"position": position, "orientation": axes}})
    values = kind.reader(fields).live(message)
    columns = values[3:].reshape(2, 3)
    np.testing.assert_allclose(columns @ columns.T, np.eye(2), atol=1e-12)
    back = kind.compose(dict(zip(fields, (values * 1.0).tolist(), strict=True)), 1)["pose"]
    assert back["position"] == position
    unit = np.array(quaternion) / np.linalg.norm(quaternion)
    given_back = np.array([back["orientation"][axis] for axis in "xyzw"])
    assert abs(abs(unit @ given_back) - 1.0) < 1e-12
    rotated = kind.reader(fields).live(as_message({"pose": back}))
    np.testing.assert_allclose(rotated, values, atol=1e-9)


def test_rotation_columns_are_those_of_the_matrix() -> None:
    from trace_memory_ros.streams.rotation import columns_of

    half = np.sqrt(0.5)
    turned = columns_of(np.array([0.0, 0.0, half, half]))  # a quarter turn about z: x to y, y to -x
    np.testing.assert_allclose(turned, [0, 1, 0, -1, 0, 0], atol=1e-15)


@pytest.mark.parametrize(
    ("type_name", "select", "message", "fault"),
    [
        ("sensor_msgs/msg/JointState", ["a"], {"name": ["a", "b", "a"], "position": [1, 2, 3]}, "named more than once"),
        ("sensor_msgs/msg/JointState", {"velocity": ["a"]}, {"name": ["a"], "velocity": []}, "with 0 velocities"),
        ("sensor_msgs/msg/JointState", ["a"], {"name": ["b"], "position": [1.0]}, "joint a is missing"),
        ("sensor_msgs/msg/JointState", {"effort": ["a"]}, {"name": ["a"], "effort": [np.nan]}, "effort of a is not"),
        ("std_msgs/msg/Float64MultiArray", [3], {"data": [1.0, 2.0]}, "array of 2 numbers has no index 3"),
        ("std_msgs/msg/Float32", None, {"data": float("inf")}, "data is not finite"),
        ("trajectory_msgs/msg/JointTrajectory", ["a"], {"joint_names": ["a"], "points": []}, "without a trajectory"),
    ],
)
def test_unusable_content_is_named(type_name: str, select: Any, message: Any, fault: str) -> None:
    kind = registry.stream_type(type_name)
    fields = [one.field.name for one in selected(kind, select, "x")]
    with pytest.raises(ReadError, match=fault):
        kind.reader(fields).live(as_message(message))


def test_a_pose_without_orientation_is_no_pose() -> None:
    kind = registry.stream_type("geometry_msgs/msg/PoseStamped")
    nothing = {"pose": {"position": {"x": 0, "y": 0, "z": 0}, "orientation": dict.fromkeys("xyzw", 0)}}
    with pytest.raises(ReadError, match="is no rotation"):
        kind.reader(["position.x"]).live(as_message(nothing))


@pytest.mark.parametrize("orientation", [0.0, 0.01, np.nan])
def test_a_sensor_of_positions_alone_is_read(orientation: float) -> None:
    kind = registry.stream_type("geometry_msgs/msg/PoseStamped")
    position = dict(zip("xyz", (0.1, 0.2, 0.3), strict=True))
    seen = as_message({"pose": {"position": position, "orientation": dict.fromkeys("xyzw", orientation)}})
    fields = [one.field.name for one in selected(kind, ["position"], "x")]
    assert kind.reader(fields).live(seen).tolist() == [0.1, 0.2, 0.3]
    fields = [one.field.name for one in selected(kind, ["rotation"], "x")]
    with pytest.raises(ReadError, match="is not finite: check the sensor or its driver, or select `position` alone"):
        kind.reader(fields).live(seen)


def imu(**changes: Any) -> Any:
    """An Imu that stands still and knows everything, but for what is changed."""
    axes, known = {"x": 0.0, "y": 0.0, "z": 9.8}, [0.1, *[0.0] * 8]
    whole = dict.fromkeys(("angular_velocity", "linear_acceleration"), axes) | {
        f"{name}_covariance": known for name in ("orientation", "angular_velocity", "linear_acceleration")
    }
    return as_message(whole | {"orientation": {"x": 0.0, "y": 0.0, "z": 0.0, "w": 1.0}} | changes)


@pytest.mark.parametrize(
    ("lacking", "group"),
    [("orientation", "rotation"), ("angular_velocity",) * 2, ("linear_acceleration",) * 2],
)
def test_an_imu_says_what_it_has_no_estimate_of(lacking: str, group: str) -> None:
    kind = registry.stream_type("sensor_msgs/msg/Imu")
    message = imu(**{f"{lacking}_covariance": [-1.0, *[0.0] * 8]})
    for name in ("rotation", "angular_velocity", "linear_acceleration"):
        reader = kind.reader([one.field.name for one in selected(kind, [name], "x")])
        if name == group:
            with pytest.raises(ReadError, match="or select what it has: a covariance of -1"):
                reader.live(message)
        else:
            np.testing.assert_array_equal(reader.live(message), reader.live(imu()))


@pytest.mark.parametrize("orientation", [0.0, 0.01, np.nan])
def test_an_orientation_that_is_none_is_not_in_the_way_of_a_rate(orientation: float) -> None:
    nothing = dict.fromkeys("xyzw", orientation)
    rate = registry.stream_type("sensor_msgs/msg/Imu").reader(["angular_velocity.z"])
    assert rate.live(imu(orientation=nothing)).tolist() == [9.8]
    pose = {"pose": {"position": dict.fromkeys("xyz", 0.0), "orientation": nothing}}
    twist = {"twist": {"linear": dict.fromkeys("xyz", 0.5), "angular": dict.fromkeys("xyz", 0.0)}}
    speed = registry.stream_type("nav_msgs/msg/Odometry").reader(["linear.x"])
    assert speed.live(as_message({"pose": pose, "twist": twist})).tolist() == [0.5]


def test_trajectories_hold_each_point_from_the_one_before_it() -> None:
    kind = registry.stream_type("trajectory_msgs/msg/JointTrajectory")
    points = [
        {"positions": [float(k)], "velocities": [], "effort": [], "time_from_start": {"sec": k, "nanosec": 5}}
        for k in range(3)
    ]
    reader = kind.reader(["position.a"])
    assert isinstance(reader, StepsReader)
    steps = reader.steps_live(as_message({"joint_names": ["a"], "points": points}))
    assert [(offset, values.tolist()) for offset, values in steps] == [(0, [0.0]), (5, [1.0]), (1_000_000_005, [2.0])]


@pytest.mark.parametrize(
    ("select", "message"),
    [
        (["linear.w"], "no field 'linear.w'"),
        ({"forward": ["linear"]}, "no field 'forward.linear'"),
        ({"forward": "linear"}, "'forward' names 3 fields"),
        ([True], "True is no field's name"),
        (["linear.x", "linear"], "names 'linear.x' more than once"),
        ("linear.x", "must be a list of fields, or a mapping"),
    ],
)
def test_selections_are_checked(select: Any, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        selected(registry.stream_type("geometry_msgs/msg/Twist"), select, "x")


def test_names_of_outputs() -> None:
    joints = registry.stream_type("sensor_msgs/msg/JointState")
    found = selected(joints, {"position": ["a", "b.c"], "grip": "position.finger"}, "x")
    assert [(one.name, one.field.name, one.output) for one in found] == [
        ("position.a", "position.a", "a"),
        ("position.b.c", "position.b.c", "b.c"),
        ("grip", "position.finger", "grip"),
    ]
    assert isinstance(joints, CommandType)
    with pytest.raises(ConfigError, match=r"cannot be a command; .*Twist"):
        registry.command_type("sensor_msgs/msg/Imu")
    with pytest.raises(ConfigError, match=r"'position' names no joint"):
        selected(joints, ["position"], "x")


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("Int8", -128, 127),
        ("UInt8", 0, 255),
        ("UInt16", 0, 65535),
        ("Int64", -(2**63), 2**63 - 1),
        ("UInt64", 0, 2**64 - 1),
    ],
)
def test_integers_are_commanded_within_their_type(name: str, least: int, most: int) -> None:
    kind = registry.command_type(f"std_msgs/msg/{name}")
    assert kind.compose({"data": 1e30}, 1) == {"data": most}
    assert kind.compose({"data": -1e30}, 1) == {"data": least}
    assert kind.compose({"data": 3.4}, 1) == {"data": 3}
