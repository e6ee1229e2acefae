"""A sound bag gives the observations, actions, episodes and branches that were recorded, however it is stored."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import cv2
import numpy as np
import pytest
from bags.bad import storage_file

from studies import tiny_bags as tiny
from studies.tiny_bags import BEGIN_NS, PERIOD_NS, RECORDING, Entry, stamp_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.branches import Branch
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.cache import cache_key
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.episodes import spans
from trace_memory_ros.bags.faults import Grade
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import BranchConfig, EpisodeRule, RecordingConfig
from trace_memory_ros.bags.ticks import SpanTicks, observations
from trace_memory_ros.observation.config import CameraConfig, SensorConfig
from trace_memory_ros.observation.content import JointPositions, Live, Pixels
from trace_memory_ros.observation.frames import stacked
from trace_memory_ros.observation.images import prepare
from trace_memory_ros.observation.lockstep import base_message
from trace_memory_ros.observation.observer import Observer
from trace_memory_ros.runtime.actions import ActionConfig

TICKS = 12


def sound(bag: Path, recording: RecordingConfig = RECORDING) -> list[BagEpisode]:
    """The episodes of a bag with which nothing is wrong."""
    episodes, verdict = decode_bag(bag, recording)
    assert verdict.grade is Grade.OK, str(verdict)
    return episodes


def assert_contents(episode: BagEpisode, first: int = 0, ticks: int = TICKS) -> None:
    """Every array is what was recorded at those ticks, bit for bit."""
    assert episode.stamps_ns.tolist() == [stamp_of(first + k) for k in range(ticks)]
    assert episode.usable.all() and not episode.faults
    for k in range(ticks):
        tick = first + k
        for c in range(2):
            assert np.array_equal(stacked(episode.images, k)[c], prepare(tiny.pixels(tick, c), tiny.IMAGE_PX))
        assert np.array_equal(episode.state[k], [0.1, -0.1, 0.01 * tick, *tiny.positions(tick)])
        assert episode.actions is not None
        assert np.array_equal(episode.actions[k], tiny.targets(tick).astype(np.float32))
    assert (episode.input_stamps_ns == episode.stamps_ns[:, None]).all()


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
@pytest.mark.parametrize("compression", ["none", "file", "message", "chunk"])
def test_every_storage_gives_what_was_recorded(tmp_path: Path, storage: str, compression: str) -> None:
    if (storage, compression) == ("sqlite3", "chunk"):
        pytest.skip("sqlite3 has no chunks")
    bag = write(tmp_path / "bag", tiny.recording_of(TICKS), storage, compression)
    (episode,) = sound(bag)
    assert_contents(episode)
    assert episode.name == "bag" and episode.action_names == tiny.ACTIONS


@pytest.mark.parametrize("storage", ["mcap", "sqlite3"])
def test_a_storage_file_alone_is_a_bag(tmp_path: Path, storage: str) -> None:
    bag = write(tmp_path / "bag", tiny.recording_of(TICKS), storage)
    (file,) = (path for path in bag.iterdir() if path.suffix != ".yaml")
    (episode,) = sound(file)
    assert (episode.name, episode.bag) == (file.name, str(file))
    assert_contents(episode)


def test_mapped_reading_gives_the_same_messages(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", tiny.recording_of(TICKS))
    with BagReader(bag) as plain, BagReader(bag, mapped=True) as mapped:
        assert [(m.topic, m.log_ns, bytes(m.data)) for m in plain.messages()] == [
            (m.topic, m.log_ns, bytes(m.data)) for m in mapped.messages()
        ]


def test_messages_come_in_log_order_and_within_limits(tmp_path: Path) -> None:
    # Several chunks whose times overlap: large messages, recorded in an order that is not that of their log times.
    rng = np.random.default_rng(0)
    order = rng.permutation(40)
    picture = rng.integers(0, 255, (256, 256, 3), dtype=np.uint8)
    bag = tmp_path / "bag"
    with make_writer(bag) as writer:
        for i in order:
            writer.write("image", make.image(picture, stamp_of(int(i))), stamp_of(int(i)))
    with BagReader(bag) as reader:
        assert len(reader._storages[0]._blocks) > 3  # type: ignore[attr-defined]
        assert [m.log_ns for m in reader.messages()] == [stamp_of(i) for i in range(40)]
        assert not reader.faults
        some = [m.log_ns for m in reader.messages(["/image"], stamp_of(5), stamp_of(9))]
        assert some == [stamp_of(i) for i in range(5, 9)]
        assert reader.topics["/image"].messages == 40
        assert (reader.begin_ns, reader.end_ns) == (stamp_of(0), stamp_of(39) + 1)


def make_writer(bag: Path):  # type: ignore[no-untyped-def]
    from trace_memory_ros.bags.writer import BagFileWriter

    return BagFileWriter(bag, {"image": fields.IMAGE})


def test_observations_equal_those_of_a_live_observer(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", tiny.recording_of(TICKS))
    live = Observer(RECORDING.observation)
    seen = []
    for tick in range(TICKS):
        ns = stamp_of(tick)
        live.push("joints", ns, ns, Live(JointPositions(tiny.JOINTS, tiny.positions(tick))))
        live.push("odom", ns, ns, Live(base_message(np.array([0.1, -0.1, 0.01 * tick]))))
        for c, camera in enumerate(("front", "hand")):
            live.push(camera, ns, ns, Pixels(tiny.pixels(tick, c)))
        seen += live.poll(0)
    with BagReader(bag) as reader:
        (span,) = spans(reader, RECORDING)
        replayed = list(observations(reader, RECORDING, span))
        (episode,) = sound(bag)
    assert len(replayed) == len(seen) == TICKS
    for k, (a, b) in enumerate(zip(replayed, seen, strict=True)):
        for c in (a, episode.observation(k)):
            assert (c.tick, c.stamp_ns, dict(c.input_stamps_ns)) == (b.tick, b.stamp_ns, dict(b.input_stamps_ns))
            assert c.state is not None and b.state is not None and np.array_equal(c.state, b.state)
            assert all(np.array_equal(c.images[name], b.images[name]) for name in b.images)


@pytest.mark.parametrize("layout", ["jpeg", "png"])
def test_compressed_images(tmp_path: Path, layout: str) -> None:
    entries = tiny.compress(tiny.recording_of(TICKS), "hand/image", layout)
    front, hand = RECORDING.observation.cameras
    config = replace(RECORDING.observation, cameras=(front, replace(hand, transport="compressed")))
    (episode,) = sound(write(tmp_path / "bag", entries), replace(RECORDING, observation=config))
    assert episode.usable.all()
    exact = prepare(tiny.pixels(3, 1), tiny.IMAGE_PX)
    if layout == "png":
        assert np.array_equal(stacked(episode.images, 3)[1], exact)
    else:
        rgb = cv2.cvtColor(tiny.pixels(3, 1), cv2.COLOR_RGB2BGR)
        file = cv2.imencode(".jpeg", rgb)[1]
        decoded = cv2.cvtColor(cv2.imdecode(file, cv2.IMREAD_COLOR), cv2.COLOR_BGR2RGB)
        assert np.array_equal(stacked(episode.images, 3)[1], prepare(np.asarray(decoded, np.uint8), tiny.IMAGE_PX))


def test_joints_split_over_topics_twist_and_joint_state_commands(tmp_path: Path) -> None:
    entries = []
    for tick in range(TICKS):
        ns = stamp_of(tick)
        front, hand = (e for e in tiny.tick_entries(tick) if e.type_name == fields.IMAGE)
        arm = make.joint_state(("wrist", "other", "elbow"), (0.3, 9.0, 0.2), ns)
        base = make.joint_state(("shoulder",), (0.1,), ns - 20_000_000)
        command = make.joint_state(tiny.ACTIONS[::-1], tiny.targets(tick)[::-1], ns)
        entries += [
            Entry("arm/joints", fields.JOINTS, ns, arm),
            Entry("base/joints", fields.JOINTS, ns, base),
            Entry("velocity", fields.TWIST, ns, make.twist_stamped((0.5, 0.0, -0.5), ns)),
            front,
            hand,
            Entry("command", fields.JOINTS, ns + 1, command),
        ]
    config = replace(
        RECORDING.observation,
        streams=(
            SensorConfig("arm", "arm/joints", 250, select={"position": ("elbow", "wrist")}),
            SensorConfig("base_joint", "base/joints", 250, select={"position": ("shoulder",)}),
            SensorConfig("velocity", "velocity", 250, type=fields.TWIST),
        ),
        state=(),
        path=(),
    )
    recording = RecordingConfig(config, ActionConfig.of_kind("command", "joint_state", tiny.ACTIONS))
    (episode,) = sound(write(tmp_path / "bag", entries), recording)
    # The last tick waits for a sample of the base at or after it, which never comes.
    assert episode.ticks == TICKS - 1
    assert np.array_equal(episode.state[2], [0.2, 0.3, 0.1, 0.5, 0.0, -0.5])
    assert episode.actions is not None
    assert np.array_equal(episode.actions[2], tiny.targets(2).astype(np.float32))


def test_big_endian_messages_are_read(tmp_path: Path) -> None:
    from trace_memory_ros.bags.types import typestore

    entries = tiny.recording_of(TICKS)
    for entry in entries:
        entry.message = bytes(typestore().serialize_cdr(entry.message, entry.type_name, little_endian=False))
        assert entry.message[:2] == b"\x00\x00"
    assert_contents(sound(write(tmp_path / "bag", entries))[0])


def test_a_namespace_is_put_before_relative_topics(tmp_path: Path) -> None:
    entries = tiny.recording_of(3)
    for entry in entries:
        entry.topic = f"robot1/{entry.topic}"
    bag = write(tmp_path / "bag", entries)
    assert_contents(sound(bag, replace(RECORDING, namespace="robot1"))[0], ticks=3)
    assert decode_bag(bag, RECORDING)[1].grade is Grade.UNUSABLE


def test_episodes_by_status_with_branches(tmp_path: Path) -> None:
    entries = tiny.recording_of(20)
    entries += tiny.episode_entries(6, 2, 7) + tiny.episode_entries(5, 11, 8)
    one, other = sound(write(tmp_path / "bag", entries), tiny.BY_STATUS)
    assert_contents(one, first=2, ticks=6)
    assert_contents(other, first=11, ticks=5)
    assert (one.name, other.name) == ("bag#0", "bag#1")
    assert one.span.task == "tiny" and one.span.success is True
    assert one.branches == (Branch(3, "left"),)
    assert other.branches == (Branch(2, "right"),)


@pytest.mark.parametrize("numbers", [(7, 8), (0, 0)])
def test_episodes_in_a_row_may_take_the_same_branch(tmp_path: Path, numbers: tuple[int, int]) -> None:
    entries = tiny.recording_of(20)
    for number, begin in zip(numbers, (2, 8), strict=True):
        for k in range(6):
            status = {"task": "tiny", "episode": number, "phase": 2 if k == 5 else 1, "branch": 0 if k >= 3 else -1}
            ns = stamp_of(begin + k)
            entries.append(tiny.Entry("episode", fields.STATUS, ns, make.episode_status(ns, **status)))
    recording = replace(tiny.BY_STATUS, branches=BranchConfig(topic="episode"))
    episodes, _ = decode_bag(write(tmp_path / "bag", entries), recording)
    assert [episode.branches for episode in episodes] == [(Branch(3, "0"),)] * 2


def test_numbers_of_episodes_may_begin_again_and_reports_come_late(tmp_path: Path) -> None:
    entries = tiny.recording_of(20)
    first, second = tiny.episode_entries(6, 2, 0), tiny.episode_entries(5, 11, 0)
    first[3].log_ns += 2 * PERIOD_NS
    (one, other), verdict = decode_bag(write(tmp_path / "bag", entries + first + second), tiny.BY_STATUS)
    (fault,) = verdict.faults
    assert "2 reports are stamped before" in fault.what or "1 reports are stamped before" in fault.what
    assert_contents(one, first=2, ticks=6)
    assert_contents(other, first=11, ticks=5)


@pytest.mark.parametrize(
    ("type_name", "values"),
    [
        (fields.BOOL, (False, True, False, True, False)),
        ("std_msgs/msg/Int32", (-1, 0, -1, 1, -1)),
        (fields.TEXT, ("", "pick", "", "place", "")),
    ],
)
def test_episodes_by_plain_values(tmp_path: Path, type_name: str, values: tuple[object, ...]) -> None:
    entries = tiny.recording_of(20)
    for tick, value in zip((0, 2, 8, 11, 16), values, strict=True):
        message = make.make(type_name, data=value)
        entries.append(Entry("running", type_name, stamp_of(tick) - 1_000_000, message))
    recording = replace(RECORDING, episodes=EpisodeRule("topic", "running"))
    one, other = sound(write(tmp_path / "bag", entries), recording)
    assert_contents(one, first=2, ticks=6)
    assert_contents(other, first=11, ticks=5)
    assert one.span.task == ("pick" if type_name == fields.TEXT else "")


def test_episodes_by_gaps(tmp_path: Path) -> None:
    entries = [entry for tick in (*range(5), *range(40, 46)) for entry in tiny.tick_entries(tick)]
    recording = replace(RECORDING, episodes=EpisodeRule("gap", gap_s=1.0))
    one, other = sound(write(tmp_path / "bag", entries), recording)
    assert [(e.span.index, e.ticks) for e in (one, other)] == [(0, 5), (1, 6)]
    assert_contents(one, ticks=5)
    assert_contents(other, first=40, ticks=6)


def test_a_simulator_that_began_again_begins_an_episode_where_gaps_cut(tmp_path: Path) -> None:
    again = tiny.recording_of(TICKS)
    for entry in again:
        entry.log_ns += TICKS * PERIOD_NS
    bag = write(tmp_path / "bag", [*tiny.recording_of(TICKS), *again])
    (episode,), verdict = decode_bag(bag, RECORDING)
    assert episode.ticks == TICKS and "(episodes.kind: gap)" in str(verdict)
    for part in sound(bag, replace(RECORDING, episodes=EpisodeRule("gap", gap_s=0.5))):
        assert_contents(part)


def test_an_image_without_a_stamp_cuts_no_episode(tmp_path: Path) -> None:
    entries = tiny.recording_of(TICKS)
    (lost,) = [e for e in entries if e.topic == "front/image" and e.log_ns == stamp_of(5) + 3_000_000]
    lost.message.header.stamp = make.header(0).stamp
    recording = replace(RECORDING, episodes=EpisodeRule("gap"))
    (episode,), verdict = decode_bag(write(tmp_path / "bag", entries), recording)
    assert episode.ticks == TICKS and "1 of 12 messages have a stamp of zero" in str(verdict)


def test_episodes_of_a_simulator_that_begins_again_for_each(tmp_path: Path) -> None:
    again = [*tiny.recording_of(TICKS), *tiny.episode_entries(TICKS, 0, 1)]
    for entry in again:
        entry.log_ns += TICKS * PERIOD_NS
    first = [*tiny.recording_of(TICKS), *tiny.episode_entries(TICKS, 0, 0)]
    episodes = sound(write(tmp_path / "bag", [*first, *again]), replace(tiny.BY_STATUS, branches=None))
    assert len(episodes) == 2
    for episode in episodes:
        assert_contents(episode)


def test_branches_from_a_sidecar_file(tmp_path: Path) -> None:
    bag = write(tmp_path / "bag", tiny.recording_of(TICKS))
    (bag / "branches.yaml").write_text(
        f"branches:\n- {{stamp_ns: {stamp_of(7) + 5}, label: right}}\n- {{tick: 3, label: left}}\n"
        "- {episode: 1, tick: 99, label: of another episode}\n"
    )
    recording = replace(RECORDING, branches=BranchConfig(file="branches.yaml"))
    (episode,) = sound(bag, recording)
    assert episode.branches == (Branch(3, "left"), Branch(7, "right"))


def test_an_annotation_that_comes_after_the_streams_ended_is_told(tmp_path: Path) -> None:
    said = [Entry("branch", fields.TEXT, stamp_of(tick), make.text(f"way {tick}")) for tick in (4, TICKS + 30)]
    bag = write(tmp_path / "bag", [*tiny.recording_of(TICKS), *said])
    (episode,), verdict = decode_bag(bag, replace(RECORDING, branches=BranchConfig(topic="branch")))
    assert [branch.label for branch in episode.branches] == ["way 4"] and verdict.grade is Grade.DEGRADED
    assert "topic /branch, episode 0: 1 of 2 annotations came before the first tick or after the last" in str(verdict)


def test_a_sidecar_file_beside_several_bags_annotates_none(tmp_path: Path) -> None:
    recording = replace(RECORDING, branches=BranchConfig(file="branches.yaml"))
    bag = storage_file(write(tmp_path / "run", tiny.recording_of(TICKS)))
    (tmp_path / "run" / "branches.yaml").write_text("branches: [{tick: 5, label: right}]")
    (episode,), verdict = decode_bag(bag, recording)
    assert episode.branches == (Branch(5, "right"),) and verdict.grade is Grade.OK
    key = cache_key(bag, recording, tmp_path / "cache")
    write(tmp_path / "else", tiny.recording_of(TICKS), "sqlite3")
    shutil.copy(storage_file(tmp_path / "else"), tmp_path / "run")
    (episode,), verdict = decode_bag(bag, recording)
    assert not episode.branches and "branches.yaml: lies beside else.db3 too" in str(verdict)
    assert cache_key(bag, recording, tmp_path / "cache") != key


def test_a_stream_that_ends_early_leaves_a_ragged_end_that_is_counted(tmp_path: Path) -> None:
    last = stamp_of(TICKS - 1)
    entries = [e for e in tiny.recording_of(TICKS) if not (e.topic == "odom" and e.log_ns > last)]
    bag = write(tmp_path / "bag", entries)
    with BagReader(bag) as reader:
        ticks = SpanTicks(reader, RECORDING, spans(reader, RECORDING)[0])
        assert len(list(ticks)) == TICKS - 1
        assert ticks.unfinished == 1


def test_two_files_of_a_split_bag_follow_one_another(tmp_path: Path) -> None:
    entries = tiny.recording_of(TICKS)
    half = len(entries) // 2
    folder = tmp_path / "bag"
    folder.mkdir()
    for part, chosen in enumerate((entries[:half], entries[half:])):
        bag = write(tmp_path / f"bag_{part}", chosen)
        (bag / f"bag_{part}.mcap").rename(folder / f"bag_{part}.mcap")
    episodes, verdict = decode_bag(folder, RECORDING)
    assert_contents(episodes[0])
    assert [fault.where for fault in verdict.faults] == ["metadata.yaml"]


def test_the_clock_may_run_faster_than_the_slowest_camera(tmp_path: Path) -> None:
    entries = []
    for tick in range(30):
        for entry in tiny.tick_entries(tick):
            if entry.topic != "hand/image" or tick % 2 == 0:
                entries.append(entry)
    (episode,) = sound(write(tmp_path / "bag", entries))
    held = (episode.input_stamps_ns[:, 1] - BEGIN_NS) // PERIOD_NS
    assert held.tolist() == [k - k % 2 for k in range(episode.ticks)]
    assert CameraConfig("x", "x", 1).transport == "raw"


@pytest.mark.parametrize(("late", "grade"), [(2, Grade.OK), (3, Grade.DEGRADED)])
def test_a_stream_that_begins_a_little_later_is_not_blamed(tmp_path: Path, late: int, grade: Grade) -> None:
    entries = [e for e in tiny.recording_of(TICKS) if not (e.topic == "odom" and e.log_ns < stamp_of(late))]
    (episode,), verdict = decode_bag(write(tmp_path / "bag", entries), RECORDING)
    assert verdict.grade is grade, str(verdict)
    assert episode.ticks == TICKS
    assert np.flatnonzero(~episode.usable).tolist() == list(range(late))
    assert "no sample on 'odom'" in episode.fault_text(0)
