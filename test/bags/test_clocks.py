"""Commands that count from another clock than the streams label nothing, and the verdict says what to do about it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pytest

from studies import tiny_bags as tiny
from studies.tiny_bags import PERIOD_NS, RECORDING, Entry, stamp_of, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.faults import BagVerdict, Grade
from trace_memory_ros.bags.reader import BagReader
from trace_memory_ros.bags.recording import EpisodeRule, RecordingConfig
from trace_memory_ros.learning.bags.data import from_episodes
from trace_memory_ros.learning.bags.training import read_bags
from trace_memory_ros.runtime.actions import ActionConfig, ActionPart

TICKS = 120
SECOND_NS = 10**9
COMMAND_NS = 9_000_000
"""When after its tick's stamp a command is recorded; cameras are 3 ms after theirs, joints and wheels 1 ms."""

WHEEL = ActionPart("wheel/commands", "std_msgs/msg/Float64MultiArray", {"wheel": 0}, stamp="received")


def path(tick: int) -> np.ndarray:
    """Joint angles of a tick, rad; they never repeat."""
    at = tick * PERIOD_NS / SECOND_NS
    return np.array([np.sin(0.9 * at), np.cos(0.53 * at) + 0.2 * np.sin(2.3 * at), np.sin(0.31 * at * at / 4)])


def targets(tick: int) -> np.ndarray:
    """The command that answers a tick."""
    return np.array([*path(tick + 1), float(tick % 2)])


@dataclass(frozen=True)
class Bag:
    """A recording. behind_ns: the recorder's clock against that of the robot. command_stamp: from the true one."""

    behind_ns: int = 0
    command_stamp: Callable[[int], int] = lambda ns: ns
    standing: bool = False
    wheel: bool = False
    ticks: int = TICKS

    def write(self, folder: Path) -> Path:
        entries = []
        for tick in range(self.ticks):
            ns = stamp_of(tick)
            still, answer = (path(0), np.array([*path(0), 0.0])) if self.standing else (path(tick), targets(tick))
            entries += [entry for entry in tiny.tick_entries(tick) if entry.topic not in ("joint_states", "command")]
            joints = make.joint_state(tiny.JOINTS, still, ns)
            command = make.trajectory(tiny.ACTIONS, answer, self.command_stamp(ns), PERIOD_NS)
            entries.append(Entry("joint_states", fields.JOINTS, ns + 1_000_000, joints))
            entries.append(Entry("command", fields.TRAJECTORY, ns + COMMAND_NS, command))
            if self.wheel:
                (message,) = make.commands(ActionConfig((WHEEL,)), [float(tick)], ns, PERIOD_NS)
                entries.append(Entry(WHEEL.topic, WHEEL.type, ns + COMMAND_NS, message))
        for entry in entries:
            entry.log_ns -= self.behind_ns
        return write(folder, entries)


def recording(commands: str = "header", streams: str = "header", log_offset_ms: int = 0) -> RecordingConfig:
    """How commands and streams are stamped."""
    seen = RECORDING.observation
    assert RECORDING.actions is not None
    return replace(
        RECORDING,
        observation=replace(
            seen,
            cameras=tuple(replace(camera, stamp=streams) for camera in seen.cameras),
            streams=tuple(replace(stream, stamp=streams) for stream in seen.streams),
        ),
        actions=ActionConfig(tuple(replace(part, stamp=commands) for part in RECORDING.actions.parts)),
        log_offset_ms=log_offset_ms,
    )


def decoded(folder: Path, bag: Bag, config: RecordingConfig) -> tuple[BagEpisode, BagVerdict]:
    (episode,), verdict = decode_bag(bag.write(folder / "bag"), config)
    assert episode.usable.all()
    return episode, verdict


def assert_taught(episode: BagEpisode, verdict: BagVerdict, late: int = 0) -> None:
    """Every label is the command that answers its tick, or the one `late` ticks before, and nothing is wrong."""
    assert episode.actions is not None
    for tick in range(late, episode.ticks):
        assert np.array_equal(episode.actions[tick], targets(tick - late).astype(np.float32))
    assert np.isnan(episode.actions[:late]).all()
    assert verdict.grade is Grade.OK, str(verdict)
    assert len(from_episodes([episode], 100).episodes) == 1


