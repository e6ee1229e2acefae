"""Ticks depend on header stamps alone: not on how streams interleave, nor on what was refused."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from trace_memory_ros.observation.alignment import (
    MOST_UNANCHORED,
    AlignedTick,
    HoldAligner,
    Rupture,
    Verdict,
    horizon_of,
)
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.refusals import refusal

MS = 1_000_000
PERIOD_MS = 100
DEADLINE_MS = 200
NAMES = ("front", "wrist", "joints")


def make_config(stale_after_ms: float = 250, period_ms: int = PERIOD_MS) -> ObservationConfig:
    return ObservationConfig(
        cameras=tuple(CameraConfig(name, f"camera/{name}", stale_after_ms) for name in NAMES[:2]),
        streams=(SensorConfig("joints", "joint_states", stale_after_ms, select={"position": ("a", "b")}),),
        tick_period_ms=period_ms,
        deadline_ms=DEADLINE_MS,
    )


def held(ticks: list[AlignedTick]) -> list[tuple[int, dict[str, int]]]:
    return [(t.stamp_ns, {name: s.stamp_ns for name, s in t.samples.items()}) for t in ticks]


def expected_ticks(stamps: dict[str, list[int]]) -> list[tuple[int, dict[str, int]]]:
    """The tick rule, said directly."""
    ticks, stamp = [], stamps["front"][0]
    while all(stream and stream[-1] >= stamp for stream in stamps.values()):
        ticks.append(
            (stamp, {name: max(s for s in own if s <= stamp) for name, own in stamps.items() if own[0] <= stamp})
        )
        stamp += PERIOD_MS * MS
    return ticks


stamp_lists = st.lists(st.integers(0, 2000), min_size=1, max_size=30, unique=True).map(
    lambda ms: [value * MS for value in sorted(ms)]
)


@settings(max_examples=200, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, stamp_lists)), st.randoms(use_true_random=False))
def test_any_interleaving_gives_the_same_ticks(stamps: dict[str, list[int]], random: object) -> None:
    aligner = HoldAligner(make_config())
    queues = {name: list(own) for name, own in stamps.items()}
    ticks: list[AlignedTick] = []
    while any(queues.values()):
        name = random.choice([name for name, queue in queues.items() if queue])  # type: ignore[attr-defined]
        assert aligner.push(name, queues[name].pop(0), None, 0) is Verdict.ACCEPTED
        if random.random() < 0.7:  # type: ignore[attr-defined]
            ticks += aligner.poll(0)
    ticks += aligner.poll(0)
    assert held(ticks) == expected_ticks(stamps)
    assert [t.tick for t in ticks] == list(range(len(ticks)))


events = st.lists(
    st.tuples(
        st.sampled_from(NAMES),
        st.integers(-100, 400) | st.sampled_from([-(10**12), 10**12, 4000, 6000]),
        st.integers(0, 150),
        st.booleans(),
    ),
    max_size=120,
)


@settings(max_examples=200, deadline=None)
@given(events)
def test_any_input_gives_consecutive_bounded_ticks(pushed: list[tuple[str, int, int, bool]]) -> None:
    aligner = HoldAligner(make_config(), horizon_ticks=20)
    now, base, start, count = 0, 0, None, 0
    for name, step_ms, wait_ms, good in pushed:
        now += wait_ms * MS
        stamp = base + step_ms * MS
        verdict = aligner.push(name, stamp, None, now) if good else aligner.reject(name, stamp, "broken", now)
        if verdict is Verdict.ACCEPTED:
            base = max(base, stamp)
        ticks = aligner.poll(now)
        assert len(ticks) <= 21
        for tick in ticks:
            start = tick.stamp_ns if start is None else start
            assert tick.tick == count
            assert tick.stamp_ns == start + count * PERIOD_MS * MS
            assert all(s.stamp_ns <= tick.stamp_ns for s in tick.samples.values())
            assert set(tick.samples) | set(tick.faults) == set(NAMES)
            count += 1
    assert sum(c.received for c in aligner.counters.values()) == len(pushed)
    assert all(len(lane.pending) <= 256 for lane in aligner._lanes.values())


@settings(max_examples=50, deadline=None)
@given(st.fixed_dictionaries(dict.fromkeys(NAMES, stamp_lists)), st.randoms(use_true_random=False))
def test_duplicates_and_old_samples_change_nothing(stamps: dict[str, list[int]], random: object) -> None:
    aligner = HoldAligner(make_config(), fault_after=10**6)
    order = sorted((stamp, name) for name, own in stamps.items() for stamp in own)
    ticks: list[AlignedTick] = []
    seen: dict[str, list[int]] = {name: [] for name in NAMES}
    noise = 0
    for stamp, name in order:
        assert aligner.push(name, stamp, None, 0) is Verdict.ACCEPTED
        seen[name].append(stamp)
        again = random.choice(seen[name])  # type: ignore[attr-defined]
        expected = Verdict.DUPLICATE if again == stamp else Verdict.OUT_OF_ORDER
        assert aligner.push(name, again, "noise", 0) is expected
        noise += 1
        ticks += aligner.poll(0)
    assert held(ticks) == expected_ticks(stamps)
    assert all(s.value is None for t in ticks for s in t.samples.values())
    assert sum(c.out_of_order for c in aligner.counters.values()) == noise


def push_all(aligner: HoldAligner, stamp_ms: int, now_ms: int, names: tuple[str, ...] = NAMES) -> None:
    for name in names:
        aligner.push(name, stamp_ms * MS, None, now_ms * MS)


def test_deadline_fires_without_a_silent_camera() -> None:
    aligner = HoldAligner(make_config())
    push_all(aligner, 0, 0)
    assert [t.faults for t in aligner.poll(0)] == [{}]
    for k in range(1, 5):
        push_all(aligner, 100 * k, 100 * k, ("front", "joints"))
        assert aligner.poll((100 * k + 199) * MS)[1:] == []
    # Ticks 1 to 3 fired 200 ms after `front` got there; tick 4 waits until 600 ms.
    assert aligner.wake_ns == 600 * MS
    (last,) = aligner.poll(600 * MS)
    assert last.tick == 4
    assert list(last.faults) == ["wrist"]
    assert "older than 250 ms" in last.faults["wrist"]
    assert last.samples["wrist"].stamp_ns == 0
    assert aligner.counters["wrist"].stale == 2
    assert aligner.wake_ns is None


def test_late_samples_are_held_by_later_ticks() -> None:
    aligner = HoldAligner(make_config())
    push_all(aligner, 0, 0)
    push_all(aligner, 100, 100, ("front", "joints"))
    assert len(aligner.poll(300 * MS)) == 2
    assert aligner.push("wrist", 90 * MS, None, 310 * MS) is Verdict.LATE
    push_all(aligner, 200, 310, ("front", "joints"))
    (tick,) = aligner.poll(510 * MS)
    assert tick.samples["wrist"].stamp_ns == 90 * MS
    assert aligner.counters["wrist"].late == 1
    # So are those of a clock that lags, which no deadline would mend.
    assert "stamp all streams by one clock" in refusal("wrist", Verdict.LATE)


def test_a_stream_that_never_came_is_named() -> None:
    aligner = HoldAligner(make_config())
    push_all(aligner, 0, 0, ("front", "joints"))
    (tick,) = aligner.poll(200 * MS)
    assert "wrist" not in tick.samples
    assert "no sample on 'camera/wrist'" in tick.faults["wrist"]


def test_without_the_clock_camera_there_are_no_ticks_and_it_says_why() -> None:
    aligner = HoldAligner(make_config())
    for k in range(1000):
        push_all(aligner, k, k, ("wrist", "joints"))
    assert aligner.poll(10**12) == []
    assert "'camera/front'" in aligner.waiting_for
    aligner.push("front", 995 * MS, None, 0)
    assert aligner.waiting_for == ""
    (tick,) = aligner.poll(0)
    assert {s.stamp_ns for s in tick.samples.values()} == {995 * MS}


def test_unusable_content_keeps_its_place() -> None:
    aligner = HoldAligner(make_config())
    push_all(aligner, 0, 0)
    push_all(aligner, 100, 100, ("front", "joints"))
    aligner.reject("wrist", 100 * MS, "wrong encoding", 100 * MS)
    first, second = aligner.poll(100 * MS)
    assert first.faults == {}
    assert second.faults == {"wrist": "wrist: wrong encoding"}
    assert aligner.counters["wrist"].rejected == 1


@pytest.mark.parametrize("offset_ms", [-5000, 100_000])
def test_a_jump_of_all_stamps_is_counted_and_asks_for_reset(offset_ms: int) -> None:
    aligner = HoldAligner(make_config(), fault_after=5)
    for k in range(10):
        push_all(aligner, 5000 + 100 * k, 100 * k)
    assert len(aligner.poll(900 * MS)) == 10
    for k in range(5):
        assert aligner.stuck == {}
        push_all(aligner, 5000 + offset_ms + 100 * k, 1000 + 100 * k)
        assert aligner.poll(2**62) == []
    assert set(aligner.stuck) == set(NAMES)
    assert "reset the episode" in aligner.stuck["front"]
    counters = aligner.counters["front"]
    assert (counters.out_of_order, counters.rejected) == ((5, 0) if offset_ms < 0 else (0, 5))
    aligner.reset()
    push_all(aligner, 5000 + offset_ms, 3000)
    assert [t.tick for t in aligner.poll(3000 * MS)] == [0]
    assert aligner.stuck == {}


def refused_alike(aligner: HoldAligner, stamp_ms: int, now_ms: int, count: int = 10) -> Rupture | None:
    """Push samples of all streams that are stamped as far apart as they arrive, until a rupture is told."""
    for k in range(count):
        assert aligner.rupture is None
        push_all(aligner, stamp_ms + 100 * k, now_ms + 100 * k)
        aligner.poll(0)
    return aligner.rupture


@pytest.mark.parametrize("waited", [0, 1, 25, 60])
def test_a_sleep_of_this_process_is_a_silence_whatever_waited_meanwhile(waited: int) -> None:
    aligner = HoldAligner(make_config())
    for k in range(10):
        push_all(aligner, 100 * k, 100 * k)
    woken_ms = 900 + 100 * waited + 8_000
    for k in range(10, 10 + waited):  # one after the other, all at once
        push_all(aligner, 100 * k, woken_ms + k // 10)
        aligner.poll(0)
    rupture = refused_alike(aligner, woken_ms + 10, woken_ms + 20)
    assert rupture is not None and rupture.silence
    assert abs(rupture.jump_ns) <= 200 * MS


def test_what_waited_after_a_hole_is_a_silence_too() -> None:
    aligner = HoldAligner(make_config())
    for k in range(10):
        push_all(aligner, 100 * k, 100 * k)
    for k in range(100, 110):
        push_all(aligner, 100 * k, 50_000)
    assert aligner.rupture is not None and aligner.rupture.silence


@pytest.mark.parametrize("slept_ms", [0, 8_000, 40_000])
@pytest.mark.parametrize("jump_ms", [5_300, 3_600_000, -3_600_000, -60_000])
def test_a_clock_that_jumps_is_no_silence_even_while_this_process_sleeps(jump_ms: int, slept_ms: int) -> None:
    aligner = HoldAligner(make_config())
    for k in range(10):
        push_all(aligner, 100 * k, 100 * k)
    push_all(aligner, 1_000, 1_000 + slept_ms)  # waited in a queue
    aligner.poll(0)
    now_ms = 1_100 + slept_ms
    rupture = refused_alike(aligner, now_ms + jump_ms, now_ms)
    assert rupture is not None and not rupture.silence
    assert abs(rupture.jump_ns - jump_ms * MS) <= 200 * MS


@pytest.mark.parametrize("beyond_ms", [0, 1])
def test_a_silence_is_one_up_to_the_horizon_beyond_the_wall_clock(beyond_ms: int) -> None:
    aligner = HoldAligner(make_config())
    push_all(aligner, 0, 0)
    aligner.poll(0)
    rupture = refused_alike(aligner, 8_000 + 5_000 + beyond_ms, 8_000)
    assert rupture == Rupture((5_000 + beyond_ms) * MS, not beyond_ms)


@pytest.mark.parametrize("wall_per_stamp", [0.5, 1.5])
def test_a_simulator_s_pace_and_pause_are_not_taken_for_a_jump(wall_per_stamp: float) -> None:
    aligner = HoldAligner(make_config())
    now_ms = 0
    for k in range(100):
        now_ms += 60_000 if k == 20 else round(100 * wall_per_stamp)
        push_all(aligner, 100 * k, now_ms)
        aligner.poll(0)
    assert aligner.rupture is None
    for k in range(10):
        push_all(aligner, 9_900 + 6_000 + 100 * k, now_ms + round(wall_per_stamp * (6_000 + 100 * k)))
    assert aligner.rupture is not None and aligner.rupture.silence


def test_a_silence_within_the_horizon_gives_every_tick() -> None:
    aligner = HoldAligner(make_config())
    push_all(aligner, 0, 0)
    assert len(aligner.poll(0)) == 1
    push_all(aligner, 3000, 3000)
    ticks = aligner.poll(3000 * MS)
    assert [t.tick for t in ticks] == list(range(1, 31))
    assert [bool(t.faults) for t in ticks] == [False] * 2 + [True] * 27 + [False]


def test_other_clock_before_the_first_tick_is_not_a_runaway() -> None:
    aligner = HoldAligner(make_config(), fault_after=3)
    for k in range(5):
        aligner.push("joints", 10**18 + k, None, 0)
    push_all(aligner, 0, 0, ("front", "wrist"))
    assert len(aligner.poll(200 * MS)) == 1
    assert aligner.push("joints", 10**18 + 9, None, 0) is Verdict.AHEAD
    assert list(aligner.stuck) == ["joints"]
    assert aligner.poll(2**62) == []


def test_reset_can_refuse_the_past() -> None:
    aligner = HoldAligner(make_config())
    aligner.reset(from_ns=500 * MS)
    assert aligner.push("front", 499 * MS, None, 0) is Verdict.OUT_OF_ORDER
    assert aligner.push("front", 500 * MS, None, 0) is Verdict.ACCEPTED


def test_fast_streams_keep_one_sample_per_tick() -> None:
    aligner = HoldAligner(make_config())
    aligner.push("front", 0, None, 0)
    for stamp in np.arange(1, 4_000_000_000, 1_000_000).tolist():
        aligner.push("joints", stamp, stamp, 0)
    assert len(aligner._lanes["joints"].pending) == 40


@pytest.mark.parametrize(
    ("period_ms", "ticks"), [(10, 500), (20, 250), (33, 152), (50, 100), (100, 50), (200, 25), (2000, 5)]
)
def test_a_sample_may_lie_five_seconds_ahead_at_any_tick_rate(period_ms: int, ticks: int) -> None:
    config = make_config(period_ms=period_ms)
    assert horizon_of(config) == ticks
    aligner = HoldAligner(config)
    push_all(aligner, 0, 0)
    assert len(aligner.poll(0)) == 1
    horizon_ms = (ticks + 1) * period_ms
    assert aligner.push("joints", (horizon_ms + 1) * MS, None, 0) is Verdict.AHEAD
    assert aligner.push("joints", horizon_ms * MS, None, 0) is Verdict.ACCEPTED


def test_a_pause_of_the_cameras_at_100_hz_ends_in_one_burst() -> None:
    aligner = HoldAligner(make_config(period_ms=10))
    ticks: list[AlignedTick] = []
    for ms in range(2001):
        aligner.push("joints", ms * MS, None, 0)
        if ms % 50 == 0 and not 500 < ms < 1100:
            push_all(aligner, ms, 0, ("front", "wrist"))
        due = aligner.poll(0)
        assert len(due) <= (60 if ms == 1100 else 5)
        ticks += due
    assert [tick.stamp_ns for tick in ticks] == list(range(0, 2001 * MS, 10 * MS))
    assert all(tick.samples["joints"].stamp_ns == tick.stamp_ns for tick in ticks)
    assert [tick.tick for tick in ticks if tick.faults] == list(range(76, 110))
    assert aligner.counters["joints"].rejected == 0


def test_fast_joints_before_a_slow_first_image_are_not_forgotten() -> None:
    aligner = HoldAligner(make_config(period_ms=10))
    for ms in range(900):
        aligner.push("joints", ms * MS, None, 0)
    push_all(aligner, 400, 0, ("front", "wrist"))
    push_all(aligner, 900, 0, ("front", "wrist"))
    ticks = aligner.poll(0)
    assert [tick.samples["joints"].stamp_ns for tick in ticks] == [ms * MS for ms in range(400, 900, 10)]


def test_what_came_long_before_the_first_image_is_forgotten() -> None:
    aligner = HoldAligner(make_config(period_ms=10))
    for ms in range(20_000):
        aligner.push("joints", ms * MS, None, 0)
    assert len(aligner._lanes["joints"].pending) == 5001
    for ns in range(20_000):
        aligner.push("wrist", ns, None, 0)
    assert len(aligner._lanes["wrist"].pending) == MOST_UNANCHORED


def test_unknown_stream_is_named() -> None:
    with pytest.raises(ValueError, match="'nose' is not one of the config's: front, wrist, joints"):
        HoldAligner(make_config()).push("nose", 0, None, 0)
