"""What `inspect` makes of robots that it never saw: the proposal works, and what it passes over can be pasted in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pytest
import yaml
from bags import strangers
from bags.strangers import Topic, image, joints, numbers, trajectory

from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import Grade
from trace_memory_ros.bags.inspection import PassedOver, Proposal, inspect
from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.runtime.actions import ActionConfig

ROOT = Path(__file__).parents[2]
CAMERA = Topic("/camera/image_raw", strangers.IMAGE, 15, image(), 0.02)
STATES = Topic("/joint_states", strangers.JOINTS, 50, joints(strangers.SIX))
COMMANDS = Topic("/arm_controller/joint_trajectory", strangers.TRAJECTORY, 10, trajectory(strangers.SIX))


@dataclass(frozen=True)
class Wanted:
    """What a proposal must say. cameras, streams: name -> topic. actions: topics of the parts, with their outputs.

    units: of channels. unread: topics of types that no stream is of.
    """

    cameras: dict[str, str]
    streams: dict[str, str]
    actions: dict[str, tuple[str, ...]]
    tick_ms: int
    units: dict[str, str]
    unread: tuple[str, ...] = ()


SIX, VX = tuple(strangers.SIX), tuple(strangers.VX)
ARM_AND_GRIPPER = Wanted(
    {"camera": "camera/color/image_raw/compressed"},
    {"joints": "joint_states", "human_interaction": "human_interaction", "gripper": "gripper/width"},
    {"forward_position_controller/commands": tuple(strangers.GRIPPED[::-1]), "gripper/command": ("gripper.width",)},
    50,
    {"gripper.width": "m"},
)
MOBILE = Wanted(
    {"head_camera": "head_camera/rgb/image_raw"},
    {"joints": "joint_states", "odom": "odom"},
    {"arm_controller/command": tuple(strangers.LIFTED), "cmd_vel": ("linear.x", "angular.z")},
    100,
    {"joints.position.torso_lift": "m"},
)
WANTED = {
    "six_axis_gripper": ARM_AND_GRIPPER,
    "two_arms_wrench": Wanted(
        {"cell_camera": "cell/camera/image_raw", "hand_camera": "hand_camera/image_raw"},
        {"left": "left/joint_states", "right": "right/joint_states"},
        {
            f"{side}/arm_controller/joint_trajectory": tuple(f"{side}.{joint}" for joint in strangers.NUMBERED)
            for side in ("left", "right")
        },
        20,
        {},
    ),
    "mobile_manipulator": MOBILE,
    "universal": Wanted(
        {"camera": "camera/color/image_raw"},
        {"joints": "joint_states"},
        {"scaled_joint_trajectory_controller/joint_trajectory": tuple(strangers.UR)},
        50,
        {},
        ("/tf", "/io_and_status_controller/io_states"),
    ),
    "franka": Wanted(
        {"wrist": "wrist/color/image_raw"},
        {"franka": "franka/joint_states", "franka_gripper": "franka_gripper/joint_states"},
        {"target_pose": tuple(f"{name}" for name in ("position.x", "position.y", "position.z"))},
        33,
        {f"franka_gripper.position.fr3_finger_joint{i}": "m" for i in (1, 2)},
    ),
    "aloha": Wanted(
        {f"cam_{place}": f"cam_{place}/image_raw" for place in ("high", "left_wrist", "right_wrist")},
        {f"puppet_{side}": f"puppet_{side}/joint_states" for side in ("left", "right")},
        {f"master_{side}/joint_states": tuple(f"puppet_{side}.{joint}" for joint in VX) for side in ("left", "right")},
        10,
        {},
        ("/puppet_left/commands/joint_group",),
    ),
    "so_101": Wanted(
        {"camera1": "camera1/jpeg"},
        {"follower": "follower/joint_states"},
        {"leader/joint_states": tuple(strangers.SO)},
        20,
        {},
    ),
    "namespaced": ARM_AND_GRIPPER,
    "without_stamps": Wanted(
        {"camera": "camera/image_raw"}, {"joints": "joint_states"}, {"joint_command": SIX}, 50, {}
    ),
    "large": MOBILE,
}


@pytest.fixture(scope="module", params=list(strangers.STRANGERS))
def proposed(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> tuple[str, Path, Proposal]:
    """A robot's name, its bag, and what is proposed for it."""
    bag = strangers.record(tmp_path_factory.mktemp(request.param) / "bag", strangers.STRANGERS[request.param])
    return request.param, bag, inspect(bag)


