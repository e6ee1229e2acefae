"""The demo's graph in real time, and when the conditions of its observations were published and received."""

from __future__ import annotations

import os
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from studies.grid import Figures
from trace_memory_ros.arm.demo.cell import nodes
from trace_memory_ros.arm.demo.plan import CellPlan, DemoOptions, realtime_cells
from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.nodes.episode_log import PlayedEpisode
from trace_memory_ros.measure.statistics import percentiles
from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes import qos
from trace_memory_ros.nodes.conversion import stamp_ns
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.processes import NodeGroup, private_environment
from trace_memory_ros.nodes.scheduling import first_in_first_out
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, MS_NS, RECORD_TOPIC

MEMORY = "gru"
READY_S = 120.0


class Listener:
    """What one process hears of conditions and their diagnostics while `listening`.

    received_ms: stamp to this process's callback; published_ms: stamp to the time that DDS gave a condition where it
    was sent. Both are of the wall clock.
    """

    def __init__(self, client: EpisodeClient) -> None:
        self.listening = False
        self.received_ms: list[float] = []
        self.published_ms: list[float] = []
        self.stages_ms: dict[str, list[float]] = {}
        client.node.create_subscription(MemoryCondition, CONDITION_TOPIC, self._on_condition, qos.CONDITION)
        client.node.create_subscription(MemoryDiagnostics, RECORD_TOPIC, self._on_record, qos.CONDITION)

    def _on_condition(self, message: MemoryCondition, info: Any) -> None:
        if self.listening:
            stamp = stamp_ns(message.header.stamp)
            self.received_ms.append((time.time_ns() - stamp) / MS_NS)
            self.published_ms.append((info["source_timestamp"] - stamp) / MS_NS)

    def _on_record(self, message: MemoryDiagnostics) -> None:
        if self.listening:
            of_tick = {**dict(zip(message.stage_names, message.stage_ms, strict=True)), "all": message.latency_ms}
            for stage, took_ms in of_tick.items():
                self.stages_ms.setdefault(stage, []).append(float(took_ms))


def measure(priority: int, seconds: int, logs: Path) -> Figures:
    """Episodes of both tasks for about `seconds`, with robot, memory, policy and this process at real-time `priority`.

    Raises NodeFailed and EpisodeFailed, and PermissionError where the priority is not allowed.
    """
    plans = realtime_cells(DemoOptions(memories=(MEMORY,), realtime_s=float(seconds)))
    heard, played = [], []
    for plan in plans:
        listener, episodes = _followed(replace(plan, realtime_priority=priority), logs / plan.task)
        heard.append(listener)
        played += episodes
    stages = heard[0].stages_ms
    return {
        "ticks": sum(episode.ticks_expected for episode in played),
        "lost": sum(episode.ticks_expected - episode.ticks_published for episode in played),
        "received_ms": spread([ms for one in heard for ms in one.received_ms]),
        "published_ms": spread([ms for one in heard for ms in one.published_ms]),
        "stages_ms": {stage: spread([ms for one in heard for ms in one.stages_ms[stage]]) for stage in stages},
    }


def _followed(plan: CellPlan, logs: Path) -> tuple[Listener, list[PlayedEpisode]]:
    """A cell's episodes, and what was heard of them."""
    with DomainClaim() as domain_id:
        environment = private_environment(domain_id)
        os.environ.update(environment)
        with NodeGroup(nodes(plan, logs), logs, environment) as group, EpisodeClient(domain_id) as client:
            group.wait_ready(READY_S)
            listener = Listener(client)
            client.connect()
            if plan.realtime_priority:
                first_in_first_out(plan.realtime_priority)
            episodes = []
            for planned in plan.episodes:
                listener.listening = True
                episodes.append(client.run(planned.scenario, planned.mode.value, planned.timeout_s))
                listener.listening = False
            group.check_alive()
    return listener, episodes


def spread(values: list[float]) -> list[float]:
    """Median, 99th percentile and greatest."""
    return list(percentiles(values, (50, 99, 100)))
