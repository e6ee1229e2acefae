"""What policy_node keeps of the streams, so that conditions which wait find the samples they name."""

from __future__ import annotations

import pytest

from trace_memory_ros.nodes.policy.sample_store import KEPT, MOST_KEPT, SampleStore
from trace_memory_ros.observation.alignment import Verdict
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


def push(kept: SampleStore, stamps_ns: range, arrival_ns: int = 0, offset: float = 0.0) -> list[Verdict]:
    """All that arrive at once; a joint's place is its stamp in seconds and `offset`."""
    return [
        kept.push("joints", stamp_ns, arrival_ns, Live(JointPositions(["a"], [stamp_ns * 1e-9 + offset])))
        for stamp_ns in stamps_ns
    ]


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


def test_the_first_of_two_samples_of_one_stamp_is_kept_unless_the_clock_began_again() -> None:
    kept = store()
    kept.push("front", 0, 0, RawImage(bytes(16 * 16 * 3), "rgb8", 16, 16, 48, 0))

    def place(stamp_ms: int) -> float:
        seen = kept.observation(0, stamp_ms * MS, {"front": 0, "joints": stamp_ms * MS})
        assert seen.state is not None
        return float(seen.state[-1])

    push(kept, range(0, 3_000 * MS, 10 * MS))
    assert push(kept, range(0, 3_000 * MS, 10 * MS), 900 * MS, offset=1.0) == [Verdict.DUPLICATE] * 300
    assert place(50) == pytest.approx(0.05)
    assert push(kept, range(0, 100 * MS, 10 * MS), 1_500 * MS, offset=2.0) == [Verdict.ACCEPTED] * 10
    assert place(50) == pytest.approx(2.05)
    assert kept.missing({"joints": 200 * MS}) == ["joints"], "a picture of the run before is not taken for the next"
    assert push(kept, range(50 * MS, 60 * MS, 10 * MS), 1_600 * MS) == [Verdict.DUPLICATE]
