"""Live over DDS equals replay at ticks faster than any camera, and at ticks slower than all of them."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fixtures import tiny_checkpoint

from studies.parity.study import compare_replays, record_live
from trace_memory_ros.bags.rates import stale_after_ms
from trace_memory_ros.observation.config import ObservationConfig, default_arm

CAMERA_HZ = (30.0, 15.0, 7.0)
JOINT_HZ = 500.0
PAUSE = {"burst_every_s": 1.5, "burst_s": 0.6}


def observation(tick_ms: int) -> ObservationConfig:
    """The two arms with cameras of unlike rates."""
    arm = default_arm()
    return replace(
        arm,
        cameras=tuple(
            replace(camera, stale_after_ms=stale_after_ms(1e3 / hz, tick_ms))
            for camera, hz in zip(arm.cameras, CAMERA_HZ, strict=True)
        ),
        tick_period_ms=tick_ms,
    )


@pytest.mark.timeout(400)
@pytest.mark.parametrize(("tick_ms", "ticks"), [(10, 300), (200, 20)])
def test_live_over_dds_equals_replay(tmp_path: Path, tick_ms: int, ticks: int) -> None:
    checkpoint = tmp_path / "checkpoint"
    tiny_checkpoint(checkpoint, observation=observation(tick_ms), policy=False)
    streams = {"camera_hz": CAMERA_HZ, "joint_hz": JOINT_HZ, **PAUSE}
    live = record_live(tmp_path, checkpoint, ticks, seed=4, disturbance=streams, tick_s=tick_ms / 1e3)
    # The last image of the slowest camera may lie a period and its dropouts before the end.
    assert live["conditions"] >= ticks - 700 / tick_ms
    figures, conditions = compare_replays(tmp_path / "bag", checkpoint)
    for how in ("stamps_alone", "as_recorded"):
        assert figures[how]["identical"], figures[how]
        assert figures[how]["max_abs"] == 0.0
        assert figures[how]["ticks_compared"] == len(conditions)
        assert figures[how]["statuses"]["OK"] > ticks / 3
    assert figures["stamps_alone"]["statuses"]["STALE"] > 0


@pytest.mark.timeout(400)
def test_fast_ticks_that_the_deadline_fired_are_followed(tmp_path: Path) -> None:
    checkpoint = tmp_path / "checkpoint"
    tiny_checkpoint(checkpoint, observation=observation(10), policy=False)
    late = {"late_every_s": 1.5, "late_s": 0.4, "burst_every_s": 0.0}
    streams = {"camera_hz": CAMERA_HZ, "joint_hz": JOINT_HZ, **late}
    live = record_live(tmp_path, checkpoint, 250, seed=5, deadline_ms=100, disturbance=streams, tick_s=0.01)
    assert live["messages"]["late"] > 0
    figures, conditions = compare_replays(tmp_path / "bag", checkpoint)
    assert figures["as_recorded"]["identical"], figures["as_recorded"]
    assert figures["as_recorded"]["max_abs"] == 0.0
    assert [condition.tick for condition in conditions] == list(range(len(conditions)))
    assert len(conditions) > 180
    assert figures["as_recorded"]["statuses"]["STALE"] > 10
