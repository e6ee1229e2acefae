"""Ticks of 5 to 100 Hz from cameras and joints of unlike rates; and the rates that are proposed for a recording."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from rated_bags import MS, START_NS, RatedRobot, held_stamps

from trace_memory_ros.bags.build import decode_bag
from trace_memory_ros.bags.faults import Grade
from trace_memory_ros.bags.rates import deadline_ms, stale_after_ms, tick_period_ms

CAMERAS = {"front": 30.0, "side": 15.0, "top": 7.0}
SECONDS = 3.0


@pytest.mark.parametrize("tick_ms", [200, 100, 50, 20, 10])
@pytest.mark.parametrize(
    ("cameras", "joints_hz"),
    [(CAMERAS, 1000.0), (CAMERAS, 10.0), ({"top": 7.0, "front": 30.0}, 500.0), ({"front": 60.0}, 125.0)],
)
def test_every_tick_holds_the_newest_samples(
    tmp_path: Path, tick_ms: int, cameras: dict[str, float], joints_hz: float
) -> None:
    late_ms = dict(zip(cameras, (45.0, 80.0, 120.0), strict=False))
    robot = RatedRobot(tick_ms, cameras, joints_hz, late_ms=late_ms)
    (episode,), verdict = decode_bag(robot.write(tmp_path / "bag", SECONDS), robot.recording)
    assert verdict.grade is Grade.OK, str(verdict)
    clock = next(iter(cameras))
    expected = held_stamps({name: robot.stamps(name, SECONDS) for name in robot.rates}, clock, tick_ms * MS)
    assert len(expected) == episode.ticks > 0.9 * SECONDS * 1000 / tick_ms
    assert episode.usable.all()
    assert episode.stamps_ns.tolist() == [START_NS + k * tick_ms * MS for k in range(episode.ticks)]
    held = [dict(zip(episode.streams, row, strict=True)) for row in episode.input_stamps_ns.tolist()]
    assert held == expected
    for stamp, state in zip(episode.input_stamps_ns[:, -1], episode.state, strict=True):
        np.testing.assert_allclose(state, robot.posture((stamp - START_NS) * 1e-9, 0), atol=1e-12)
    assert episode.actions is not None and np.isfinite(episode.actions).all()


@pytest.mark.parametrize(("tick_ms", "stale_ms"), [(10, 100), (50, 100), (200, 200)])
def test_a_pause_of_the_clock_camera_costs_its_own_ticks_only(tmp_path: Path, tick_ms: int, stale_ms: int) -> None:
    robot = RatedRobot(tick_ms, {"front": 30.0}, 1000.0, pauses={"front": (1.0, 1.6)})
    assert robot.recording.observation.cameras[0].stale_after_ms == stale_ms
    (episode,), verdict = decode_bag(robot.write(tmp_path / "bag", SECONDS), robot.recording)
    last, first = 1_000_000_000, 1_600_000_000
    ages = episode.stamps_ns - episode.input_stamps_ns[:, 0]
    np.testing.assert_array_equal(episode.usable, ages <= stale_ms * MS)
    since = episode.stamps_ns - START_NS
    assert episode.usable[(since < last) | (since > first)].all()
    assert (~episode.usable).sum() == pytest.approx((600 - stale_ms) / tick_ms, abs=2)
    (fault,) = verdict.faults
    assert fault.what.startswith(
        f"{(~episode.usable).sum()} of {episode.ticks} ticks cannot be used: front: the newest"
    )


def test_streams_may_begin_and_end_a_little_apart_but_not_much(tmp_path: Path) -> None:
    short = RatedRobot(10, {"front": 30.0, "side": 30.0}, 1000.0, pauses={"side": (-1.0, 0.2), "front": (2.9, 9.0)})
    (episode,), verdict = decode_bag(short.write(tmp_path / "short", SECONDS), short.recording)
    assert verdict.grade is Grade.OK, str(verdict)
    assert episode.unfinished == pytest.approx(20, abs=5)
    begun = -(-(short.stamps("side", SECONDS)[0] - START_NS) // (10 * MS))
    assert np.flatnonzero(~episode.usable).tolist() == list(range(begun))
    long = RatedRobot(10, {"front": 30.0, "side": 30.0}, 1000.0, pauses={"side": (-1.0, 0.5), "front": (2.5, 9.0)})
    (episode,), verdict = decode_bag(long.write(tmp_path / "long", SECONDS), long.recording)
    assert verdict.grade is Grade.DEGRADED
    assert {fault.what.partition(": ")[2][:20] for fault in verdict.faults} == {
        "side: no sample on '",
        "front: the newest sa",
    }


def test_the_end_is_not_waited_for_by_a_slow_stream(tmp_path: Path) -> None:
    robot = RatedRobot(10, {"front": 30.0, "side": 0.8}, 1000.0)
    (episode,), verdict = decode_bag(robot.write(tmp_path / "bag", SECONDS), robot.recording)
    assert verdict.grade is Grade.OK, str(verdict)
    last, held = robot.stamps("front", SECONDS)[-1], robot.stamps("side", SECONDS)[-1]
    assert last - held > 400 * MS
    assert last - 10 * MS < episode.stamps_ns[-1] <= last and episode.usable[-1]
    assert episode.input_stamps_ns[-1].tolist()[:2] == [last, held] or episode.stamps_ns[-1] < last


@pytest.mark.parametrize("tick_ms", [10, 20])
def test_a_camera_that_the_recorder_got_seconds_late_is_waited_for(tmp_path: Path, tick_ms: int) -> None:
    robot = RatedRobot(tick_ms, {"front": 30.0, "top": 7.0}, 200.0, late_ms={"top": 2500.0})
    (episode,), verdict = decode_bag(robot.write(tmp_path / "bag", SECONDS), robot.recording)
    assert verdict.grade is Grade.OK, str(verdict)
    assert episode.usable.all()


@pytest.mark.parametrize(
    ("cameras", "joints", "commands", "expected"),
    [
        ([33.3], [2.0], [50.0], 50),  # commands of 20 Hz
        ([33.3, 143.0], [20.0], [20.1], 20),  # slow cameras do not slow the ticks
        ([33.3], [10.0], [1.0], 10),  # not faster than 100 Hz
        ([33.3], [20.0], [2.0], 20),  # not faster than the state
        ([33.3], [20.0, 100.0], [20.0, 400.0], 20),  # a slow gripper is held
        ([33.3], [10.0], [1000.0], 200),  # not slower than 5 Hz
        ([33.3], [10.0], [30.3], 30),
        ([33.3], [10.0], [33.4], 33),
        ([33.3], [10.0], [96.0], 100),
        ([], [10.0], [50.0], 50),
        ([33.3, 66.7], [10.0], [], 33),  # the fastest camera
        ([16.7], [50.0], [], 50),  # the fastest joints, where these are slower
        ([100.0], [], [], 100),
        ([], [], [], 100),
        ([0.0], [0.0], [0.0], 100),
    ],
)
def test_ticks_are_proposed_as_commands_came(
    cameras: list[float], joints: list[float], commands: list[float], expected: int
) -> None:
    assert tick_period_ms(cameras, joints, commands) == expected


@pytest.mark.parametrize(
    ("periods", "expected"),
    [([100.0], 200), ([33.3, 2.0], 140), ([10.0, 143.0], 290), ([1.0], 110), ([20.0, 3000.0], 1000), ([], 100)],
)
def test_a_tick_waits_for_the_slowest_stream(periods: list[float], expected: int) -> None:
    assert deadline_ms(periods) == expected


@pytest.mark.parametrize(
    ("period", "tick_ms", "longest", "expected"),
    [
        (33.3, 50, 0.0, 100),
        (143.0, 20, 0.0, 360),
        (100.0, 100, 0.0, 250),
        (1.0, 200, 0.0, 200),
        (100.0, 100, 300.0, 450),
        (100.0, 100, 9000.0, 600),
    ],
)
def test_a_sample_may_be_as_old_as_one_lost_makes_it(
    period: float, tick_ms: int, longest: float, expected: int
) -> None:
    assert stale_after_ms(period, tick_ms, longest) == expected
