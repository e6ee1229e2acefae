"""Streams and conditions are never called good while something is wrong with them."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from trace_memory_ros.nodes.memory.findings import Level
from trace_memory_ros.nodes.memory.range_watch import RECENT_TICKS, RangeWatch
from trace_memory_ros.nodes.memory.stream_watch import StreamWatch
from trace_memory_ros.nodes.memory.tick_watch import TickWatch
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.observation.config import default_arm
from trace_memory_ros.runtime.condition import Condition, ConditionStatus, TickRecord
from trace_memory_ros.runtime.message_fields import MS_NS

CONFIG = default_arm()
CAMERA = CONFIG.cameras[0]
TIMEOUT_NS = 3_000 * MS_NS
NONE = np.zeros(0, np.float32)
GOOD = Condition(1, 3, 0, ConditionStatus.OK, "", "trace", "m", NONE, NONE, NONE, NONE, False, {})


def watch() -> StreamWatch:
    one = StreamWatch(CAMERA, CONFIG.period_ns, TIMEOUT_NS)
    one.begin(0)
    return one


def judged(one: StreamWatch, now_ms: int, publishers: int = 1) -> tuple[Level, str]:
    finding = one.finding(now_ms * MS_NS, StreamCounters(), publishers)
    return finding.level, finding.message


def test_a_stream_that_never_comes_is_an_error_after_its_time() -> None:
    one = watch()
    assert judged(one, 100)[0] == Level.WARN
    level, message = judged(one, 3_001, publishers=0)
    assert level == Level.ERROR
    assert CAMERA.topic in message
    assert "start its driver" in message
    # A publisher of another type, as after a driver's update, is heard as little as one of another quality of service.
    assert f"sends {CAMERA.message_type}, and with a quality of service" in judged(one, 3_002)[1]


def test_a_steady_stream_has_its_rate_and_a_silent_one_is_an_error() -> None:
    one = watch()
    for ms in range(0, 20_001, 33):
        one.came(ms * MS_NS, "")
        if not ms % 990:
            level, message = judged(one, ms)
            assert level == Level.OK
    assert message == "30.3 Hz"
    assert judged(one, 20_300)[0] == Level.OK
    level, message = judged(one, 20_400)
    assert (level, "for over 250 ms" in message) == (Level.ERROR, True)


def test_refused_samples_are_a_warning_and_in_a_row_an_error() -> None:
    one = watch()
    one.came(1 * MS_NS, "")
    one.came(2 * MS_NS, "stamped twice")
    one.came(3 * MS_NS, "")
    assert judged(one, 4) == (Level.WARN, "stamped twice")
    for ms in (5, 6, 7):
        one.came(ms * MS_NS, "stamped zero")
    assert judged(one, 8) == (Level.ERROR, "stamped zero")
    one.came(9 * MS_NS, "")
    one.came(4_000 * MS_NS, "")
    assert judged(one, 4_001)[0] == Level.OK


def test_messages_that_the_middleware_lost_are_counted_and_named_for_a_while() -> None:
    one = watch()
    one.came(1 * MS_NS, "")
    one.lost(2 * MS_NS, 3)
    level, message = judged(one, 3)
    assert (level, "3 messages" in message, CAMERA.topic in message) == (Level.WARN, True, True)
    assert one.finding(4 * MS_NS, StreamCounters(), 1).values["lost"] == "3"
    one.came(4_000 * MS_NS, "")
    assert judged(one, 4_001)[0] == Level.OK


def test_a_stream_of_which_all_was_lost_asks_for_room() -> None:
    one = watch()
    one.lost(1 * MS_NS, 30)
    level, message = judged(one, 2)
    assert level == Level.WARN and "30 messages" in message and "none came" in message
    assert "start its driver with FASTDDS_BUILTIN_TRANSPORTS=" in message
    assert judged(one, 3_001)[0] == Level.ERROR


def test_a_stream_is_called_by_the_topic_that_it_comes_on() -> None:
    one = StreamWatch(CAMERA, CONFIG.period_ns, TIMEOUT_NS, "/cell/front")
    one.begin(0)
    assert "'/cell/front'" in judged(one, 3_001)[1]


def test_what_a_tick_could_not_use_is_an_error_of_its_stream() -> None:
    one = watch()
    one.came(1 * MS_NS, "")
    one.held(12.0, "image encoding '8SC3'")
    assert judged(one, 2) == (Level.ERROR, "image encoding '8SC3'")
    one.held(12.0, "")
    assert judged(one, 3)[0] == Level.OK


def ticks() -> TickWatch:
    one = TickWatch(CONFIG, TIMEOUT_NS)
    one.begin(0)
    return one


def test_conditions_are_good_only_while_they_come_and_are() -> None:
    one = ticks()
    assert one.finding(MS_NS, "", "no image").level == Level.WARN
    assert one.finding(TIMEOUT_NS, "", "no image").message == "no control tick yet: no image"
    assert one.finding(TIMEOUT_NS, "", "no image").level == Level.ERROR
    one.ticked(GOOD, 4_000 * MS_NS, 12.5, 30.0)
    finding = one.finding(4_100 * MS_NS, "", "")
    assert finding.level == Level.OK
    assert finding.values["latency (ms) p50 / p99 / max"] == "12.5 / 12.5 / 12.5"
    assert one.finding(4_100 * MS_NS, "clock jumped", "").level == Level.ERROR
    assert one.finding(6_000 * MS_NS, "", "").message == "no control tick comes any more: see the streams"
    stale = replace(GOOD, status=ConditionStatus.STALE, reason="front is old")
    one.ticked(stale, 6_000 * MS_NS, 12.5, 30.0)
    assert one.finding(6_001 * MS_NS, "", "").message == "condition STALE: front is old"


def test_two_memories_on_one_topic_are_never_good() -> None:
    one = ticks()
    one.ticked(GOOD, MS_NS, 12.5, 30.0)
    finding = one.finding(2 * MS_NS, "", "", ["/memory_node", "/memory_node"])
    assert (finding.level, finding.message[:29]) == (Level.WARN, "2 publishers of memory/condit")
    assert one.finding(2 * MS_NS, "", "", ["/memory_node"]).level == Level.OK


def test_inputs_that_wait_longer_than_a_tick_are_overload() -> None:
    one = ticks()
    one.ticked(GOOD, MS_NS, 12.5, 30.0)
    for k in range(100):
        one.came(2.0 if k % 20 else 400.0)
    assert one.finding(2 * MS_NS, "", "").level == Level.OK
    for _ in range(20):
        one.came(150.0)
    finding = one.finding(2 * MS_NS, "", "")
    one.ticked(replace(GOOD, status=ConditionStatus.STALE, reason="front is old"), 2 * MS_NS, 12.5, 30.0)
    both = one.finding(2 * MS_NS, "", "").message
    assert both.startswith("overload: ")
    assert both.endswith("front is old")
    assert (finding.level, finding.message[:40]) == (Level.WARN, "overload: inputs wait for more than 100 ")


def at(*names: str) -> TickRecord:
    return TickRecord("slot", *(NONE,) * 3, *(0.0,) * 2, True, *(0.0,) * 4, 0, 0, 0.0, 0, 0, 0, {}, 0.25, names)


def test_what_is_beyond_training_for_a_tick_or_two_is_no_warning() -> None:
    one = RangeWatch()
    assert one.finding().level == Level.OK
    for tick in range(RECENT_TICKS):
        one.ticked(at("elbow") if tick < RECENT_TICKS // 2 - 1 else at())
    assert one.finding().level == Level.OK
    assert list(one.finding().values.values()) == ["25.0 / 25.0 / 25.0"]


def test_what_stays_beyond_training_is_named_with_a_remedy_until_it_comes_back() -> None:
    one = RangeWatch()
    for _ in range(RECENT_TICKS):
        one.ticked(at("elbow", "wrist"))
    assert one.finding().level == Level.WARN
    assert "elbow, wrist; compare units" in one.finding().message
    for _ in range(RECENT_TICKS // 2 + 1):
        one.ticked(at("wrist"))
    assert "elbow" not in one.finding().message and "wrist" in one.finding().message
    one.begin()
    assert one.finding().level == Level.OK
