"""What memory_node says about a tick beside the condition itself."""

from __future__ import annotations

from array import array
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from trace_memory_ros.msg import MemoryDiagnostics
from trace_memory_ros.nodes.conversion import floats_of, header
from trace_memory_ros.observation.alignment import StreamCounters, Verdict
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.condition import Condition, TickRecord

_REFUSALS = {
    Verdict.DUPLICATE: "a sample with the stamp of the one before was refused: stamp every sample when it is taken",
    Verdict.OUT_OF_ORDER: "a sample stamped before an earlier one was refused: one publisher per topic, rising stamps",
    Verdict.AHEAD: "a sample stamped far ahead of the other streams was refused: stamp all streams by one clock",
    Verdict.LATE: "a sample arrived after its tick had fired: raise deadline_ms, or speed up the stream",
}


@dataclass(frozen=True)
class TickReport:
    """Everything about one tick. stage_ms: stage -> ms; latency_ms: newest input's arrival -> condition published."""

    condition: Condition
    record: TickRecord
    observation: Observation
    stage_ms: Mapping[str, float]
    latency_ms: float


def refusal(stream: str, verdict: Verdict) -> str:
    """What is wrong with a sample that was refused or late, and the remedy; empty for an accepted one."""
    text = _REFUSALS.get(verdict)
    return f"{stream}: {text}" if text else ""


def diagnostics_message(
    report: TickReport, streams: Sequence[str], counters: Mapping[str, StreamCounters], faults: Sequence[str]
) -> MemoryDiagnostics:
    """The message of a tick; `streams` in configured order."""
    condition, record, held = report.condition, report.record, report.observation.input_stamps_ns
    ages_ms = [(condition.stamp_ns - held[name]) / 1e6 if name in held else np.nan for name in streams]
    counts = [counters[name] for name in streams]
    return MemoryDiagnostics(
        header=header(condition.stamp_ns),
        episode=condition.episode,
        tick=condition.tick,
        status=int(condition.status),
        mechanism=condition.mechanism,
        model_id=condition.model_id,
        slot_kind=record.slot_kind,
        route=floats_of(record.route),
        write_strength=floats_of(record.write_strength),
        read_weights=floats_of(condition.read_weights),
        slot_norms=floats_of(record.slot_norms),
        gate=float(record.gate),
        surprise=float(record.surprise),
        wrote=condition.wrote,
        due=record.due,
        path_length=float(record.path_length),
        write_entropy=float(record.write_entropy),
        slot_churn=float(record.slot_churn),
        slot_occupancy=float(record.slot_occupancy),
        write_count=record.write_count,
        due_count=record.due_count,
        write_rate_hz=float(record.write_rate_hz),
        state_bytes=record.state_bytes,
        stage_names=list(report.stage_ms),
        stage_ms=array("f", report.stage_ms.values()),
        latency_ms=float(report.latency_ms),
        input_names=list(streams),
        input_ages_ms=array("f", ages_ms),
        input_stale=[name in report.observation.faults for name in streams],
        input_received=[count.received for count in counts],
        input_rejected=[count.rejected for count in counts],
        input_out_of_order=[count.out_of_order for count in counts],
        ticks_stale=record.ticks_stale,
        ticks_invalid=record.ticks_invalid,
        faults=list(faults),
    )
