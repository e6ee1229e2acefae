"""What one process hears of conditions and of the ticks behind them."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from studies.grid import Figures
from trace_memory_ros.measure.statistics import percentiles
from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, MS_NS, RECORD_TOPIC


class Listener:
    """Keeps what comes while `listening`.

    received_ms: stamp of an observation to this process's callback with its condition; published_ms: to the time that
    DDS gave the condition where it was sent. Both are of the wall clock. stages_ms: of each tick, by stage, and `all`
    from the arrival of its newest sample to its condition. newest: record of the newest tick, at any time.
    """

    def __init__(self, client: NodeClient) -> None:
        self.listening = False
        self.received_ms: list[float] = []
        self.published_ms: list[float] = []
        self.statuses: list[int] = []
        self.stages_ms: dict[str, list[float]] = {}
        self.newest: MemoryDiagnostics | None = None
        client.node.create_subscription(MemoryCondition, CONDITION_TOPIC, self._on_condition, qos.CONDITION)
        client.node.create_subscription(MemoryDiagnostics, RECORD_TOPIC, self._on_record, qos.CONDITION)

    def _on_condition(self, message: MemoryCondition, info: Any) -> None:
        if self.listening:
            stamp = stamp_ns(message.header.stamp)
            self.received_ms.append((time.time_ns() - stamp) / MS_NS)
            self.published_ms.append((info["source_timestamp"] - stamp) / MS_NS)
            self.statuses.append(int(message.status))

    def _on_record(self, message: MemoryDiagnostics) -> None:
        self.newest = message
        if self.listening:
            of_tick = {**dict(zip(message.stage_names, message.stage_ms, strict=True)), "all": message.latency_ms}
            for stage, took_ms in of_tick.items():
                self.stages_ms.setdefault(stage, []).append(float(took_ms))


def latencies(heard: Sequence[Listener]) -> Figures:
    """Median, 99th percentile and greatest of all that several heard."""
    return {
        "received_ms": spread([ms for one in heard for ms in one.received_ms]),
        "published_ms": spread([ms for one in heard for ms in one.published_ms]),
        "stages_ms": {
            stage: spread([ms for one in heard for ms in one.stages_ms[stage]]) for stage in heard[0].stages_ms
        },
    }


def spread(values: Sequence[float]) -> list[float]:
    """Median, 99th percentile and greatest."""
    return list(percentiles(values, (50, 99, 100)))
