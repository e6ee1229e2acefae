"""Labels from commands of every type, of several topics, at other rates than the ticks, and relative to the state."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore
from rosbags.typesys.store import Typestore

from studies import tiny_bags as tiny
from studies.tiny_bags import PERIOD_NS, RECORDING, Entry, stamp_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.described import Described
from trace_memory_ros.bags.faults import Grade
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart
from trace_memory_ros.streams import registry
from trace_memory_ros.streams.base import Field, Plain, ReadError
from trace_memory_ros.streams.cdr import Cdr
from trace_memory_ros.streams.rotation import columns_of

TICKS = 20
TRAJECTORY = ActionPart("command", fields.TRAJECTORY, tiny.ACTIONS)
ARRAY = ActionPart("gripper", "std_msgs/msg/Float64MultiArray", {"width": 0, "force": 1}, "gripper", "received")
TWIST = ActionPart("cmd_vel", "geometry_msgs/msg/Twist", stamp="received")
TWIST_STAMPED = ActionPart("cmd", "geometry_msgs/msg/TwistStamped", ("linear", "angular.z"))
POSE = ActionPart("target", "geometry_msgs/msg/PoseStamped", ("position", "rotation"), frame_id="base")
SPEEDS = {"b_speed": "velocity.b", "a_speed": "velocity.a"}
JOINTS = ActionPart("leader", fields.JOINTS, {"position": ["a", "b"], **SPEEDS})
BOOL = ActionPart("suction", "std_msgs/msg/Bool", {"on": "data"}, stamp="received")
TURN = columns_of(np.array([0.1, 0.2, 0.3, 0.9]))


def entries_of(part: ActionPart, outputs: list[tuple[int, list[float]]], late_ns: int = 0) -> list[Entry]:
    """The commands of one part, each with the stamp and the outputs."""
    return [
        Entry(part.topic, part.type, ns + late_ns, make.commands(ActionConfig((part,)), values, ns, PERIOD_NS)[0])
        for ns, values in outputs
    ]


def labels(
    folder: Path, parts: tuple[ActionPart, ...], commands: list[Entry], store: Typestore | None = None
) -> np.ndarray:
    """Of a bag of the tiny robot with these commands, which must be sound but for ticks without a command.

    store: that knows the commands' types where the package's does not.
    """
    streams = [entry for entry in tiny.recording_of(TICKS) if entry.topic != "command"]
    if store is None:
        bag = write(folder / "bag", [*streams, *commands])
    else:
        bag = write_described(folder / "bag", [*streams, *commands], store)
    (episode,), verdict = decode_bag(bag, replace(RECORDING, actions=ActionConfig(parts)))
    assert all("have no command that can be used" in fault.what for fault in verdict.faults), str(verdict)
    assert episode.action_names == ActionConfig(parts).names and episode.actions is not None
    return episode.actions


def write_described(bag: Path, entries: list[Entry], store: Typestore) -> Path:
    """A bag with the definitions that `store` has."""
    with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:
        kinds = {entry.topic: entry.type_name for entry in entries}
        known = {name: writer.add_connection(f"/{name}", kind, typestore=store) for name, kind in kinds.items()}
        for entry in sorted(entries, key=lambda entry: entry.log_ns):
            writer.write(known[entry.topic], entry.log_ns, entry.data)
    return bag


def store_with(definitions: dict[str, str]) -> Typestore:
    """ROS 2's types and these."""
    store = get_typestore(Stores.ROS2_JAZZY)
    for name, text in definitions.items():
        store.register(get_types_from_msg(text, name))
    return store


@pytest.mark.parametrize(
    ("part", "outputs"),
    [
        (ARRAY, [0.04, 12.5]),
        (TWIST, [0.5, -0.25, 1.5]),
        (TWIST_STAMPED, [0.5, -0.25, 0.125, 1.5]),
        (POSE, [0.5, -0.25, 1.5, *TURN]),
        (JOINTS, [0.5, 1.5, 2.5, 3.5]),
        (BOOL, [1.0]),
        (ActionPart("n", "std_msgs/msg/Int32", {"mode": "data"}, stamp="received"), [-7.0]),
        (ActionPart("f", "std_msgs/msg/Float32MultiArray", {"b": 1, "a": 0}, stamp="received"), [0.5, 0.25]),
        (ActionPart("t", fields.TRAJECTORY, {"x": "position.x", "speed": "velocity.x"}), [0.5, 0.25]),
    ],
    ids=lambda value: value.type if isinstance(value, ActionPart) else "",
)  # fmt: skip
def test_every_type_comes_back_as_it_was_commanded(tmp_path: Path, part: ActionPart, outputs: list[float]) -> None:
    commands = entries_of(part, [(stamp_of(k), outputs if k < 10 else [0.0, *outputs[1:]]) for k in range(TICKS)])
    found = labels(tmp_path, (part,), commands)
    np.testing.assert_allclose(found[5], outputs, atol=1e-7)
    assert found[15, 0] == 0.0


