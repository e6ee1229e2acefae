"""The simulator's clockwork, driven by hand: which samples come when, and what happens to late commands."""

import numpy as np
import pytest

from trace_memory_ros.arm.nodes.arm_sim_pace import LockStepPace, RealTimePace, grid, merged_grid

MS = 1_000_000
PERIOD = 100 * MS


class RecordingWorld:
    """A world that writes down what it is told and ends at a given simulated time."""

    def __init__(self, end_ns: int) -> None:
        self.end_ns = end_ns
        self.now_ns = 0
        self.events: list[tuple[str, int]] = []

    @property
    def finished(self) -> bool:
        return self.now_ns >= self.end_ns

    def advance_to(self, time_ns: int) -> None:
        assert time_ns >= self.now_ns
        self.now_ns = time_ns

    def apply(self, targets: np.ndarray) -> None:
        self.events.append(("apply", self.now_ns))

    def publish_images(self, time_ns: int) -> None:
        assert time_ns == self.now_ns
        self.events.append(("images", time_ns))

    def publish_joints(self, time_ns: int) -> None:
        assert time_ns == self.now_ns
        self.events.append(("joints", time_ns))

    def publish_status(self, time_ns: int) -> None:
        self.events.append(("status", time_ns))

    def times(self, kind: str) -> list[int]:
        return [time for name, time in self.events if name == kind]


def test_every_camera_grid_contains_the_control_ticks_from_any_first_frame() -> None:
    frames = {k * PERIOD + t for k in range(5) for t in grid(PERIOD, 30)}
    for first in grid(PERIOD, 30):
        assert first + PERIOD in frames
    assert grid(PERIOD, 30) == [0, 35 * MS, 65 * MS]
    assert merged_grid(PERIOD, 30, 50) == [t * MS for t in (0, 20, 35, 40, 60, 65, 80)]


def test_a_rate_that_misses_control_ticks_is_refused() -> None:
    with pytest.raises(ValueError, match="25 Hz"):
        grid(PERIOD, 25)


def test_lock_step_publishes_a_tick_per_command_and_none_before() -> None:
    world = RecordingWorld(3 * PERIOD)
    pace = LockStepPace(world, PERIOD, timeout_ns=1000 * MS)
    assert pace.poll(0) == 1000 * MS
    assert world.times("images") == [0]
    assert pace.poll(500 * MS) == 1000 * MS
    assert world.times("images") == [0]
    for k in range(2):
        assert pace.command(k * PERIOD, np.zeros(16), 600 * MS) is not None
    assert pace.command(2 * PERIOD, np.zeros(16), 700 * MS) is None
    assert world.times("images") == [0, PERIOD, 2 * PERIOD]
    assert world.times("apply") == [0, PERIOD, 2 * PERIOD]
    assert (pace.counts.ticks, pace.counts.commands, pace.counts.commands_missed) == (3, 3, 0)


def test_lock_step_goes_on_without_a_command_and_counts_it() -> None:
    world = RecordingWorld(3 * PERIOD)
    pace = LockStepPace(world, PERIOD, timeout_ns=10 * MS)
    pace.poll(0)
    assert pace.poll(11 * MS) == 21 * MS
    assert pace.counts.commands_missed == 1
    assert world.times("images") == [0, PERIOD]


def test_lock_step_ignores_the_answer_to_another_tick() -> None:
    world = RecordingWorld(3 * PERIOD)
    pace = LockStepPace(world, PERIOD, timeout_ns=10 * MS)
    pace.poll(0)
    pace.command(-PERIOD, np.zeros(16), 1)
    assert world.events == [("images", 0), ("joints", 0), ("status", 0)]
    assert pace.counts.commands_ignored == 1


def test_real_time_publishes_each_stream_at_its_rate_and_stops_at_a_tick() -> None:
    world = RecordingWorld(PERIOD + 50 * MS)
    pace = RealTimePace(world, PERIOD, 30, 50, start_ns=7)
    due: int | None = 7
    while due is not None:
        due = pace.poll(due)
    assert world.times("images") == [t * MS for t in (0, 35, 65, 100, 135, 165)]
    assert world.times("joints") == [t * MS for t in range(0, 200, 20)]
    assert world.times("status") == [0, PERIOD]
    assert pace.counts.overruns == 0


def test_real_time_does_nothing_early() -> None:
    world = RecordingWorld(PERIOD)
    pace = RealTimePace(world, PERIOD, 30, 50, start_ns=1000)
    pace.poll(1000)
    before = list(world.events)
    assert pace.poll(1000 + 10 * MS) == 1000 + 20 * MS
    assert world.events == before


def test_real_time_catches_up_in_order_and_counts_overruns() -> None:
    world = RecordingWorld(10 * PERIOD)
    pace = RealTimePace(world, PERIOD, 30, 50, start_ns=0)
    now = 250 * MS
    while (due := pace.poll(now)) is not None and due <= now:
        pass
    assert world.times("images") == sorted(world.times("images"))
    assert len(world.times("images")) == 8
    assert pace.counts.overruns > 0
    assert pace.counts.worst_lag_ms == 250


def test_real_time_applies_a_command_after_it_arrived_never_before() -> None:
    world = RecordingWorld(10 * PERIOD)
    pace = RealTimePace(world, PERIOD, 30, 50, start_ns=0)
    pace.poll(0)
    pace.command(0, np.zeros(16), 7 * MS)
    assert world.times("apply") == []
    pace.poll(20 * MS)
    assert world.times("apply") == [20 * MS]
