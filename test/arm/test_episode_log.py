"""What is kept of an episode under way, and when it counts as finished."""

from __future__ import annotations

import pytest

from trace_memory_ros.arm.nodes.episode_log import EpisodeLog
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.msg import EpisodeStatus, MemoryCondition
from trace_memory_ros.nodes.conversion import header

SCENARIO = Scenario("origin", seed=3, cue=1)


def status(phase: int, **changes: int) -> EpisodeStatus:
    told = {"task": "origin", "seed": 3, "cue": 1, "phase": phase, "branch": 1, "ticks_expected": 2}
    return EpisodeStatus(**{**told, **changes})


def test_a_status_left_of_an_earlier_episode_does_not_end_this_one() -> None:
    log = EpisodeLog()
    log.take_status(status(EpisodeStatus.FINISHED))
    assert not log.finished(SCENARIO)
    log.take_status(status(EpisodeStatus.RUNNING))
    assert not log.finished(SCENARIO)
    log.take_status(status(EpisodeStatus.FINISHED))
    assert log.finished(SCENARIO)
    assert not log.finished(Scenario("origin", seed=4, cue=1))


def test_the_result_tells_what_was_received() -> None:
    log = EpisodeLog()
    log.take_status(status(EpisodeStatus.FINISHED))
    for tick, condition_status, reason in ((0, MemoryCondition.OK, ""), (1, MemoryCondition.STALE, "overhead is old")):
        stamp_ns = tick * 100_000_000
        message = MemoryCondition(tick=tick, status=condition_status, reason=reason, mechanism="gru", model_id="m")
        message.header, message.wrote = header(stamp_ns), tick == 0
        for _ in range(tick + 1):
            log.take_condition(message, stamp_ns + 4_000_000)
    played = log.result()
    assert (played.task, played.branch, played.mechanism, played.model_id) == ("origin", 1, "gru", "m")
    assert (played.ticks_published, played.ticks_expected, played.writes) == (2, 2, 1)
    assert played.statuses == {MemoryCondition.OK: 1, MemoryCondition.STALE: 2}
    assert played.reasons == ("overhead is old",)
    assert played.latencies_ms == pytest.approx([4.0] * 3)
