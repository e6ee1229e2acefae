"""A proposal decodes the bag that it was made from, and says what the bag lacks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from studies import tiny_bags as tiny
from studies.tiny_bags import PERIOD_NS, Entry, recording_of, stamp_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import BagFault, Grade
from trace_memory_ros.bags.inspection import Proposal, episodes, inspect, inspect_bags
from trace_memory_ros.bags.layout import find_bags
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.cli.main import main
from trace_memory_ros.files.strict import ConfigError


def round_trip(tmp_path: Path, entries: list[Entry], ticks: int) -> tuple[Proposal, RecordingConfig]:
    """Propose, write, load, decode; every tick must be usable."""
    bag = write(tmp_path / "bag", entries)
    proposal = inspect(bag)
    assert proposal.recording is not None, proposal.missing
    file = tmp_path / "observation.yaml"
    file.write_text(proposal.yaml())
    recording = RecordingConfig.load(file)
    assert recording == proposal.recording
    episodes, verdict = decode_bag(bag, recording)
    assert verdict.grade is Grade.OK, str(verdict)
    assert sum(episode.ticks for episode in episodes) == ticks
    assert all(episode.usable.all() for episode in episodes)
    return proposal, recording


def test_a_plain_bag(tmp_path: Path) -> None:
    proposal, recording = round_trip(tmp_path, recording_of(20), 20)
    seen = recording.observation
    assert [(camera.name, camera.topic, camera.transport) for camera in seen.cameras] == [
        ("front", "front/image", "raw"),
        ("hand", "hand/image", "raw"),
    ]
    assert {name.rpartition(".")[2] for name in seen.state} == {
        *tiny.JOINTS,
        "x",
        "y",
        "z",
    } and seen.tick_period_ms == 100
    assert [(s.topic, s.type) for s in seen.streams] == [("joint_states", fields.JOINTS), ("odom", fields.ODOMETRY)]
    assert {camera.stale_after_ms for camera in seen.cameras} == {250}
    assert recording.actions == tiny.RECORDING.actions
    assert proposal.missing == [] and proposal.faults == []
    assert proposal.topics["/odom"].rate_hz == pytest.approx(10.0)


def test_rates_set_ticks_and_limits(tmp_path: Path) -> None:
    entries = []
    for k in range(60):
        ns = stamp_of(0) + k * 33_000_000
        entries.append(Entry("joint_states", fields.JOINTS, ns, make.joint_state(tiny.JOINTS, tiny.positions(k), ns)))
        if k % 8 == 0:
            image = make.image(tiny.pixels(k, 0), ns)
            entries.append(Entry("camera/front/image_raw", fields.IMAGE, ns, image))
    proposal, recording = round_trip(tmp_path, entries, 10)
    (camera,) = recording.observation.cameras
    (joints,) = recording.observation.streams
    assert camera.name == "front"
    assert recording.observation.tick_period_ms == 200  # the camera comes every 264 ms: the slowest tick
    assert (camera.stale_after_ms, joints.stale_after_ms) == (660, 200)
    assert recording.actions is None
    (missing,) = proposal.missing
    assert "commands" in missing and "# missing: commands" in proposal.yaml()


def test_an_arm_that_was_guided_by_hand_teaches_by_its_measured_places(tmp_path: Path) -> None:
    entries = [e for e in recording_of(20) if e.topic != "command"]
    for k in range(20):
        width = make.filled("std_msgs/msg/Float32", {"data": 0.002 * k})
        entries.append(Entry("gripper/width", "std_msgs/msg/Float32", stamp_of(k) + 1_000_000, width))
    bag = write(tmp_path / "bag", entries)
    proposal = inspect(bag)
    (missing,) = proposal.missing
    assert "what was measured teaches: add the lines of actions" in missing
    file = tmp_path / "observation.yaml"
    proposed, _, added = proposal.yaml().partition("# If the robot was guided by hand, what was measured teaches:\n")
    file.write_text(proposed + added.replace("# actions", "actions").replace("# - {", "- {"))
    recording = RecordingConfig.load(file)
    (episode,), verdict = decode_bag(bag, recording)
    assert verdict.grade is Grade.OK, str(verdict)
    assert episode.actions is not None and recording.actions is not None
    base = ("odom.linear.x", "odom.linear.y", "odom.angular.z")
    assert recording.actions.names == (*tiny.JOINTS, "gripper.width", *base)
    assert recording.actions.units == ("rad",) * len(tiny.JOINTS) + ("m", "m/s", "m/s", "rad/s")
    channels = [f"joints.position.{name}" for name in tiny.JOINTS] + ["gripper.width", *base]
    measured = episode.state[:, [recording.observation.state.index(name) for name in channels]]
    np.testing.assert_allclose(episode.actions[:-1], measured[1:], rtol=1e-6)
    with pytest.raises(ConfigError, match=r"'nav_msgs/msg/Odometry' cannot be a command"):
        recording.actions.compose(np.zeros(len(recording.actions.names)), 0, 1)


def test_joints_that_nobody_stamps_teach_by_when_they_were_recorded(tmp_path: Path) -> None:
    entries = [e for e in recording_of(20) if e.topic not in ("command", "joint_states")]
    for k in range(20):
        joints = make.joint_state(tiny.JOINTS, tiny.positions(k), 0)
        entries.append(Entry("joint_states", fields.JOINTS, stamp_of(k) + 1_000_000, joints))
    proposal = inspect(write(tmp_path / "bag", entries))
    assert "stamp: received, ahead_ms: 100}" in proposal.yaml()


def test_split_joints_compressed_and_depth_cameras_and_joint_state_commands(tmp_path: Path) -> None:
    entries: list[Entry] = []
    for k in range(15):
        ns = stamp_of(k)
        depth = make.image(np.zeros((6, 8), np.uint8), ns, encoding="mono8")
        depth.encoding, depth.step, depth.data = "16UC1", 16, np.zeros(96, np.uint8)
        raw = Entry("camera/color/image_raw", fields.IMAGE, ns, make.image(tiny.pixels(k, 0), ns))
        packed = Entry("camera/color/image_raw/compressed", fields.IMAGE, ns, make.image(tiny.pixels(k, 0), ns))
        hand = Entry("hand/compressed", fields.IMAGE, ns, make.image(tiny.pixels(k, 1), ns))
        packed, hand = tiny.compress(tiny.compress([packed, hand], packed.topic), hand.topic)
        left = make.joint_state(("a", "b"), (0.1, 0.2), ns)
        right = make.joint_state(("c", "a"), (0.3, 0.1), ns)
        entries += [
            raw,
            packed,
            hand,
            Entry("camera/depth/image_raw", fields.IMAGE, ns, depth),
            Entry("left/joint_states", fields.JOINTS, ns, left),
            Entry("right/joint_states", fields.JOINTS, ns, right),
            Entry("leader/joint_states", fields.JOINTS, ns, make.joint_state(("a", "c"), (1.0, 2.0), ns)),
        ]
    proposal, recording = round_trip(tmp_path, entries, 15)
    cameras = [(camera.topic, camera.transport) for camera in recording.observation.cameras]
    assert cameras == [("camera/color/image_raw", "raw"), ("hand/compressed", "compressed")]
    assert [[one.output for one in s.selected] for s in recording.observation.streams] == [["a", "b"], ["c"]]
    assert recording.actions is not None
    assert [(part.topic, part.type) for part in recording.actions.parts] == [("leader/joint_states", fields.JOINTS)]
    why = {one.topic: one.why for one in proposal.passed_over}
    assert "depth" in why["/camera/depth/image_raw"]
    assert "repeats /camera/color/image_raw" in why["/camera/color/image_raw/compressed"]


def test_episodes_and_branches_are_found(tmp_path: Path) -> None:
    entries = recording_of(20) + tiny.episode_entries(6, 2, 0) + tiny.episode_entries(6, 12, 1)
    _, recording = round_trip(tmp_path, entries, 12)
    assert recording.episodes == EpisodeRule("topic", "episode")
    assert recording.branches == BranchConfig(topic="branch")


def test_a_clock_that_was_put_back_cuts_episodes(tmp_path: Path) -> None:
    again = recording_of(40)
    for entry in again:
        entry.log_ns += 40 * PERIOD_NS
    bag = write(tmp_path / "bag", [*recording_of(40), *again])
    proposal = inspect(bag)
    assert proposal.recording is not None and proposal.recording.episodes.kind == "gap"
    assert "the first camera's stamps fall 1 times by over 2 s: the bag is cut there" in proposal.notes
    episodes, verdict = decode_bag(bag, proposal.recording)
    assert [episode.ticks for episode in episodes] == [40, 40] and verdict.ok, str(verdict)


def test_pauses_cut_episodes(tmp_path: Path) -> None:
    entries = [entry for k in (*range(8), *range(60, 68)) for entry in tiny.tick_entries(k)]
    _, recording = round_trip(tmp_path, entries, 16)
    assert recording.episodes.kind == "gap"


@pytest.mark.parametrize("count", [1, 2])
def test_pauses_after_the_first_minute_cut_episodes(tmp_path: Path, count: int) -> None:
    entries = [entry for k in (*range(640), *range(680, 690)) for entry in tiny.tick_entries(k)]
    bags = [write(tmp_path / "bags" / f"bag_{k}", entries) for k in range(count)]
    proposal = inspect(bags[0]) if count == 1 else inspect_bags(tmp_path / "bags", bags)
    assert proposal.recording is not None and proposal.recording.episodes.kind == "gap"
    assert f"the first camera pauses {count} times for over 2 s: the bag is cut there" in proposal.notes
    episodes, verdict = decode_bag(bags[0], proposal.recording)
    assert [episode.ticks for episode in episodes] == [640, 10] and verdict.ok, str(verdict)


def test_a_bag_is_read_once_more_only_where_it_may_pause_or_fall(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[Path] = []
    monkeypatch.setattr(episodes, "BagReader", lambda bag: read.append(bag) or BagReader(bag))
    steady = inspect(write(tmp_path / "steady", [e for k in range(650) for e in tiny.tick_entries(k)]))
    assert not read and steady.recording is not None and steady.recording.episodes.kind == "bag"
    again = recording_of(30)
    for entry in again:
        entry.log_ns += 650 * PERIOD_NS
    fallen = inspect(write(tmp_path / "fallen", [*recording_of(650), *again]))
    assert len(read) == 1 and fallen.recording is not None and fallen.recording.episodes.kind == "gap"


def without(topics: tuple[str, ...]) -> list[Entry]:
    return [entry for entry in recording_of(10) if entry.topic not in topics]


@pytest.mark.parametrize(
    ("topics", "missing"),
    [
        (("front/image", "hand/image"), "a camera"),
        (("joint_states", "odom"), "joint positions"),
        (("joint_states",), "joint positions"),
        (("command",), "commands"),
    ],
)
def test_what_is_missing_is_named(tmp_path: Path, topics: tuple[str, ...], missing: str) -> None:
    proposal = inspect(write(tmp_path / "bag", without(topics)))
    assert any(text.startswith(missing) for text in proposal.missing)
    # A base is a robot too.
    assert (proposal.recording is None) == (missing == "a camera" or "odom" in topics)


def change_names(entry: Entry, tick: int) -> None:
    if entry.topic == "joint_states" and tick % 2:
        entry.message.name = ["gripper_a", "gripper_b", "gripper_c"]


def freeze_base(entry: Entry, tick: int) -> None:
    if entry.topic == "odom":
        entry.message = make.odometry((0.0, 0.0, 0.0), stamp_of(tick))


@pytest.mark.parametrize(
    ("change", "note"),
    [(change_names, "2 different sets of joints"), (freeze_base, "/odom never moves")],
)
def test_what_a_person_should_decide_is_noted(tmp_path: Path, change: Callable[[Entry, int], None], note: str) -> None:
    entries = recording_of(10)
    for i, entry in enumerate(entries):
        change(entry, i // 5)
    assert note in " ".join(inspect(write(tmp_path / "bag", entries)).notes)


def test_a_file_that_is_no_bag_is_refused(tmp_path: Path) -> None:
    with pytest.raises(BagFault, match="holds no storage file"):
        inspect(tmp_path)


def joined(entries: list[Entry], names: tuple[str, ...]) -> list[Entry]:
    """The same with other joints in every message."""
    for entry in entries:
        if entry.topic == "joint_states":
            entry.message.name = list(names)
    return entries


def folder_of_bags(tmp_path: Path) -> Path:
    """Three alike, one without a camera, one with other joints and half the rate, and one that is none."""
    folder = tmp_path / "bags"
    for name in ("a", "b", "c"):
        write(folder / "day 1" / name, recording_of(10))
    write(folder / "day 2" / "a", [entry for entry in recording_of(10) if entry.topic != "hand/image"])
    slow = [entry for k in range(0, 20, 2) for entry in tiny.tick_entries(k)]
    write(folder / "day 2" / "slow", joined(slow, ("x", "y", "z")[: len(tiny.JOINTS)]))
    (folder / "day 3").mkdir()
    (folder / "day 3" / "three.mcap").write_text("no")
    return folder


def test_a_folder_of_bags_gets_one_proposal_and_says_which_bag_is_not_like_it(tmp_path: Path) -> None:
    folder = folder_of_bags(tmp_path)
    proposal = inspect_bags(folder, find_bags(folder))
    alone = inspect(folder / "day 1" / "a").recording
    assert alone is not None and proposal.recording is not None
    assert [c.name for c in proposal.recording.observation.cameras] == [c.name for c in alone.observation.cameras]
    assert len(proposal.recording.observation.state) == len(tiny.OBSERVATION.state)
    assert proposal.bag == f"{folder} (5 bags)"
    assert proposal.topics["/hand/image"].info.messages == 40
    assert set(proposal.differences) == {"day 2/a", "day 2/slow"}
    assert proposal.differences["day 2/a"] == ["lacks /hand/image (camera hand)"]
    slow = " ".join(proposal.differences["day 2/slow"])
    assert "/joint_states names x, y" in slow and "/front/image comes at 5.0 Hz, over all bags at 10.0 Hz" in slow
    assert [Path(fault.bag).name for fault in proposal.faults] == ["day 3"]
    (tmp_path / "observation.yaml").write_text(proposal.yaml())
    assert RecordingConfig.load(tmp_path / "observation.yaml") == proposal.recording
    assert "# day 2/a: lacks /hand/image (camera hand)" in proposal.yaml()


def test_topics_that_few_bags_hold_are_left_out_and_other_types_are_named(tmp_path: Path) -> None:
    folder = tmp_path / "bags"
    for name in ("a", "b", "c"):
        write(folder / name, recording_of(10))
    extra = [
        Entry("side/image", fields.IMAGE, stamp_of(k), make.image(tiny.pixels(k, 1), stamp_of(k))) for k in range(10)
    ]
    twist = [Entry("odom", fields.TWIST, stamp_of(k), make.twist_stamped((0.1, 0, 0), stamp_of(k))) for k in range(10)]
    write(folder / "d", [*(e for e in recording_of(10) if e.topic != "odom"), *twist, *extra])
    proposal = inspect_bags(folder, find_bags(folder))
    assert proposal.recording is not None
    assert "side" not in [camera.name for camera in proposal.recording.observation.cameras]
    assert "/side/image is in 1 of 4 bags and left out" in proposal.notes
    assert proposal.differences == {
        "d": [
            "/odom is geometry_msgs/msg/TwistStamped, in most bags nav_msgs/msg/Odometry",
            "holds /side/image, which the proposal leaves out",
        ]
    }


def test_a_folder_whose_bags_cannot_be_read_is_refused(tmp_path: Path) -> None:
    for name in ("one.mcap", "two.mcap"):
        (tmp_path / name).write_text("no")
    with pytest.raises(BagFault, match="holds 2 bags of which none can be read"):
        inspect_bags(tmp_path, find_bags(tmp_path))


def test_inspecting_a_folder_names_every_bag(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = folder_of_bags(tmp_path)
    assert main(["bags", "inspect", str(folder), "--out", str(tmp_path / "observation.yaml")]) == 0
    said = capsys.readouterr().out
    assert "differs: day 2/a: lacks /hand/image (camera hand)" in said
    for name in ("day 1/a", "day 1/b", "day 1/c"):
        assert f"{folder / name}: ok (1 episodes, 10 of 10 ticks usable)" in said
    assert f"{folder / 'day 2' / 'a'}: unusable" in said
    assert "day 3: unusable" in said


def test_inspecting_a_folder_of_one_bag_names_it(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "bags" / "only", recording_of(10))
    assert main(["bags", "inspect", str(bag.parent)]) == 0
    said = capsys.readouterr().out
    assert f"{bag}: ok (1 episodes, 10 of 10 ticks usable)" in said
    assert "# Proposed from only;" in said


def test_command_line(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    bag = write(tmp_path / "bags" / "one", recording_of(10))
    write(tmp_path / "bags" / "two", without(("odom",)))
    (tmp_path / "bags" / "three.mcap").write_text("no")
    out = tmp_path / "made" / "observation.yaml"
    assert main(["bags", "inspect", str(bag), "--out", str(out)]) == 0
    said = capsys.readouterr().out
    assert "with it: 1 episodes, 10 ticks, 10 of them usable" in said
    assert main(["bags", "check", str(bag), "--config", str(out)]) == 0
    assert "one: ok (1 episodes, 10 of 10 ticks usable)" in capsys.readouterr().out
    assert main(["bags", "check", str(tmp_path / "bags"), "--config", str(out)]) == 1
    said = capsys.readouterr().out
    assert "1 ok, 2 unusable" in said
    assert "topic /odom (odom): is not in the bag; record it" in said
    assert "three.mcap, byte 0" in said
    # Proposed anew for each bag, the one without odometry is sound.
    assert main(["bags", "check", str(tmp_path / "bags" / "two")]) == 0
    with pytest.raises(SystemExit):
        main(["bags"])
