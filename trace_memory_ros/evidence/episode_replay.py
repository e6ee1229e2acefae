"""A recorded episode through the runtime, tick by tick, as the live node would have done it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from trace_memory_ros.evidence.results import Timeline
from trace_memory_ros.measure.statistics import percentiles
from trace_memory_ros.observation.types import Observation
from trace_memory_ros.runtime.condition import Condition, ConditionStatus, TickRecord
from trace_memory_ros.runtime.memory_runtime import MemoryRuntime

PERCENTS = {"p50": 50.0, "p99": 99.0, "max": 100.0}


class Replayed(NamedTuple):
    """What the runtime did. usable `(T,)` bool; routes `(W, N)` of the writes; faults: distinct ones, in order."""

    timeline: Timeline
    usable: NDArray[np.bool_]
    routes: NDArray[np.float64]
    latency_ms: Mapping[str, Mapping[str, float]]
    faults: tuple[str, ...]


def replay(runtime: MemoryRuntime, observations: Iterable[Observation]) -> Replayed:
    """Reset `runtime` and give it an episode's observations, at least one."""
    runtime.reset()
    ticks = [(seen, *runtime.tick(seen)) for seen in observations]
    if not ticks:
        raise ValueError("an episode without a tick cannot be replayed: leave it out")
    conditions = [condition for _, condition, _ in ticks]
    usable = np.array([condition.status is ConditionStatus.OK for condition in conditions])
    writes = [(k, record) for k, (_, condition, record) in enumerate(ticks) if condition.wrote]
    slots = runtime.model.memory.slot_count
    routes = np.array([record.route for _, record in writes], dtype=np.float64).reshape(len(writes), slots)
    return Replayed(
        _timeline(conditions, writes, slots),
        usable,
        routes,
        _latency([record for _, condition, record in ticks if condition.status is ConditionStatus.OK]),
        tuple(dict.fromkeys(condition.reason for condition in conditions if condition.reason)),
    )


def _timeline(conditions: list[Condition], writes: list[tuple[int, TickRecord]], slots: int) -> Timeline:
    start_ns = conditions[0].stamp_ns
    nothing = (0.0,) * slots
    return Timeline(
        time_s=tuple((c.stamp_ns - start_ns) * 1e-9 for c in conditions),
        status=tuple(int(c.status) for c in conditions),
        read_weights=tuple(tuple(c.read_weights.tolist()) or nothing for c in conditions),
        write_ticks=tuple(k for k, _ in writes),
        route=tuple(tuple(record.route.tolist()) for _, record in writes),
        write_strength=tuple(tuple(record.write_strength.tolist()) for _, record in writes),
        gate=tuple(record.gate for _, record in writes),
        surprise=tuple(record.surprise for _, record in writes),
    )


def _latency(records: list[TickRecord]) -> dict[str, dict[str, float]]:
    stages = records[0].stage_ms if records else {}
    found = {stage: percentiles([r.stage_ms[stage] for r in records], list(PERCENTS.values())) for stage in stages}
    return {stage: dict(zip(PERCENTS, values, strict=True)) for stage, values in found.items()}