def assert_refused(episode: BagEpisode, verdict: BagVerdict, what: str, remedy: str) -> None:
    """No tick has a label; the verdict and `train` say why."""
    assert episode.actions is not None and np.isnan(episode.actions).all()
    assert verdict.grade is Grade.DEGRADED
    (fault,) = (fault for fault in verdict.faults if what in fault.what)
    assert remedy in fault.remedy and "topic /command (actions), episode 0" in fault.where, str(verdict)
    with pytest.raises(ValueError, match="nothing to learn from") as refusal:
        from_episodes([episode], 100)
    assert what in str(refusal.value) and remedy in str(refusal.value)


BEHIND = {"20 ms": 20_000_000, "0.3 s": 300_000_000, "5 s": 5 * SECOND_NS, "an hour": 3600 * SECOND_NS}
TEXTS = {"0.3 s": "0.299 s behind", "5 s": "5.0 s behind", "an hour": "3600.0 s behind"}


@pytest.mark.parametrize("behind", BEHIND)
def test_a_recorders_clock_does_not_matter_where_headers_have_stamps(tmp_path: Path, behind: str) -> None:
    assert_taught(*decoded(tmp_path, Bag(BEHIND[behind]), recording()))


@pytest.mark.parametrize("behind", BEHIND)
def test_a_recorders_clock_does_not_matter_where_all_is_received(tmp_path: Path, behind: str) -> None:
    """A command is recorded after the last sample that its tick holds."""
    assert_taught(*decoded(tmp_path, Bag(BEHIND[behind]), recording("received", "received")), late=1)


@pytest.mark.parametrize("behind", ["0.3 s", "5 s", "an hour"])
def test_received_commands_beside_stamped_streams_need_the_recorders_clock(tmp_path: Path, behind: str) -> None:
    bag = Bag(BEHIND[behind])
    offset_ms = round(-BEHIND[behind] / 1e6) + 1
    episode, verdict = decoded(tmp_path, bag, recording("received"))
    assert_refused(episode, verdict, f"the recorder's clock is {TEXTS[behind]}", f"log_offset_ms: {offset_ms}")
    (fault,) = verdict.faults
    found = BEHIND[behind] / SECOND_NS
    assert "fit the motion of shoulder, elbow, wrist best" in fault.what
    moved = float(fault.what.partition("(moved by ")[2].partition(" s")[0])
    assert abs(moved - found - PERIOD_NS / SECOND_NS) <= 0.02  # the robot is where it was told a tick ago
    assert "set stamp: received for all streams and parts" in fault.remedy
    (episode,), verdict = decode_bag(tmp_path / "bag", recording("received", log_offset_ms=offset_ms))
    assert_taught(episode, verdict, late=1)


def test_a_recorder_that_is_20_ms_behind_is_fine(tmp_path: Path) -> None:
    """A received command then seems to come 11 ms before its tick."""
    assert_taught(*decoded(tmp_path, Bag(20_000_000), recording("received")))


@pytest.mark.parametrize("behind", ["0.3 s", "5 s"])
def test_stamped_commands_beside_received_streams_need_it_too(tmp_path: Path, behind: str) -> None:
    bag, offset_ms = Bag(BEHIND[behind]), round((COMMAND_NS - BEHIND[behind]) / 1e6)
    episode, verdict = decoded(tmp_path, bag, recording(streams="received"))
    assert_refused(episode, verdict, "commands count from their header stamps", f"log_offset_ms: {offset_ms}")
    (episode,), verdict = decode_bag(tmp_path / "bag", recording(streams="received", log_offset_ms=offset_ms))
    assert_taught(episode, verdict, late=1)


def test_commands_without_stamps_are_not_used(tmp_path: Path) -> None:
    episode, verdict = decoded(tmp_path, Bag(5 * SECOND_NS, lambda _: 0), recording())
    assert_refused(episode, verdict, f"{TICKS} of {TICKS} commands have a stamp of zero", "set stamp: received")
    (episode,), verdict = decode_bag(tmp_path / "bag", recording("received"))
    assert_refused(episode, verdict, "the recorder's clock is 5.0 s behind", "log_offset_ms: -4999")
    (episode,), verdict = decode_bag(tmp_path / "bag", recording("received", log_offset_ms=-4999))
    assert_taught(episode, verdict, late=1)


