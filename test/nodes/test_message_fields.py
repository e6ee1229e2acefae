"""The live node's messages and those of replayed bags carry the same bytes."""

import numpy as np
import pytest
from rclpy.serialization import deserialize_message, serialize_message

from trace_memory_ros.bags import messages
from trace_memory_ros.bags.types import typestore
from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import conversion
from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.condition import Condition, ConditionStatus, TickRecord
from trace_memory_ros.runtime.message_fields import TickReport, condition_of

STREAMS = ("front", "hand")
STAMP_NS = 1_800_000_000_123_456_789
ROW = np.array([0.25, 0.75], dtype=np.float32)
CONDITION = Condition(
    2, 9, STAMP_NS, ConditionStatus.STALE, "why", "trace", "ab", np.arange(6, dtype=np.float32).reshape(2, 3), ROW, ROW,
    ROW[:0], True, {"front": STAMP_NS - 77}, 2**53 - 1, True, 12,
)  # fmt: skip
RECORD = TickRecord("slot", ROW, ROW, ROW, 1.0, 0.5, True, 2.0, 0.1, 0.2, 0.3, 4, 5, 6.0, 7, 8, 9, {"encode": 1.5})
SEEN = Observation(9, STAMP_NS, {}, None, {"front": STAMP_NS - 77}, {"hand": "silent"})


def test_conditions_carry_the_same() -> None:
    live = serialize_message(conversion.condition_message(CONDITION, STREAMS))
    assert_same(live, messages.condition_to_message(CONDITION, STREAMS), messages.CONDITION)


def test_diagnostics_carry_the_same() -> None:
    report = TickReport(CONDITION, RECORD, SEEN, RECORD.stage_ms, 3.5)
    counters = {"front": StreamCounters(5, 1, 2, 0, 0), "hand": StreamCounters()}
    live = serialize_message(conversion.diagnostics_message(report, STREAMS, counters, ["x"]))
    assert_same(live, messages.report_to_message(report, STREAMS, counters, ["x"]), messages.DIAGNOSTICS)


def assert_same(live: bytes, replayed: object, kind: str) -> None:
    """Padding aside: what the middleware leaves in it is not defined, so both are written by one serialiser."""
    written = typestore().serialize_cdr(typestore().deserialize_cdr(live, kind), kind)
    assert bytes(written) == bytes(typestore().serialize_cdr(replayed, kind))


def test_a_condition_comes_back_from_either() -> None:
    data = serialize_message(conversion.condition_message(CONDITION, STREAMS))
    for message in (
        deserialize_message(data, MemoryCondition),
        typestore().deserialize_cdr(data, messages.CONDITION),
    ):
        back = condition_of(message)
        assert (back.stamp_ns, back.status, back.input_stamps_ns) == (STAMP_NS, 1, CONDITION.input_stamps_ns)
        assert (back.instance, back.restored, back.gap_ticks) == (2**53 - 1, True, 12)
        np.testing.assert_array_equal(back.tokens, CONDITION.tokens)


def test_token_numbers_that_do_not_fit_are_refused() -> None:
    message = conversion.condition_message(CONDITION, STREAMS)
    message.token_width = 4
    with pytest.raises(ValueError, match="tick 9 carries 6 token numbers for 2 tokens of width 4"):
        condition_of(message)
