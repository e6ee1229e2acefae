"""What policy_node keeps of the streams, so that conditions which wait find the samples they name."""

from __future__ import annotations

import pytest

from trace_memory_ros.nodes.policy.sample_store import KEPT, MOST_KEPT, SampleStore
from trace_memory_ros.observation.config import CameraConfig, ObservationConfig, SensorConfig
from trace_memory_ros.observation.content import JointPositions, Live, RawImage

MS = 1_000_000


def store(period_ms: int = 10) -> SampleStore:
    return SampleStore(
        ObservationConfig(
            cameras=(CameraConfig("front", "front", 250),),
            streams=(SensorConfig("joints", "joints", 250, select=("a",)),),
            image_px=16,
            thumbnail_px=8,
            tick_period_ms=period_ms,
        )
    )


def push(kept: SampleStore, stamps_ns: range) -> None:
    for stamp_ns in stamps_ns:
        kept.push("joints", stamp_ns, 0, Live(JointPositions(["a"], [stamp_ns * 1e-9])))


@pytest.mark.parametrize("period_ms", [10, 100])
def test_a_condition_finds_1_khz_joints_as_long_as_it_may_wait(period_ms: int) -> None:
    kept = store(period_ms)
    push(kept, range(0, 6_000 * MS, MS))
    assert kept.missing({"joints": 1_000 * MS}) == []
    assert kept.missing({"joints": 900 * MS}) == ["joints"]
    kept.push("front", 0, 0, RawImage(bytes(16 * 16 * 3), "rgb8", 16, 16, 48, 0))
    seen = kept.observation(0, 1_005 * MS, {"front": 0, "joints": 1_005 * MS})
    assert seen.state is not None and seen.state[-1] == pytest.approx(1.005)


def test_slow_streams_are_kept_by_number() -> None:
    kept = store()
    push(kept, range(0, 300_000 * MS, 1_000 * MS))
    assert kept.missing({"joints": (300 - KEPT) * 1_000 * MS}) == []
    assert kept.missing({"joints": (299 - KEPT) * 1_000 * MS}) == ["joints"]


def test_what_is_kept_is_bounded_and_gives_way_to_a_clock_that_began_again() -> None:
    kept = store()
    push(kept, range(20_000))
    assert kept.missing({"joints": 20_000 - MOST_KEPT}) == []
    assert kept.missing({"joints": 19_999 - MOST_KEPT}) == ["joints"]
    again = store()
    push(again, range(10**15, 10**15 + 5_000 * MS, MS))
    push(again, range(0, (KEPT + 1) * MS, MS))
    assert again.missing({"joints": 0}) == []
    assert again.missing({"joints": 10**15 + 4_999 * MS}) == ["joints"]
