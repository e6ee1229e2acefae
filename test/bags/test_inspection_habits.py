"""Habits of recordings that a proposal must see through: stamps, clocks, names, sets of joints."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import numpy as np
import pytest
import yaml
from bags import strangers
from bags.proposals import ARM, CAMERA, COMMANDS, STATES, proposed, whys
from bags.strangers import Topic, image, joints, numbers, record

from studies import tiny_bags as tiny
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.inspection import Proposal, inspect, inspect_bags, words
from trace_memory_ros.bags.inspection.state import is_prismatic
from trace_memory_ros.bags.layout import find_bags
from trace_memory_ros.bags.numbers import Range
from trace_memory_ros.cli.main import main


def stamps(proposal: Proposal) -> dict[str, str]:
    assert proposal.recording is not None and proposal.recording.actions is not None
    recording = proposal.recording
    return {one.topic: one.stamp for one in (*recording.observation.inputs, *recording.actions.parts)}


@pytest.mark.parametrize(
    ("topic", "commanded"),
    [
        ("/human_interaction", False),
        ("/joint_states", False),
        ("/commander/joint_states", False),
        ("/gripper_cmd/_action/feedback", False),
        ("/retargeted/joint_states", False),
        ("/cmd_vel", True),
        ("/rightArmCmd", True),
        ("/arm1_command", True),
        ("/forward_position_controller/commands", True),
        ("/target_pose", True),
        ("/leader/joint_states", True),
        ("/master_left/joint_states", True),
        ("/controller/reference", True),
        ("/joint_setpoint", True),
        ("/desired_joints", True),
    ],
)
def test_commands_are_known_by_whole_words(topic: str, commanded: bool) -> None:
    assert words.is_commanded(topic) == commanded


@pytest.mark.parametrize(
    ("joint", "low", "high", "slides"),
    [
        ("finger_joint1", 0.0, 0.04, True),
        ("robotiq_85_left_knuckle_joint", 0.0, 0.1, False),
        ("finger_joint", 0.0, 0.8, False),
        ("gripper", -0.17, 1.7, False),
        ("finger_joint1", 0.02, 0.02, False),
        ("torso_lift_joint", 0.0, 0.35, True),
        ("shoulder_lift_joint", 0.0, 0.35, False),
        ("prismatic_joint_1", -0.2, 0.5, True),
        ("elbow", 0.0, 0.05, False),
    ],
)
def test_only_joints_that_surely_slide_are_in_m(joint: str, low: float, high: float, slides: bool) -> None:
    assert is_prismatic(joint, Range(low, high, (low + high) / 2, low, high)) == slides


def test_stamps_of_zero_are_replaced_and_said(tmp_path: Path) -> None:
    proposal = proposed(tmp_path, (CAMERA, STATES, COMMANDS._replace(stamped=False)))
    assert stamps(proposal) == {
        "camera/image_raw": "header",
        "joint_states": "header",
        "arm_controller/joint_trajectory": "received",
    }
    assert any("/arm_controller/joint_trajectory: no header, or stamps of 0" in note for note in proposal.notes)


@pytest.mark.parametrize("clock_off_s", [-5.0, 3600.0])
def test_a_recorder_of_another_clock_stamps_everything(tmp_path: Path, clock_off_s: float) -> None:
    topics = (CAMERA, STATES, COMMANDS._replace(stamped=False))
    proposal = proposed(tmp_path, topics, clock_off_s=clock_off_s)
    assert set(stamps(proposal).values()) == {"received"}
    side = "ahead of" if clock_off_s > 0 else "behind"
    assert any(f"{abs(clock_off_s):.1f} s {side} the stamps" in note for note in proposal.notes)


def test_a_recorder_of_another_clock_is_no_matter_where_headers_tell_all(tmp_path: Path) -> None:
    assert set(stamps(proposed(tmp_path, ARM, clock_off_s=3600.0)).values()) == {"header"}


def test_stamps_by_two_clocks_are_named(tmp_path: Path) -> None:
    # The camera's driver counts from when it was switched on.
    late = {"header": {"stamp": strangers.stamp(0)}}

    def since_start(t: float) -> strangers.Plain:
        return {**image()(t), "header": {"stamp": strangers.stamp(round(1e9 * (t + 40)))}, **({} if t else late)}

    proposal = proposed(tmp_path, (CAMERA._replace(make=since_start), STATES, COMMANDS))
    assert set(stamps(proposal).values()) == {"received"}
    assert any("the stamps of /camera/image_raw are" in note for note in proposal.notes)


def test_a_few_stamps_of_zero_are_named(tmp_path: Path) -> None:
    def mostly(t: float) -> strangers.Plain:
        plain = joints(strangers.SIX)(t)
        return {**plain, "header": {"stamp": strangers.stamp(0)}} if round(50 * t) % 10 == 0 else plain

    bag = record(tmp_path / "bag", (CAMERA, STATES._replace(make=mostly), COMMANDS))
    proposal = inspect(bag)
    assert stamps(proposal)["joint_states"] == "header"
    assert any("messages of /joint_states are stamped 0" in note for note in proposal.notes)


def test_joints_that_are_not_always_numbers_are_left_out(tmp_path: Path) -> None:
    def with_hole(t: float) -> strangers.Plain:
        plain = joints(strangers.SIX)(t)
        return {**plain, "position": [*plain["position"][:5], float("nan")]}

    proposal = proposed(tmp_path, (CAMERA, STATES._replace(make=with_hole), COMMANDS))
    assert proposal.recording is not None
    assert "joints.position.flange" not in proposal.recording.observation.state
    assert len(proposal.recording.observation.state) == 5
    assert any("flange is not always a number" in note for note in proposal.notes)


def test_joints_named_twice_are_left_out(tmp_path: Path) -> None:
    def doubled(t: float) -> strangers.Plain:
        plain = joints(strangers.SIX)(t)
        return {"name": [*plain["name"], "elbow"], "position": [*plain["position"], 0.0]}

    proposal = proposed(tmp_path, (CAMERA, STATES._replace(make=doubled), COMMANDS))
    assert proposal.recording is not None and len(proposal.recording.observation.state) == 5
    assert any("names elbow more than once" in note for note in proposal.notes)


@pytest.mark.parametrize("sets", [(strangers.SIX, [*strangers.SIX, "rail"]), (strangers.SIX, ["rail", "tray"])])
def test_velocities_of_several_publishers_are_proposed_of_the_joints_whose_positions_are(
    tmp_path: Path, sets: tuple[list[str], list[str]]
) -> None:
    def by_turns(t: float) -> strangers.Plain:
        return joints(sets[not round(50 * t) % 5], velocity=True)(t)

    proposal = inspect(record(tmp_path / "bag", (CAMERA, STATES._replace(make=by_turns), COMMANDS), 3.0))
    (line,) = (one.entry for one in proposal.passed_over if one.entry and "velocity" in one.entry.get("select", {}))
    assert line["select"] == {"velocity": strangers.SIX}


def test_joints_that_all_messages_have_are_taken(tmp_path: Path) -> None:
    def sometimes_more(t: float) -> strangers.Plain:
        plain = joints(strangers.SIX)(t)
        if round(50 * t) % 3:
            return plain
        return {"name": [*plain["name"], "gripper"], "position": [*plain["position"], 0.0]}

    proposal = proposed(tmp_path, (CAMERA, STATES._replace(make=sometimes_more), COMMANDS))
    assert proposal.recording is not None
    assert [name.rpartition(".")[2] for name in proposal.recording.observation.state] == strangers.SIX
    assert any("2 different sets of joints" in note for note in proposal.notes)


def test_a_base_alone_is_a_robot(tmp_path: Path) -> None:
    topics = (
        CAMERA,
        Topic("/odom", strangers.ODOMETRY, 50, strangers.odometry),
        Topic("/cmd_vel", strangers.TWIST, 10, strangers.drive),
    )
    proposal = proposed(tmp_path, topics)
    assert proposal.recording is not None and proposal.missing == []
    assert proposal.recording.observation.state == ("odom.linear.x", "odom.angular.z")


def test_controllers_tell_joints_where_nothing_else_does(tmp_path: Path) -> None:
    name = "/arm_controller/controller_state"
    state = Topic(name, strangers.CONTROLLER, 50, strangers.controller_state(strangers.SIX))
    proposal = proposed(tmp_path, (CAMERA, state, COMMANDS))
    assert proposal.recording is not None
    (stream,) = proposal.recording.observation.streams
    assert (stream.topic, len(stream.selected)) == (name[1:], 6)


def test_numbers_that_follow_no_joint_are_not_named_after_joints(tmp_path: Path) -> None:
    speeds = Topic("/velocity_controller/commands", strangers.ARRAY, 20, numbers(lambda t: [9 * np.sin(t)] * 6))
    proposal = proposed(tmp_path, (CAMERA, STATES, speeds))
    assert proposal.recording is not None and proposal.recording.actions is not None
    assert proposal.recording.actions.names[0].endswith("_0")
    (note,) = [note for note in proposal.notes if "behave like no joints' positions" in note]
    assert "give velocities their unit (units: {velocity_0: rad/s, ...})" in note


def test_commands_that_begin_late_are_named(tmp_path: Path) -> None:
    gripper = Topic("/gripper/command", strangers.DOUBLE, 20, numbers(strangers.width), begin_s=2.6)
    bag = record(tmp_path / "bag", (*ARM, gripper))
    assert any("/gripper/command gives its first command 2." in note for note in inspect(bag).notes)


def test_streams_that_begin_late_are_seen(tmp_path: Path) -> None:
    """A minute of everything else must not hide them."""
    slow = [topic._replace(rate_hz=10) for topic in (STATES, COMMANDS)]
    bag = record(tmp_path / "bag", (CAMERA._replace(rate_hz=5, begin_s=65.0), *slow), seconds=70.0)
    proposal = inspect(bag)
    assert proposal.recording is not None, proposal.missing
    assert any("/camera/image_raw begin up to 65" in note for note in proposal.notes)
    (episode,), verdict = decode_bag(bag, proposal.recording)
    assert episode.usable.sum() > 20, str(verdict)


def test_streams_that_begin_late_in_some_bags_are_named(tmp_path: Path) -> None:
    for number, begin_s in enumerate((0.0, 2.4, 3.4)):
        record(tmp_path / f"bag_{number}", (CAMERA._replace(begin_s=begin_s), STATES, COMMANDS), seconds=5.0)
    (note,) = [note for note in inspect_bags(tmp_path, find_bags(tmp_path)).notes if "begin up to" in note]
    assert note.startswith("/camera/image_raw begin up to 3.4 s after /joint_states in 2 of 3 bags")


def test_a_gripper_tells_its_width_by_its_actions_feedback(tmp_path: Path) -> None:
    kind = "control_msgs/action/GripperCommand_FeedbackMessage"
    feedback = Topic(
        "/gripper_controller/gripper_cmd/_action/feedback",
        kind,
        20,
        lambda t: {"goal_id": {"uuid": [0] * 16}, "feedback": {"position": strangers.width(t)}},
    )
    proposal = proposed(tmp_path, (*ARM, feedback))
    assert proposal.recording is not None
    assert proposal.recording.observation.state[-1] == "gripper.position"
    assert proposal.recording.observation.streams[-1].type == kind


def test_arrays_without_numbers_are_no_gripper(tmp_path: Path) -> None:
    empty = Topic("/gripper/width", strangers.ARRAY, 20, numbers(lambda t: []))
    hole = Topic("/gripper/command", strangers.DOUBLE, 20, numbers(lambda t: float("nan")))
    proposal = proposed(tmp_path, (*ARM, empty, hole))
    assert not {"/gripper/width", "/gripper/command"} & set(proposal.uses)
    assert {"/gripper/width", "/gripper/command"} <= set(whys(proposal))


def test_a_gripper_is_commanded_once(tmp_path: Path) -> None:
    leader = Topic("/leader/joint_states", strangers.JOINTS, 50, joints(strangers.SO, wanted=True))
    follower = Topic("/follower/joint_states", strangers.JOINTS, 50, joints(strangers.SO))
    gripper = Topic("/gripper/command", strangers.DOUBLE, 20, numbers(strangers.width))
    proposal = proposed(tmp_path, (CAMERA, follower, leader, gripper))
    assert proposal.recording is not None and proposal.recording.actions is not None
    assert [part.topic for part in proposal.recording.actions.parts] == ["leader/joint_states"]
    assert "commands what /leader/joint_states commands" in whys(proposal)["/gripper/command"]


def test_joints_of_one_name_with_other_values_are_of_another_arm(tmp_path: Path) -> None:
    arms = [Topic(f"/{who}/joint_states", strangers.JOINTS, 50, joints(strangers.SIX, i)) for i, who in enumerate("ab")]
    names = [Topic(f"/{who}/joint_states", strangers.JOINTS, 50, joints(strangers.SIX, 3)) for who in ("anna", "bert")]
    proposal = proposed(tmp_path, (CAMERA, *arms, *names))
    assert proposal.recording is not None
    assert [s.name for s in proposal.recording.observation.streams] == ["a", "anna", "b"]
    assert "repeats" in whys(proposal)["/bert/joint_states"]


def test_a_hand_and_its_arm_are_not_both_commanded(tmp_path: Path) -> None:
    servo = Topic(
        "/servo_node/delta_twist_cmds", strangers.TWIST_STAMPED, 50, strangers.vectors("linear", "angular", "twist")
    )
    proposal = proposed(tmp_path, (*ARM, servo))
    assert proposal.uses["/arm_controller/joint_trajectory"] == "actions"
    alone = proposed(tmp_path / "alone", (CAMERA, STATES, servo))
    assert alone.uses["/servo_node/delta_twist_cmds"] == "actions"


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_one_log_time_of_zero_hides_nothing(tmp_path: Path, storage: str) -> None:
    entries = tiny.recording_of(20)
    entries[0].log_ns = 0
    bag = tiny.write(tmp_path / "bag", entries, storage)
    proposal = inspect(bag)
    assert proposal.recording is not None, proposal.missing
    assert {"/front/image", "/hand/image", "/joint_states", "/odom", "/command"} <= set(proposal.uses)
    episodes, verdict = decode_bag(bag, proposal.recording)
    assert episodes[0].usable.sum() >= 18, str(verdict)


@pytest.mark.parametrize("command", ["inspect", "check"])
def test_what_is_wrong_is_said_where_nothing_is_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], command: str
) -> None:
    notes = Topic("/notes", strangers.TEXT, 20, numbers(lambda t: "x" * 100_000))
    bag = record(tmp_path / "bag", (STATES, COMMANDS, notes))
    (file,) = bag.glob("*.mcap")
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])
    assert main(["bags", command, str(bag)]) == 1
    said = capsys.readouterr().out
    assert "cut off or damaged" in said and "a camera: no sensor_msgs/Image" in said


def test_what_is_passed_over_is_said_where_nothing_is_proposed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    wrench = Topic("/wrench", strangers.WRENCH, 100, strangers.vectors("force", "torque", "wrench"))
    assert main(["bags", "inspect", str(record(tmp_path / "bag", (STATES, wrench)))]) == 1
    assert "- {name: wrench, topic: wrench, type: geometry_msgs/msg/WrenchStamped" in capsys.readouterr().out


def test_bags_whose_numbers_and_stamps_are_unlike_are_named(tmp_path: Path) -> None:
    wide = Topic("/gripper/width", strangers.ARRAY, 20, numbers(lambda t: [strangers.width(t)]))
    for name in ("a", "b", "c"):
        record(tmp_path / "bags" / name, (*ARM, wide))
    two = wide._replace(make=numbers(lambda t: [strangers.width(t)] * 2))
    record(tmp_path / "bags" / "d", (CAMERA, STATES._replace(stamped=False), COMMANDS, two))
    proposal = inspect_bags(tmp_path / "bags", find_bags(tmp_path / "bags"))
    assert proposal.differences == {
        "d": [
            "/joint_states has no stamps, as most messages of all bags do",
            "/gripper/width holds 2 numbers, most messages of all bags 1",
        ]
    }


def test_numbers_are_looked_at_over_all_bags(tmp_path: Path) -> None:
    for name, at in (("a", 0.0), ("b", 0.04)):
        fingers = Topic("/joint_states", strangers.JOINTS, 50, lambda t, at=at: {"name": ["finger"], "position": [at]})
        record(tmp_path / "bags" / name, (CAMERA, fingers))
    proposal = inspect_bags(tmp_path / "bags", find_bags(tmp_path / "bags"))
    found = proposal.topics["/joint_states"].ranges["position.finger"]
    assert (found.low, found.high, found.mean) == (0.0, 0.04, pytest.approx(0.02, abs=1e-3))
    assert proposal.recording is not None
    assert dict(proposal.recording.observation.units) == {"joints.position.finger": "m"}


def as_recorded_long_ago(bag: Path) -> Path:
    """Topics without a leading slash and types without `msg`, as the first recorders wrote them."""
    with sqlite3.connect(next(bag.glob("*.db3"))) as database:
        database.execute("UPDATE topics SET name = ltrim(name, '/'), type = replace(type, '/msg/', '/')")
    information = yaml.safe_load((bag / "metadata.yaml").read_text())
    for entry in information["rosbag2_bagfile_information"]["topics_with_message_count"]:
        about = entry["topic_metadata"]
        about["name"], about["type"] = about["name"].lstrip("/"), about["type"].replace("/msg/", "/")
    (bag / "metadata.yaml").write_text(yaml.safe_dump(information))
    return bag


def test_early_types_and_names_are_read(tmp_path: Path) -> None:
    bag = as_recorded_long_ago(record(tmp_path / "bag", ARM, storage="sqlite3"))
    proposal = inspect(bag)
    assert proposal.recording is not None, proposal.missing
    assert set(proposal.uses) == {"/camera/image_raw", "/joint_states", "/arm_controller/joint_trajectory"}
    (episode,), verdict = decode_bag(bag, proposal.recording)
    assert episode.usable[1:].all() and episode.ticks > 20, str(verdict)
