"""Message types that only their definition in the bag tells how to read: controllers, grippers, a third party's."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from policies.installed import install
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from studies import tiny_bags as tiny
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.cache import cache_key
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.observation.config import ObservationConfig, SensorConfig
from trace_memory_ros.streams import registry

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "tactile_stream"
TICKS = 6
TEXTS = {
    "control_msgs/msg/InterfaceValue": "string[] interface_names\nfloat64[] values\n",
    "control_msgs/msg/DynamicJointState": (
        "std_msgs/Header header\nstring[] joint_names\ncontrol_msgs/InterfaceValue[] interface_values\n"
    ),
    "control_msgs/msg/JointTrajectoryControllerState": (
        "std_msgs/Header header\nstring[] joint_names\n"
        "trajectory_msgs/JointTrajectoryPoint reference\ntrajectory_msgs/JointTrajectoryPoint feedback\n"
    ),
    "control_msgs/action/GripperCommand_Feedback": (
        "float64 position\nfloat64 effort\nbool stalled\nbool reached_goal\n"
    ),
    "control_msgs/action/GripperCommand_FeedbackMessage": (
        "unique_identifier_msgs/UUID goal_id\ncontrol_msgs/action/GripperCommand_Feedback feedback\n"
    ),
    "tactile_msgs/msg/Taxels": "std_msgs/Header header\nfloat32[] pressures\n",
}


@pytest.fixture
def store() -> Typestore:
    found = get_typestore(Stores.ROS2_JAZZY)
    types: dict[str, Any] = {}
    for name, text in TEXTS.items():
        types.update(get_types_from_msg(text, name))
    found.register(types)
    return found


def write(bag: Path, store: Typestore, topic: str, type_name: str, messages: list[Any]) -> Path:
    """The tiny robot's recording with one topic more, a message a tick, and every type's definition."""
    with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        entries = [(e.topic, e.type_name, e.log_ns, e.data) for e in tiny.recording_of(TICKS)]
        for k, message in enumerate(messages):
            entries.append((topic, type_name, tiny.stamp_of(k), bytes(store.serialize_cdr(message, type_name))))
        known = {
            name: writer.add_connection(f"/{name}", kind, typestore=store)
            if "/msg/" in kind
            else writer.add_connection(f"/{name}", kind, msgdef=TEXTS[kind], rihs01=f"RIHS01_{'0' * 64}")
            for name, kind in {entry[0]: entry[1] for entry in entries}.items()
        }
        for name, _, log_ns, data in sorted(entries, key=lambda entry: entry[2]):
            writer.write(known[name], log_ns, data)
    return bag


def with_stream(stream: SensorConfig) -> RecordingConfig:
    seen = tiny.OBSERVATION
    observation = ObservationConfig(seen.cameras, (stream,), image_px=seen.image_px, thumbnail_px=seen.thumbnail_px)
    return RecordingConfig(observation, tiny.RECORDING.actions)


def header(store: Typestore, tick: int) -> Any:
    stamp = dict(zip(("sec", "nanosec"), divmod(tiny.stamp_of(tick), 1_000_000_000), strict=True))
    time = store.types["builtin_interfaces/msg/Time"](**stamp)
    return store.types["std_msgs/msg/Header"](stamp=time, frame_id="")


def point(store: Typestore, *positions: float) -> Any:
    return store.types["trajectory_msgs/msg/JointTrajectoryPoint"](
        positions=np.array(positions),
        velocities=np.array(positions) * 10,
        accelerations=np.zeros(0),
        effort=np.zeros(0),
        time_from_start=store.types["builtin_interfaces/msg/Duration"](sec=0, nanosec=0),
    )


def test_controllers_tell_what_they_measure_and_what_they_aim_at(tmp_path: Path, store: Typestore) -> None:
    name = "control_msgs/msg/JointTrajectoryControllerState"
    made = [
        store.types[name](
            header=header(store, k),
            joint_names=["b", "a"],
            reference=point(store, 7.0, 8.0 + k),
            feedback=point(store, 1.0, 2.0 + k),
        )
        for k in range(TICKS)
    ]
    select = ("position.a", "velocity.b", "reference.position.a")
    stream = SensorConfig("arm", "arm/state", 250, type=name, select=select)
    assert stream.channels == ("arm.position.a", "arm.velocity.b", "arm.reference.position.a")
    recording = with_stream(stream)
    assert recording.observation.path == ("arm.position.a",)
    (episode,), verdict = decode_bag(write(tmp_path / "bag", store, "arm/state", name, made), recording)
    assert verdict.ok, verdict
    np.testing.assert_array_equal(episode.state, [[2.0 + k, 10.0, 8.0 + k] for k in range(episode.ticks)])
    assert episode.ticks == TICKS


def test_any_interface_of_a_dynamic_joint_state(tmp_path: Path, store: Typestore) -> None:
    name, value = "control_msgs/msg/DynamicJointState", "control_msgs/msg/InterfaceValue"
    made = [
        store.types[name](
            header=header(store, k),
            joint_names=["a", "tool"],
            interface_values=[
                store.types[value](interface_names=["velocity", "position"], values=np.array([0.5, 0.1 * k])),
                store.types[value](interface_names=["force.x"], values=np.array([-3.0])),
            ],
        )
        for k in range(TICKS)
    ]
    stream = SensorConfig("robot", "dynamic", 250, type=name, select=("position.a", "force.x.tool"))
    (episode,), verdict = decode_bag(write(tmp_path / "bag", store, "dynamic", name, made), with_stream(stream))
    assert verdict.ok and episode.state.tolist() == [[0.1 * k, -3.0] for k in range(TICKS)]
    (episode,), verdict = decode_bag(tmp_path / "bag", with_stream(replace(stream, select=("position.z",))))
    assert not episode.usable.any()
    assert "position.z is not in the message, which has force.x.tool, position.a, velocity.a" in str(verdict)


def test_a_grippers_feedback_has_no_stamp_of_its_own(tmp_path: Path, store: Typestore) -> None:
    name = "control_msgs/action/GripperCommand_FeedbackMessage"
    feedback = store.types["control_msgs/action/GripperCommand_Feedback"]
    goal = store.types["unique_identifier_msgs/msg/UUID"](uuid=np.arange(16, dtype=np.uint8))
    made = [
        store.types[name](
            goal_id=goal, feedback=feedback(position=0.01 * k, effort=2.0, stalled=k > 3, reached_goal=False)
        )
        for k in range(TICKS)
    ]
    select = {"width": "position", "stuck": "stalled"}
    stream = SensorConfig("gripper", "gripper/feedback", 250, stamp="received", type=name, select=select)
    bag = write(tmp_path / "bag", store, "gripper/feedback", name, made)
    (episode,), verdict = decode_bag(bag, with_stream(stream))
    assert verdict.ok, verdict
    np.testing.assert_array_equal(episode.state, [[0.01 * k, float(k > 3)] for k in range(TICKS)])


def test_a_bag_without_the_definition_says_what_to_do(tmp_path: Path, store: Typestore) -> None:
    name = "control_msgs/msg/DynamicJointState"
    message = store.types[name](header=header(store, 0), joint_names=[], interface_values=[])
    bag = write(tmp_path / "bag", store, "dynamic", name, [message] * TICKS)
    file = next(bag.glob("*.mcap"))
    # The definition becomes one that names a type which nobody defines.
    damaged = file.read_bytes().replace(b"control_msgs/InterfaceValue[]", b"control_msgs/InterfaceNobody[]"[:29])
    file.write_bytes(damaged)
    recording = with_stream(SensorConfig("robot", "dynamic", 250, type=name, select=("position.a",)))
    found, verdict = decode_bag(bag, recording)
    assert not any(episode.usable.any() for episode in found)
    assert "control_msgs/msg/DynamicJointState" in str(verdict)


@pytest.fixture
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    copy = tmp_path / "tactile"
    copy.mkdir()
    for file in ("pyproject.toml", "tactile_stream.py"):
        (copy / file).write_bytes((EXAMPLE / file).read_bytes())
    install(tmp_path / "site", copy)
    monkeypatch.syspath_prepend(tmp_path / "site")
    importlib.invalidate_caches()
    registry.stream_type.cache_clear()
    yield
    registry.stream_type.cache_clear()
    sys.modules.pop("tactile_stream", None)


def test_a_third_partys_type_by_entry_point(tmp_path: Path, store: Typestore, installed: None) -> None:
    name = "tactile_msgs/msg/Taxels"
    assert name in registry.names()
    made = [
        store.types[name](header=header(store, k), pressures=np.arange(k, k + 4, dtype=np.float32))
        for k in range(TICKS)
    ]
    stream = SensorConfig("skin", "skin", 250, type=name, select={"pressure": [3, 0]})
    recording = with_stream(stream)
    assert recording.observation.state_units == ("kPa", "kPa")
    (episode,), verdict = decode_bag(write(tmp_path / "bag", store, "skin", name, made), recording)
    assert verdict.ok and episode.state.tolist() == [[k + 3.0, float(k)] for k in range(TICKS)]


def test_what_another_packages_code_read_is_read_again_once_that_is_other_code(
    tmp_path: Path, store: Typestore, installed: None
) -> None:
    name = "tactile_msgs/msg/Taxels"
    made = [store.types[name](header=header(store, k), pressures=np.full(2, k, dtype=np.float32)) for k in range(TICKS)]
    recording = with_stream(SensorConfig("skin", "skin", 250, type=name, select={"pressure": [0]}))
    bag = write(tmp_path / "bag", store, "skin", name, made)
    before = cache_key(bag, recording, tmp_path / "cache")
    assert cache_key(bag, recording, tmp_path / "cache") == before
    code = Path(sys.modules["tactile_stream"].__file__ or "")
    code.write_text(code.read_text(encoding="utf-8").replace("dtype=np.float64)", "dtype=np.float64) * 1e3"))
    assert cache_key(bag, recording, tmp_path / "cache") != before


def test_an_unknown_type_is_refused_with_the_way_out() -> None:
    with pytest.raises(ValueError, match="entry point group trace_memory_ros.stream_types"):
        SensorConfig("skin", "skin", 250, type="tactile_msgs/msg/Taxels", select=("pressure.0",))