def loaded(proposal: Proposal, tmp_path: Path) -> RecordingConfig:
    """The proposal's file, read again."""
    file = tmp_path / "observation.yaml"
    file.write_text(proposal.yaml(), encoding="utf-8")
    recording = RecordingConfig.load(file)
    assert recording == proposal.recording
    return recording


def test_what_is_proposed(proposed: tuple[str, Path, Proposal], tmp_path: Path) -> None:
    name, _, proposal = proposed
    wanted, recording = WANTED[name], loaded(proposal, tmp_path)
    assert {camera.name: camera.topic for camera in recording.observation.cameras} == wanted.cameras
    assert {stream.name: stream.topic for stream in recording.observation.streams} == wanted.streams
    assert isinstance(recording.actions, ActionConfig)
    given = {part.topic: part.names for part in recording.actions.parts}
    assert {topic: names[: len(wanted.actions[topic])] for topic, names in given.items()} == wanted.actions
    assert recording.observation.tick_period_ms == wanted.tick_ms
    assert dict(recording.observation.units) == wanted.units
    assert recording.namespace == ("lab/robot1" if name == "namespaced" else "")


def test_it_decodes_the_bag_that_it_was_made_from(proposed: tuple[str, Path, Proposal]) -> None:
    _, bag, proposal = proposed
    assert proposal.recording is not None
    (episode,), verdict = decode_bag(bag, proposal.recording)
    # Before the first message of each topic a tick can lack it.
    assert verdict.grade in (Grade.OK, Grade.DEGRADED), str(verdict)
    assert episode.usable.sum() >= episode.ticks - 2 and episode.ticks * episode_period(proposal) > 2.5
    assert episode.actions is not None and np.isfinite(episode.actions[2:]).all()


def episode_period(proposal: Proposal) -> float:
    """A tick, s."""
    assert proposal.recording is not None
    return proposal.recording.observation.tick_period_ms / 1e3


def test_every_topic_is_used_or_listed(proposed: tuple[str, Path, Proposal]) -> None:
    name, _, proposal = proposed
    listed = {one.topic for one in proposal.passed_over}
    for topic in strangers.STRANGERS[name]:
        assert topic.name in proposal.uses or topic.name in listed
    unread = {one.topic for one in proposal.passed_over if one.entry is None}
    assert set(WANTED[name].unread) <= unread


def test_each_line_can_be_pasted(proposed: tuple[str, Path, Proposal]) -> None:
    _, bag, proposal = proposed
    lines = [one for one in proposal.passed_over if one.line]
    for one in lines:
        recording = RecordingConfig.from_dict(yaml.safe_load(pasted(proposal.yaml(), one)))
        topics = {stream.topic for stream in recording.observation.inputs}
        topics |= {part.topic for part in recording.actions.parts} if recording.actions else set()
        assert one.entry is not None and one.entry["topic"] in topics
    fast = [one for one in lines if one.section != "actions" and "never changes" not in one.why][:2]
    for one in fast:
        recording = RecordingConfig.from_dict(yaml.safe_load(pasted(proposal.yaml(), one)))
        (episode,), verdict = decode_bag(bag, recording)
        assert episode.usable.sum() >= 0.9 * episode.ticks, str(verdict)


def pasted(text: str, one: PassedOver) -> str:
    """The proposal with a line added to the section that it is listed under."""
    key = one.section.rpartition(".")[2]
    indent = "  " if "." in one.section else ""
    head = f"{indent}{key}:\n"
    assert head in text
    return text.replace(head, f"{head}{indent}{one.line}\n", 1)


def test_two_hundred_topics_stay_readable(tmp_path: Path) -> None:
    bag = strangers.record(tmp_path / "bag", strangers.LARGE)
    proposal = inspect(bag)
    assert len(proposal.topics) == 200
    lines = proposal.yaml().splitlines()
    assert len(lines) < 45
    assert any("19 alike: /battery/cell_1/voltage" in line for line in lines)
    assert any("sensor_msgs/msg/CameraInfo: /camera_0/camera_info" in line and "34 more" in line for line in lines)


