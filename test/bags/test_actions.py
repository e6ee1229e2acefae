"""Which recorded command labels a tick."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from studies import tiny_bags as tiny
from studies.tiny_bags import PERIOD_NS, RECORDING, Entry, recording_of, stamp_of, targets, write
from trace_memory_ros.bags import fields
from trace_memory_ros.bags import messages as make
from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.episode import BagEpisode
from trace_memory_ros.bags.faults import Grade

TICKS = 12


def sound(bag: Path) -> list[BagEpisode]:
    """The episodes of a bag with which nothing is wrong."""
    episodes, verdict = decode_bag(bag, RECORDING)
    assert verdict.grade is Grade.OK, str(verdict)
    return episodes


def test_the_action_is_the_newest_command_stamped_at_or_before_the_tick(tmp_path: Path) -> None:
    entries = [entry for entry in tiny.recording_of(TICKS) if entry.topic != "command"]
    late = 90_000_000

    def command(stamp_ns: int, value: float, log_ns: int) -> Entry:
        message = make.trajectory(tiny.ACTIONS, [value] * 4, stamp_ns, PERIOD_NS)
        return Entry("command", fields.TRAJECTORY, log_ns, message)

    entries += [
        command(stamp_of(0), 1.0, stamp_of(0) + late),
        command(stamp_of(2) + 1, 3.0, stamp_of(2) + late),
        # Recorded after the next one, and stamped before it.
        command(stamp_of(5), 5.0, stamp_of(6) + late),
        command(stamp_of(6), 6.0, stamp_of(5) + late),
    ]
    (episode,) = sound(write(tmp_path / "bag", entries))
    assert episode.actions is not None
    assert episode.actions[:, 0].tolist() == [1, 1, 1, 3, 3, 5, 6, 6, 6, 6, 6, 6]


def test_a_command_without_a_stamp_ends_the_one_before_it(tmp_path: Path) -> None:
    """It answers nobody knows which tick; that the command before it holds on is not so."""
    entries = [entry for entry in tiny.recording_of(TICKS) if entry.topic != "command"]
    for tick, stamp_ns in ((0, stamp_of(0)), (3, stamp_of(3)), (6, 0), (9, stamp_of(9))):
        message = make.trajectory(tiny.ACTIONS, [float(tick)] * 4, stamp_ns, PERIOD_NS)
        entries.append(Entry("command", fields.TRAJECTORY, stamp_of(tick) + 50_000_000, message))
    (episode,), verdict = decode_bag(write(tmp_path / "bag", entries), RECORDING)
    assert episode.actions is not None
    np.testing.assert_array_equal(episode.actions[:, 0], [0, 0, 0, 3, 3, 3, *[np.nan] * 3, 9, 9, 9])
    assert [fault.what for fault in verdict.faults] == [
        "1 of 4 commands have a stamp of zero: they are not used",
        "3 of 12 ticks have no command that can be used",
    ]
    assert "stamp: received" in verdict.faults[0].remedy


@pytest.mark.parametrize(("back_s", "learned"), [(3.0, 0), (1.5, 15)])
def test_commands_of_a_clock_that_fell_back_label_no_earlier_tick(tmp_path: Path, back_s: float, learned: int) -> None:
    """As of a simulator that began again, or a computer whose clock was put back."""
    first, later = recording_of(30), recording_of(30)
    back = round(back_s * 1e9) - 30 * PERIOD_NS
    for entry in later:
        entry.log_ns += 30 * PERIOD_NS
        stamp_ns = entry.message.header.stamp.sec * 10**9 + entry.message.header.stamp.nanosec - back
        entry.message.header.stamp = make.header(stamp_ns).stamp
        if entry.topic == "command":
            entry.message.points[0].positions[:] = 9.0
    (episode, *_), verdict = decode_bag(write(tmp_path / "bag", [*first, *later]), RECORDING)
    assert episode.actions is not None and episode.ticks == 30 + learned
    expected = np.array([targets(tick) for tick in range(30)], dtype=np.float32)
    assert (episode.actions[:30] == expected).all() and (episode.actions[30:] == 9.0).all()
    left_out = min(30, round(back_s * 10))
    assert f"{left_out} of 60 commands are stamped" in str(verdict) and "(actions)" in str(verdict)


@pytest.mark.parametrize("strayed_s", [-20.0, 20.0])
def test_a_single_command_that_is_stamped_far_off_leaves_the_others(tmp_path: Path, strayed_s: float) -> None:
    entries = recording_of(30)
    (stray,) = [entry for entry in entries if entry.topic == "command" and entry.log_ns == stamp_of(12) + 9_000_000]
    stray.message.header.stamp = make.header(stamp_of(12) + round(strayed_s * 1e9)).stamp
    (episode,), _ = decode_bag(write(tmp_path / "bag", entries), RECORDING)
    expected = np.array([targets(11 if tick == 12 else tick) for tick in range(30)], dtype=np.float32)
    assert episode.actions is not None and (episode.actions == expected).all()


def test_a_trajectory_of_several_points_is_followed(tmp_path: Path) -> None:
    entries = [entry for entry in tiny.recording_of(6) if entry.topic != "command"]
    message = make.trajectory(tiny.ACTIONS, [1.0] * 4, stamp_of(0), PERIOD_NS)
    later = make.trajectory(tiny.ACTIONS, [2.0] * 4, stamp_of(0), 3 * PERIOD_NS)
    message.points = [*message.points, *later.points]
    entries.append(Entry("command", fields.TRAJECTORY, stamp_of(0), message))
    (episode,) = sound(write(tmp_path / "bag", entries))
    assert episode.actions is not None
    assert episode.actions[:, 0].tolist() == [1, 2, 2, 2, 2, 2]
