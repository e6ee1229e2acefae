"""Messages whose contents cannot be used, streams that fall silent, episodes and branches that are not there."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
from bags.bad import (
    DEGRADED,
    TICKS,
    UNUSABLE,
    bad,
    edited,
    restamped,
)

from studies import tiny_bags as tiny
from studies.tiny_bags import RECORDING, Entry, recording_of, stamp_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.observation.config import CameraConfig

# Contents


@bad(
    UNUSABLE, "joint shoulder, elbow, wrist is missing", "topic /joint_states", "correct the configured joint", TICKS, 0
)
def wrong_joint_names(bag: Path) -> None:
    def change(entry: Entry, _: int) -> Entry:
        if entry.topic == "joint_states":
            entry.message.name = ["joint_a", "joint_b", "joint_c"]
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "joint elbow is missing", "topic /joint_states", "publish it", TICKS, 10)
def a_joint_goes_missing(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if entry.topic == "joint_states" and tick >= 10:
            entry.message.name = ["shoulder", "wrist"]
            entry.message.position = entry.message.position[[0, 2]]
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "3 joint names with 2 positions", "topic /joint_states", "a position per name", TICKS, TICKS - 1)
def names_without_positions(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if entry.topic == "joint_states" and tick == 4:
            entry.message.position = entry.message.position[:2]
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "position of elbow is not finite", "topic /joint_states", "encoder or driver", TICKS, TICKS - 2)
def not_a_number(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if entry.topic == "joint_states" and tick in (4, 5):
            entry.message.position[1] = np.nan
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "image encoding '8SC3' (8x6) is not supported", "topic /hand/image", "image_proc", TICKS, 12)
def encoding_changes(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if entry.topic == "hand/image" and tick >= 12:
            entry.message.encoding = "8SC3"
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "image size changed from 8x6 to 4x4", "topic /front/image", "camera's mode", TICKS, 15)
def image_size_changes(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if entry.topic == "front/image" and tick >= 15:
            entry.message = make.image(np.zeros((4, 4, 3), np.uint8), stamp_of(tick))
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "needs a size of at least 1x1", "topic /front/image", "check the publisher", TICKS, TICKS - 1)
def an_image_with_too_few_bytes(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if entry.topic == "front/image" and tick == 3:
            entry.message.data = entry.message.data[:50]
        return entry

    write(bag, edited(change))


def compressed_hand() -> RecordingConfig:
    front, _ = RECORDING.observation.cameras
    hand = CameraConfig("hand", "hand/image", 250, "compressed")
    return replace(RECORDING, observation=replace(RECORDING.observation, cameras=(front, hand)))


@bad(
    DEGRADED,
    "is cut off, or no whole jpeg",
    "topic /hand/image",
    "check the publisher",
    TICKS,
    TICKS - 1,
    compressed_hand(),
)
def a_jpeg_that_is_cut_off(bag: Path) -> None:
    entries = tiny.compress(recording_of(TICKS), "hand/image")
    broken = [entry for entry in entries if entry.topic == "hand/image"][6].message
    broken.data = broken.data[: len(broken.data) // 2]
    write(bag, entries)


@bad(
    DEGRADED,
    "1 of 20 ticks cannot be used: hand: compressed image of format",
    ", tick 6",
    "check the publisher",
    TICKS,
    TICKS - 1,
    compressed_hand(),
)
def a_jpeg_that_cannot_be_unpacked(bag: Path) -> None:
    entries = tiny.compress(recording_of(TICKS), "hand/image")
    broken = [entry for entry in entries if entry.topic == "hand/image"][6].message
    data = bytes(broken.data)
    tables_at = data.index(b"\xff\xc4") + 5
    broken.data = np.frombuffer(data[:tables_at] + b"\xff" * 16 + data[tables_at + 16 :], np.uint8)
    write(bag, entries)


# Streams and episodes


@bad(DEGRADED, "10 of 20 ticks cannot be used: front: the newest sample", "tick ", "its publisher", TICKS, 10)
def clock_camera_falls_silent(bag: Path) -> None:
    write(bag, edited(lambda entry, tick: None if entry.topic == "front/image" and tick >= 8 else entry))


@bad(
    DEGRADED, "ticks cannot be used: hand: the newest sample on 'hand/image' is older", "tick 20", "publisher", 160, 20
)
def a_camera_falls_silent_for_long(bag: Path) -> None:
    write(bag, edited(lambda entry, tick: None if entry.topic == "hand/image" and tick >= 18 else entry, 160))


@bad(UNUSABLE, "is shorter than one tick", "episode 0", "record longer")
def shorter_than_a_tick(bag: Path) -> None:
    write(bag, edited(lambda entry, _: restamped(entry, stamp_of(0) - 1) if entry.topic == "odom" else entry, 1))


@bad(
    DEGRADED, "5 of 20 ticks have no command", "topic /command (actions), episode 0, tick 0", "episode's begin", 20, 20
)
def commands_begin_late(bag: Path) -> None:
    write(bag, edited(lambda entry, tick: None if entry.topic == "command" and tick < 5 else entry))


@bad(
    DEGRADED,
    "20 of 20 commands cannot be used (joint gripper is missing",
    "topic /command",
    "configured joint names",
    20,
    20,
)
def commands_of_other_joints(bag: Path) -> None:
    def change(entry: Entry, _: int) -> Entry:
        if entry.topic == "command":
            entry.message.joint_names = ["shoulder", "elbow", "wrist", "claw"]
        return entry

    write(bag, edited(change))


@bad(DEGRADED, "1 of 20 commands cannot be used (position of shoulder is not finite)", "topic /command", "", 20, 20)
def a_command_that_is_not_finite(bag: Path) -> None:
    def change(entry: Entry, tick: int) -> Entry:
        if entry.topic == "command" and tick == 9:
            entry.message.points[0].positions[0] = np.inf
        return entry

    write(bag, edited(change))


@bad(UNUSABLE, "tells of no episode", "topic /episode", "episodes.kind: bag", recording=tiny.BY_STATUS)
def no_episode_ever_runs(bag: Path) -> None:
    entries = recording_of(TICKS)
    idle = make.episode_status(stamp_of(0), phase=0)
    entries += [Entry("episode", fields.STATUS, stamp_of(0), idle), *tiny.episode_entries(2, 0, 0)[-1:]]
    write(bag, entries)


@bad(DEGRADED, "branches[1]: lies at tick 99, the episode has 20", "branches.yaml", "docs/how-to/bags.md", TICKS, TICKS,
     replace(RECORDING, branches=BranchConfig(file="branches.yaml")))  # fmt: skip
def a_branch_beyond_the_end(bag: Path) -> None:
    write(bag, recording_of(TICKS))
    (bag / "branches.yaml").write_text("branches: [{tick: 3, label: left}, {tick: 99, label: right}]")


@bad(DEGRADED, "cannot be read (No such file", "branches.yaml", "write it", TICKS, TICKS,
     replace(RECORDING, branches=BranchConfig(file="branches.yaml")))  # fmt: skip
def no_branch_file(bag: Path) -> None:
    write(bag, recording_of(TICKS))


@bad(UNUSABLE, "is sensor_msgs/msg/Image, needed is", "topic /front/image (episodes)", "kind",
     recording=replace(RECORDING, episodes=EpisodeRule("topic", "front/image")))  # fmt: skip
def episodes_by_a_camera(bag: Path) -> None:
    write(bag, recording_of(TICKS))