def test_what_velocities_and_wrenches_need_is_said(tmp_path: Path) -> None:
    proposal = inspect(strangers.record(tmp_path / "bag", strangers.TWO_ARMS_WRENCH))
    lines = {one.entry["name"]: one for one in proposal.passed_over if one.entry}
    assert lines["right_wrench"].entry["select"] == ["force", "torque"]
    assert lines["left_velocity"].entry["select"] == {"velocity": strangers.NUMBERED}
    assert lines["right_velocity"].section == "observation.streams"


def test_setpoints_are_no_state(tmp_path: Path) -> None:
    proposal = inspect(strangers.record(tmp_path / "bag", strangers.UNIVERSAL))
    why = {one.topic: one.why for one in proposal.passed_over}
    assert why["/controller/reference"].startswith("commands what /scaled_joint_trajectory_controller")
    assert "repeats the joints of /joint_states" in why["/dynamic_joint_states"]
    assert not [note for note in proposal.notes if "different sets" in note]  # two orders of one set


@pytest.mark.parametrize("name", ["six_axis_gripper", "two_arms_wrench", "mobile_manipulator"])
def test_the_shipped_robots_decode_such_bags(name: str, tmp_path: Path) -> None:
    recording = RecordingConfig.load(ROOT / "config" / "robots" / f"{name}.yaml")
    bag = strangers.record(tmp_path / "bag", strangers.STRANGERS[name])
    (episode,), verdict = decode_bag(bag, recording)
    assert episode.usable.sum() >= episode.ticks - 2 and episode.ticks > 25, str(verdict)
    assert episode.actions is not None and np.isfinite(episode.actions[2:]).all()
    proposal = inspect(bag).recording
    assert proposal is not None and proposal.actions is not None and recording.actions is not None
    assert set(recording.actions.names) == set(proposal.actions.names)
    assert recording.observation.tick_period_ms == proposal.observation.tick_period_ms
    positions = {topic for topic in (stream.topic for stream in proposal.observation.streams) if "human" not in topic}
    assert positions <= {stream.topic for stream in recording.observation.streams}


def test_the_shipped_robots_say_what_their_comments_say() -> None:
    robots = {file.stem: RecordingConfig.load(file) for file in (ROOT / "config" / "robots").glob("*.yaml")}
    assert {"six_axis_gripper", "two_arms_wrench", "mobile_manipulator"} <= set(robots)
    assert robots["six_axis_gripper"].observation.path[-1] == "gripper.width"
    two = robots["two_arms_wrench"]
    assert two.observation.state_dim == 30 and two.observation.path_dim == 12
    assert two.actions is not None and two.actions.names[6] == "right.joint_1"
    assert robots["mobile_manipulator"].observation.state_units[0] == "m"


def test_a_switch_that_is_called_like_a_command_is_listed_with_actions_and_told(tmp_path: Path) -> None:
    suction = [
        Topic(f"/vacuum/{name}", "std_msgs/msg/Bool", 10, numbers(lambda t: bool(np.sin(t) > 0)))
        for name in ("command", "state")
    ]
    proposal = inspect(strangers.record(tmp_path / "bag", (CAMERA, STATES, COMMANDS, *suction)))
    sections = {one.topic: one.section for one in proposal.passed_over}
    assert sections["/vacuum/command"] == "actions" and sections["/vacuum/state"] == "observation.streams"
    assert any("/vacuum/command: called like commands, and left out" in note for note in proposal.notes)


def test_a_trajectory_of_velocities_alone_is_left_out_for_what_it_lacks(tmp_path: Path) -> None:
    def speeds(t: float) -> strangers.Plain:
        return {"joint_names": list(strangers.SIX), "points": [{"velocities": strangers.aim(t, 6)}]}

    commands = Topic("/arm/joint_trajectory", strangers.TRAJECTORY, 20, speeds)
    proposal = inspect(strangers.record(tmp_path / "bag", (CAMERA, STATES, commands)))
    (left,) = [one for one in proposal.passed_over if one.section == "actions"]
    assert left.why.startswith("gives no positions of the joints that it names")
    assert left.entry is not None and left.entry["select"] == {"velocity": list(strangers.SIX)}
    assert any("JointTrajectory topic of positions" in text for text in proposal.missing)