def test_labels_of_several_topics_stand_one_after_the_other_each_at_its_own_rate(tmp_path: Path) -> None:
    """Wheels at 40 Hz, a gripper that is told only when it moves."""
    arm = entries_of(TRAJECTORY, [(stamp_of(k), [float(k)] * 4) for k in range(TICKS)], late_ns=9_000_000)
    wheels = entries_of(TWIST, [(stamp_of(0) + k * PERIOD_NS // 4, [float(k), 0.0, 0.0]) for k in range(4 * TICKS)])
    gripper = entries_of(ARRAY, [(stamp_of(3) - 1, [0.03, 1.0]), (stamp_of(11), [0.11, 2.0])])
    found = labels(tmp_path, (TRAJECTORY, TWIST, ARRAY), [*arm, *wheels, *gripper])
    assert found.shape == (TICKS, 9)
    assert found[:, 0].tolist() == list(range(TICKS))
    assert found[:, 4].tolist() == [4.0 * k for k in range(TICKS)]
    np.testing.assert_array_equal(found[:, 7], np.float32([*[np.nan] * 3, *[0.03] * 8, *[0.11] * 9]))


def test_relative_labels_are_targets_less_the_state_of_their_tick(tmp_path: Path) -> None:
    joints = ("wrist", "shoulder")
    part = ActionPart("command", fields.TRAJECTORY, joints, relative=True)
    commands = entries_of(part, [(stamp_of(k), [0.5 * k, -0.5 * k]) for k in range(2, TICKS)])
    found = labels(tmp_path, (part,), commands)
    assert np.isnan(found[:2]).all()
    states = np.array([tiny.positions(k)[[tiny.JOINTS.index(joint) for joint in joints]] for k in range(TICKS)])
    wanted = np.array([[0.5 * k, -0.5 * k] for k in range(TICKS)]) - states
    np.testing.assert_array_equal(found[2:], wanted[2:].astype(np.float32))


def test_a_relative_label_is_unknown_where_the_state_is(tmp_path: Path) -> None:
    part = ActionPart("command", fields.TRAJECTORY, ("elbow",), relative=True)
    streams = [e for e in tiny.recording_of(TICKS) if e.topic != "command"]
    for entry in streams:
        if entry.topic == "joint_states" and entry.log_ns // PERIOD_NS == stamp_of(7) // PERIOD_NS:
            entry.message.position[:] = np.nan
    commands = entries_of(part, [(stamp_of(k), [1.0]) for k in range(TICKS)])
    (episode,), _ = decode_bag(
        write(tmp_path / "bag", [*streams, *commands]), replace(RECORDING, actions=ActionConfig((part,)))
    )
    assert episode.actions is not None
    assert np.flatnonzero(np.isnan(episode.actions[:, 0])).tolist() == [7]
    assert np.flatnonzero(~episode.usable).tolist() == [7]


def test_relative_poses_are_composed_to_the_pose_that_was_commanded() -> None:
    """Rotation columns are differences too; the sum of state and label is made a rotation again."""
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = np.concatenate([rng.normal(size=3), columns_of(rng.normal(size=4))])
        target = np.concatenate([rng.normal(size=3), columns_of(rng.normal(size=4))])
        label = (target - state).astype(np.float32)
        (message,) = make.commands(ActionConfig((POSE,)), label + state, 0, PERIOD_NS)
        data = typestore().serialize_cdr(message, POSE.type)
        cdr = Cdr(bytes(data))
        assert cdr.header().frame_id == "base"
        np.testing.assert_allclose(POSE.kind.reader(POSE.fields).recorded(cdr), target, atol=1e-6)  # type: ignore[attr-defined]
    with pytest.raises(ReadError, match="span no plane"):
        make.commands(ActionConfig((POSE,)), [0, 0, 0, 1, 0, 0, 2, 0, 0], 0, PERIOD_NS)


def test_wrong_commands_of_one_topic_are_named_with_it(tmp_path: Path) -> None:
    good = entries_of(TRAJECTORY, [(stamp_of(k), [1.0] * 4) for k in range(TICKS)])
    short = replace(ARRAY, select={"width": 0})
    bad = entries_of(short, [(stamp_of(k), [0.5]) for k in range(TICKS)])
    streams = [e for e in tiny.recording_of(TICKS) if e.topic != "command"]
    config = replace(RECORDING, actions=ActionConfig((TRAJECTORY, ARRAY)))
    (episode,), verdict = decode_bag(write(tmp_path / "bag", [*streams, *good, *bad]), config)
    assert episode.actions is not None and np.isnan(episode.actions[:, 4:]).all()
    assert np.isfinite(episode.actions[:, :4]).all() and verdict.grade is Grade.DEGRADED
    assert [fault.where for fault in verdict.faults] == [
        "topic /gripper (actions), episode 0",
        "topic /gripper (actions), episode 0, tick 0",
    ]
    assert "20 of 20 commands cannot be used (array of 1 numbers has no index 1)" in verdict.faults[0].what
    assert "correct the selection" in verdict.faults[0].remedy


def test_a_missing_command_topic_is_named(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", tiny.recording_of(TICKS))
    episodes, verdict = decode_bag(bag, replace(RECORDING, actions=ActionConfig((TRAJECTORY, TWIST))))
    assert not episodes and verdict.grade is Grade.UNUSABLE
    (fault,) = verdict.faults
    assert fault.where == "topic /cmd_vel (actions)" and "geometry_msgs/msg/Twist" in fault.remedy


def test_a_topic_may_be_a_stream_and_commands(tmp_path: Path) -> None:
    part = ActionPart("joint_states", fields.JOINTS, ("wrist",))
    streams = [e for e in tiny.recording_of(TICKS) if e.topic != "command"]
    (episode,), verdict = decode_bag(
        write(tmp_path / "bag", streams), replace(RECORDING, actions=ActionConfig((part,)))
    )
    assert verdict.grade is Grade.OK, str(verdict)
    assert episode.actions is not None
    np.testing.assert_array_equal(episode.actions[:, 0], episode.state[:, 5].astype(np.float32))


@pytest.mark.parametrize("relative", [False, True])
def test_measured_places_of_an_arm_that_was_guided_are_the_next_ticks_commands(tmp_path: Path, relative: bool) -> None:
    measured = ActionPart("joint_states", fields.JOINTS, tiny.JOINTS, relative=relative, ahead_ms=PERIOD_NS // 10**6)
    found = labels(tmp_path, (measured,), [])
    places = np.array([tiny.positions(tick) for tick in range(TICKS)])
    after = np.array([*places[1:], places[-1]])
    np.testing.assert_allclose(found, after - places if relative else after, rtol=1e-6)


# control_msgs is not among the types that rosbags brings: a bag describes it.
GRIPPER_COMMAND = "float64 position\nfloat64 max_effort\n"
GRIPPER = ActionPart("gripper", "control_msgs/msg/GripperCommand", ("position", "max_effort"), "gripper", "received")


def test_a_gripper_command_is_composed_as_its_definition_says(tmp_path: Path) -> None:
    store = store_with({GRIPPER.type: GRIPPER_COMMAND})
    (message,) = make.commands(ActionConfig((GRIPPER,)), [0.04, 12.5], 0, PERIOD_NS, store)
    data = bytes(store.serialize_cdr(message, GRIPPER.type))
    back = Described(GRIPPER.type, GRIPPER_COMMAND).message(data)
    assert (back.position, back.max_effort) == (0.04, 12.5)
    (usual,) = make.commands(ActionConfig((replace(GRIPPER, select=()),)), [0.04], 0, PERIOD_NS, store)
    assert (usual.position, usual.max_effort) == (0.04, 0.0)
    commands = [Entry(GRIPPER.topic, GRIPPER.type, stamp_of(k), data) for k in range(TICKS)]
    np.testing.assert_allclose(labels(tmp_path, (GRIPPER,), commands, store)[4], [0.04, 12.5])


class Valve:
    """A type that another package brings, whose reader knows messages only."""

    name, stamped, usual = "acme_msgs/msg/Valve", True, ("angle",)

    def fields(self, name: str) -> tuple[Field, ...]:
        return (Field("angle", "rad", True),)

    def reader(self, fields: Sequence[str]) -> Valve:
        return self

    def live(self, message: Any) -> np.ndarray:
        return np.array([message.angle])

    def compose(self, targets: Mapping[str, float], period_ns: int) -> Plain:
        return {"angle": targets["angle"]}


def test_a_third_partys_commands_are_read_by_their_definition(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry.OWN, Valve.name, Valve())
    store = store_with({Valve.name: "std_msgs/Header header\nfloat64 angle\n"})
    part, config = ActionPart("valve", Valve.name), ActionConfig((ActionPart("valve", Valve.name),))
    commands = []
    for k in range(TICKS):
        (message,) = make.commands(config, [0.5 * k], stamp_of(k), PERIOD_NS, store)
        commands.append(Entry("valve", Valve.name, stamp_of(k), bytes(store.serialize_cdr(message, Valve.name))))
    try:
        found = labels(tmp_path, (part,), commands, store)
    finally:
        registry.stream_type.cache_clear()
    assert found[:, 0].tolist() == [0.5 * k for k in range(TICKS)]


def test_a_field_that_a_type_does_not_have_is_named() -> None:
    with pytest.raises(KeyError, match="has no field 'dat'; it has layout, data"):
        make.filled("std_msgs/msg/Float64MultiArray", {"dat": [1.0]})
