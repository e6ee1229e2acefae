"""What a tick publishes, by the field names of MemoryCondition.msg and MemoryDiagnostics.msg, without their classes.

The live node and replayed bags fill messages of different makers (rosidl, rosbags) from the same values.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.observation.alignment import StreamCounters
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.condition import Condition, ConditionStatus, TickRecord

SECOND_NS = 1_000_000_000
MS_NS = 1_000_000
CONDITION_TOPIC, RECORD_TOPIC = "memory/condition", "memory/diagnostics"
MARKERS_TOPIC, SEEN_TOPIC = "memory/markers", "memory/seen"
NO_SAMPLE = -1
Fields = dict[str, Any]


@dataclass(frozen=True)
class TickReport:
    """Everything about one tick. stage_ms: stage -> ms; latency_ms: newest input's arrival -> condition published."""

    condition: Condition
    record: TickRecord
    observation: Observation
    stage_ms: Mapping[str, float]
    latency_ms: float = float("nan")


def stamp_ns(stamp: Any) -> int:
    """Nanoseconds of a builtin_interfaces/Time of any maker."""
    return int(stamp.sec) * SECOND_NS + int(stamp.nanosec)


def condition_fields(condition: Condition, streams: Sequence[str]) -> Fields:
    """MemoryCondition's fields but the header; `streams` in configured order, without a held sample stamp -1."""
    count, width = condition.tokens.shape if condition.tokens.ndim == 2 else (0, 0)
    return {
        "instance": condition.instance,
        "episode": condition.episode,
        "tick": condition.tick,
        "restored": condition.restored,
        "gap_ticks": condition.gap_ticks,
        "status": int(condition.status),
        "reason": condition.reason,
        "mechanism": condition.mechanism,
        "model_id": condition.model_id,
        "token_count": count,
        "token_width": width,
        "tokens": _floats(condition.tokens),
        "vector": _floats(condition.vector),
        "read_weights": _floats(condition.read_weights),
        "address": _floats(condition.address),
        "wrote": condition.wrote,
        "input_names": list(streams),
        "input_stamps_ns": np.array([condition.input_stamps_ns.get(n, NO_SAMPLE) for n in streams], dtype=np.int64),
    }


def diagnostics_fields(
    report: TickReport, streams: Sequence[str], counters: Mapping[str, StreamCounters], faults: Sequence[str]
) -> Fields:
    """MemoryDiagnostics' fields but the header; `streams` in configured order."""
    condition, record = report.condition, report.record
    return {
        "instance": condition.instance,
        "episode": condition.episode,
        "tick": condition.tick,
        "status": int(condition.status),
        "mechanism": condition.mechanism,
        "model_id": condition.model_id,
        "slot_kind": record.slot_kind,
        "route": _floats(record.route),
        "write_strength": _floats(record.write_strength),
        "read_weights": _floats(condition.read_weights),
        "slot_norms": _floats(record.slot_norms),
        "gate": float(record.gate),
        "surprise": float(record.surprise),
        "wrote": condition.wrote,
        "due": record.due,
        "path_length": float(record.path_length),
        "write_entropy": float(record.write_entropy),
        "slot_churn": float(record.slot_churn),
        "slot_occupancy": float(record.slot_occupancy),
        "write_count": record.write_count,
        "due_count": record.due_count,
        "write_rate_hz": float(record.write_rate_hz),
        "state_bytes": record.state_bytes,
        "stage_names": list(report.stage_ms),
        "stage_ms": np.array(list(report.stage_ms.values()), dtype=np.float32),
        "latency_ms": float(report.latency_ms),
        "clipped_share": float(record.clipped_share),
        "clipped_state": list(record.clipped_state),
        "ticks_stale": record.ticks_stale,
        "ticks_invalid": record.ticks_invalid,
        "faults": list(faults),
        **_input_fields(report, streams, counters),
    }


def condition_of(message: Any) -> Condition:
    """The condition that a MemoryCondition of any maker carries. Raises ValueError where its numbers don't fit N, d.

    One recorded before conditions had an instance is of instance 0.
    """
    count, width = int(message.token_count), int(message.token_width)
    tokens = np.asarray(message.tokens, dtype=np.float32)
    if tokens.size != count * width:
        raise ValueError(
            f"condition of tick {message.tick} carries {tokens.size} token numbers for {count} tokens of width {width}"
        )
    return Condition(
        episode=int(message.episode),
        tick=int(message.tick),
        stamp_ns=stamp_ns(message.header.stamp),
        status=ConditionStatus(message.status),
        reason=message.reason,
        mechanism=message.mechanism,
        model_id=message.model_id,
        tokens=tokens.reshape(count, width),
        vector=np.asarray(message.vector, dtype=np.float32),
        read_weights=np.asarray(message.read_weights, dtype=np.float32),
        address=np.asarray(message.address, dtype=np.float32),
        wrote=bool(message.wrote),
        input_stamps_ns={
            name: int(held)
            for name, held in zip(message.input_names, message.input_stamps_ns, strict=True)
            if held != NO_SAMPLE
        },
        instance=int(getattr(message, "instance", 0)),
        restored=bool(getattr(message, "restored", False)),
        gap_ticks=int(getattr(message, "gap_ticks", 0)),
    )


def _input_fields(report: TickReport, streams: Sequence[str], counters: Mapping[str, StreamCounters]) -> Fields:
    stamp_ns, held = report.condition.stamp_ns, report.observation.input_stamps_ns
    counts = [counters[name] for name in streams]
    ages_ms = [(stamp_ns - held[name]) / 1e6 if name in held else np.nan for name in streams]
    return {
        "input_names": list(streams),
        "input_ages_ms": np.array(ages_ms, dtype=np.float32),
        "input_stale": np.array([name in report.observation.faults for name in streams], dtype=bool),
        "input_received": np.array([count.received for count in counts], dtype=np.uint64),
        "input_rejected": np.array([count.rejected for count in counts], dtype=np.uint64),
        "input_out_of_order": np.array([count.out_of_order for count in counts], dtype=np.uint64),
    }


def _floats(values: NDArray[Any]) -> NDArray[np.float32]:
    return np.ascontiguousarray(values, dtype=np.float32).reshape(-1)
