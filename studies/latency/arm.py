"""The demo's graph in real time: the simulated arm, its controllers, memory, policy and markers."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from studies.grid import Figures
from studies.latency.listener import Listener, latencies
from trace_memory_ros.arm.demo.cell import node_specs
from trace_memory_ros.arm.demo.plan import CellPlan, DemoOptions, realtime_cells
from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.nodes.episode_log import PlayedEpisode
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.processes import NodeGroup
from trace_memory_ros.nodes.scheduling import first_in_first_out
from trace_memory_ros.nodes.transport import private_environment

MEMORY = "gru"
READY_S = 120.0


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
    return {
        "ticks": sum(episode.ticks_expected for episode in played),
        "lost": sum(episode.ticks_expected - episode.ticks_published for episode in played),
        **latencies(heard),
    }


def _followed(plan: CellPlan, logs: Path) -> tuple[Listener, list[PlayedEpisode]]:
    """A cell's episodes, and what was heard of them."""
    with DomainClaim() as domain_id:
        environment = private_environment(domain_id)
        os.environ.update(environment)
        with NodeGroup(node_specs(plan, logs), logs, environment) as group, EpisodeClient(domain_id) as client:
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