def test_of_commands_half_of_which_have_no_stamp_the_others_are_used(tmp_path: Path) -> None:
    episode, verdict = decoded(tmp_path, Bag(0, lambda ns: ns if ns < stamp_of(TICKS // 2) else 0), recording())
    assert episode.actions is not None and verdict.grade is Grade.DEGRADED
    assert [fault.what for fault in verdict.faults] == [
        f"{TICKS // 2} of {TICKS} commands have a stamp of zero: they are not used",
        f"{TICKS // 2} of {TICKS} ticks have no command that can be used",
    ]
    known = np.isfinite(episode.actions).all(axis=1)
    assert np.array_equal(np.flatnonzero(known), np.arange(TICKS // 2))
    (demo,) = from_episodes([episode], 100).episodes
    assert demo.ticks == TICKS // 2


@pytest.mark.parametrize("off_s", [-7200.0, -2.5, 2.5, 7200.0])
def test_commands_stamped_by_another_machines_clock_are_not_used(tmp_path: Path, off_s: float) -> None:
    off_ns = round(off_s * SECOND_NS)
    episode, verdict = decoded(tmp_path, Bag(0, lambda ns: ns + off_ns), recording())
    side = "ahead of" if off_s > 0 else "behind"
    assert_refused(episode, verdict, f"s {side} joints, as by another clock", "or for this part, with log_offset_ms: 1")
    (fault,) = verdict.faults
    moved = float(fault.what.partition("(moved by ")[2].partition(" s")[0])
    assert abs(moved + off_s - PERIOD_NS / SECOND_NS) <= 0.02
    (episode,), verdict = decode_bag(tmp_path / "bag", recording("received", log_offset_ms=1))
    assert_taught(episode, verdict, late=1)


def test_a_robot_that_only_stands_cannot_tell_by_how_much(tmp_path: Path) -> None:
    episode, verdict = decoded(tmp_path, Bag(5 * SECOND_NS, standing=True), recording("received"))
    assert_refused(episode, verdict, "(the motion does not tell by how much)", "log_offset_ms: -4999")


def test_only_the_part_in_doubt_loses_its_labels(tmp_path: Path) -> None:
    sound = recording()
    assert sound.actions is not None
    both = replace(sound, actions=ActionConfig((*sound.actions.parts, WHEEL)))
    episode, verdict = decoded(tmp_path, Bag(5 * SECOND_NS, wheel=True), both)
    assert episode.actions is not None and episode.action_names == (*tiny.ACTIONS, "wheel")
    assert np.isnan(episode.actions[:, 4]).all()
    assert np.array_equal(episode.actions[7, :4], targets(7).astype(np.float32))
    (fault,) = verdict.faults
    assert "topic /wheel/commands (actions)" in fault.where and "motion" not in fault.what
    with pytest.raises(ValueError, match="the recorder's clock is 5.0 s behind"):
        from_episodes([episode], 100)
    (episode,), _ = decode_bag(tmp_path / "bag", replace(both, log_offset_ms=-4999))
    assert episode.actions is not None and episode.actions[7].tolist()[4] == 6.0


def test_a_received_stream_beside_stamped_ones_needs_the_recorders_clock(tmp_path: Path) -> None:
    config = recording()
    joints, odom = config.observation.streams
    mixed = replace(config.observation, streams=(joints, replace(odom, stamp="received")))
    bag = Bag(300_000_000).write(tmp_path / "bag")
    (episode,), verdict = decode_bag(bag, replace(config, observation=replace(mixed, deadline_ms=500)))
    assert episode.actions is not None and np.isnan(episode.actions).all()
    (fault,) = (fault for fault in verdict.faults if "no command labels a tick" in fault.what)
    assert "topic /odom (odom), episode 0" in fault.where and "log_offset_ms: -299" in fault.remedy
    with pytest.raises(ValueError, match="is stamped when received"):
        from_episodes([episode], 100)
    (episode,), verdict = decode_bag(bag, replace(config, observation=mixed, log_offset_ms=-299))
    assert episode.actions is not None
    assert np.array_equal(episode.actions[9], targets(9).astype(np.float32))


def test_a_slow_simulations_stamps_are_of_one_clock(tmp_path: Path) -> None:
    """Log times run four times as fast as stamps, and the first command comes late."""
    slow = []
    for tick in range(TICKS):
        for entry in tiny.tick_entries(tick):
            if entry.topic != "command" or tick > TICKS // 2:
                entry.log_ns += 3 * tick * PERIOD_NS
                slow.append(entry)
    (episode,), verdict = decode_bag(write(tmp_path / "bag", slow), RECORDING)
    assert episode.actions is not None
    assert [fault.what for fault in verdict.faults] == [
        f"{TICKS // 2 + 1} of {TICKS} ticks have no command that can be used"
    ]
    assert np.array_equal(episode.actions[-1], tiny.targets(TICKS - 1).astype(np.float32))


def test_an_episode_cut_by_stamps_tells_of_commands_by_another_clock(tmp_path: Path) -> None:
    """They all lie before the episode's begin, which must not read as if there were none."""
    entries = tiny.recording_of(40) + tiny.episode_entries(20, 10, 0)
    for entry in entries:
        if entry.topic == "command":
            entry.message.header = make.header(entry.log_ns - 3600 * SECOND_NS)
    config = replace(RECORDING, episodes=EpisodeRule("topic", "episode"))
    (episode,), verdict = decode_bag(write(tmp_path / "bag", entries), config)
    assert episode.actions is not None and np.isnan(episode.actions).all()
    (fault,) = verdict.faults
    assert "3600.0 s behind joints" in fault.what


def test_an_episode_cut_by_stamps_tells_of_a_recorder_behind(tmp_path: Path) -> None:
    entries = tiny.recording_of(40) + tiny.episode_entries(20, 10, 0)
    for entry in entries:
        entry.log_ns -= 5 * SECOND_NS
    config = replace(recording("received"), episodes=EpisodeRule("topic", "episode"))
    (episode,), verdict = decode_bag(write(tmp_path / "bag", entries), config)
    assert episode.actions is not None and np.isnan(episode.actions).all()
    (fault,) = verdict.faults
    assert "the recorder's clock is 5.0 s behind" in fault.what
    (episode,), _ = decode_bag(tmp_path / "bag", replace(config, log_offset_ms=-4999))
    assert episode.actions is not None and np.isfinite(episode.actions[1:]).all()


def test_training_says_so_and_goes_on_with_the_other_bags(tmp_path: Path) -> None:
    good, bad = Bag().write(tmp_path / "good"), Bag(0, lambda ns: ns - 60 * SECOND_NS).write(tmp_path / "bad")
    told: list[BagVerdict] = []
    for _ in range(2):  # decoded, then out of the cache
        data, failed = read_bags(
            [good, bad], recording(), tmp_path / "cache", report=lambda *args: told.append(args[2])
        )
        assert [demo.name for demo in data.episodes] == ["good"] and failed == []
        ((name, reason),) = data.left_out
        assert name == "bad" and "60.0 s behind joints" in reason and "stamp all by one clock" in reason
    assert sum("60.0 s behind joints" in str(verdict) for verdict in told) == 2
    with pytest.raises(ValueError, match="60.0 s behind joints"):
        read_bags([bad], recording(), tmp_path / "cache")


def test_received_commands_that_begin_late_are_said(tmp_path: Path) -> None:
    with BagReader(Bag().write(tmp_path / "whole")) as reader:
        rows = [Entry(raw.topic, raw.type_name, raw.log_ns, bytes(raw.data)) for raw in reader.messages()]
    begin = min(row.log_ns for row in rows if row.topic == "/command")
    late = [row for row in rows if row.topic != "/command" or row.log_ns > begin + SECOND_NS]
    (episode,), verdict = decode_bag(write(tmp_path / "late", late), recording("received", "received"))
    assert episode.actions is not None
    known = np.isfinite(episode.actions).all(axis=1)
    assert not known[:11].any() and known[13:].all()
    assert "ticks have no command that can be used" in str(verdict)
