"""How far two clocks lie apart: by when messages were recorded, and by how a robot follows its commands."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.typing import NDArray

from trace_memory_ros.bags.time_base import ClockMarks, Motion, fallen_back, shift_by_motion

SECOND_NS = 10**9
BEGIN_NS = 1_700_000_000 * SECOND_NS
PERIOD_NS = 100_000_000
TICKS = 400

Doubles = NDArray[np.float64]


def wander(seed: int, joints: int = 3) -> tuple[Doubles, Doubles]:
    """Times in s, every 10 ms, and a path `(N, joints)` of a few rad that never repeats."""
    rng = np.random.default_rng(seed)
    times = np.arange(-20.0, 60.0, 0.01)
    path = np.zeros((len(times), joints))
    for joint in range(joints):
        for frequency in rng.uniform(0.05, 0.6, 5):
            path[:, joint] += rng.normal(0.0, 0.5) * np.sin(2 * np.pi * (frequency * times + rng.uniform()))
    return times, path


def motion(shift_s: float, seed: int = 0, delay_s: float = 0.0, noise: float = 0.0, standing: int = 0) -> Motion:
    """A robot that follows its commands, which are stamped `shift_s` too early, after `delay_s`, as a low pass does."""
    times, path = wander(seed)
    path[:, : min(standing, 3)] = 0.3
    rng = np.random.default_rng(seed + 100)
    ticks = np.arange(TICKS) * PERIOD_NS
    commanded = np.stack([np.interp(ticks / 1e9, times, joint) for joint in path.T], axis=1)
    followed = path.copy()
    if delay_s:
        share = 1 - np.exp(-0.01 / delay_s)
        for k in range(1, len(path)):
            followed[k] = followed[k - 1] + share * (path[k] - followed[k - 1])
    measured = np.stack([np.interp(ticks / 1e9, times, joint) for joint in followed.T], axis=1)
    measured += rng.normal(0.0, noise, measured.shape) if noise else 0.0
    return Motion(BEGIN_NS + ticks - round(shift_s * SECOND_NS), commanded, BEGIN_NS + ticks, measured)


@pytest.mark.parametrize("shift_s", [-3.1, -0.3, 0.0, 0.02, 0.7, 4.2])
@pytest.mark.parametrize("seed", range(3))
def test_a_known_shift_is_found(shift_s: float, seed: int) -> None:
    found = shift_by_motion(motion(shift_s, seed))
    assert found is not None and abs(found / SECOND_NS - shift_s) <= 0.02


@pytest.mark.parametrize("seed", range(5))
def test_noise_hides_little_of_it(seed: int) -> None:
    found = shift_by_motion(motion(1.3, seed, noise=0.05))
    assert found is not None and abs(found / SECOND_NS - 1.3) <= 0.05


@pytest.mark.parametrize("delay_s", [0.05, 0.2])
def test_a_robots_own_delay_is_part_of_it(delay_s: float) -> None:
    found = shift_by_motion(motion(-2.0, delay_s=delay_s))
    assert found is not None and abs(found / SECOND_NS - (delay_s - 2.0)) <= 0.05


def test_an_hour_is_found_near_what_is_expected() -> None:
    shifted = motion(3600.4)
    assert shift_by_motion(shifted) is None
    found = shift_by_motion(shifted, around_ns=3600 * SECOND_NS)
    assert found is not None and abs(found / SECOND_NS - 3600.4) <= 0.02


def test_a_long_episode_of_slow_motion_tells_it_too() -> None:
    steps = np.random.default_rng(0).normal(0.0, 0.01, (30_000, 7))
    times, path = BEGIN_NS + np.arange(30_000) * 20_000_000, steps.cumsum(axis=0)
    found = shift_by_motion(Motion(times, path, times + 300_000_000, path))
    assert found is not None and abs(found / SECOND_NS - 0.3) <= 0.02


def test_joints_that_stand_do_not_count() -> None:
    found = shift_by_motion(motion(0.7, standing=2, noise=0.002))
    assert found is not None and abs(found / SECOND_NS - 0.7) <= 0.03


@pytest.mark.parametrize("noise", [0.0, 0.003])
def test_a_standing_robot_tells_nothing(noise: float) -> None:
    assert shift_by_motion(motion(0.7, standing=3, noise=noise)) is None


def test_a_robot_that_does_something_else_tells_nothing() -> None:
    one, other = motion(0.0, seed=1), motion(0.0, seed=2)
    assert shift_by_motion(one._replace(measured=other.measured)) is None


def test_a_motion_that_repeats_or_goes_straight_on_tells_nothing() -> None:
    at = np.arange(TICKS) * 0.1
    stamps = BEGIN_NS + np.arange(TICKS) * PERIOD_NS
    for path in (np.sin(2 * np.pi * at / 2.0)[:, None], 0.1 * at[:, None]):
        assert shift_by_motion(Motion(stamps, path, stamps, path)) is None


def test_few_ticks_and_unknown_states_tell_nothing() -> None:
    whole = motion(0.0)
    assert shift_by_motion(Motion(*(part[:8] for part in whole))) is None
    unknown = np.full_like(whole.measured, np.nan)
    assert shift_by_motion(whole._replace(measured=unknown)) is None
    unknown[50:350] = whole.measured[50:350]
    assert shift_by_motion(whole._replace(measured=unknown)) is not None
    nothing = whole._replace(commanded_ns=whole.commanded_ns[:0], commanded=whole.commanded[:0])
    assert shift_by_motion(nothing) is None


def test_lags_are_medians_and_are_compared_beside_each_other() -> None:
    """A simulation at half speed: the lag grows by 0.5 s each second, and the commands begin late."""
    streams, commands = ClockMarks(), ClockMarks()
    for k in range(300):
        stamp_ns = BEGIN_NS + k * PERIOD_NS
        log_ns = BEGIN_NS + 2 * k * PERIOD_NS
        streams.note(log_ns + 5_000_000, stamp_ns)
        if k >= 200:
            commands.note(log_ns + 9_000_000, stamp_ns)
    assert streams.lag_ns is not None and commands.lag_ns is not None
    assert commands.lag_ns - streams.lag_ns > 5 * SECOND_NS
    assert commands.lag_beside(streams) == 4_000_000
    assert ClockMarks().lag_ns is None
    alone = ClockMarks()
    alone.note(BEGIN_NS + 7, BEGIN_NS)
    assert alone.lag_ns == 7 and alone.lag_beside(alone) == 0


@pytest.mark.parametrize(
    ("stamps_s", "again"),
    [
        ([], []),
        ([0, 1, 2, 3, 4], []),
        ([8, 9, 10, 3, 4, 9.5, 11], [3, 4, 5]),
        ([8, 9, 10, 3, 4, 11, 12, 5, 6, 13], [3, 4, 7, 8]),
        ([0, 1, 90, 2, 3, 4], []),
        ([50, 51, 2, 52, 53], []),
        ([2.0, 1.5, 3.0, 2.5, 4.0], []),
    ],
)
def test_stamps_that_a_clock_gives_again_are_told(stamps_s: list[float], again: list[int]) -> None:
    found = fallen_back(np.array([round(s * SECOND_NS) for s in stamps_s], dtype=np.int64))
    assert np.flatnonzero(found).tolist() == again


def test_times_that_no_clock_tells_say_nothing() -> None:
    marks = ClockMarks()
    for log_ns, stamp_ns in ((2**64 - 1, 5), (5, -(2**63)), (2**63, 2**63 - 1)):
        marks.note(log_ns, stamp_ns)
    assert marks.lag_ns is None
    marks.note(1_000, 400)
    assert marks.lag_ns == 600
