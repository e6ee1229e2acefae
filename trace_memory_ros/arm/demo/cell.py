"""One cell of the demo: its five processes, its episodes, and what came of them."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from threading import Event

from trace_memory_ros.arm.controllers.simulated import write_robot
from trace_memory_ros.arm.demo.observer import TOPICS, EpisodeObserver
from trace_memory_ros.arm.demo.plan import CellPlan, PlannedEpisode
from trace_memory_ros.arm.demo.results import EpisodeResult, IllustratedEpisode, Mode
from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.arm.nodes.episode_log import PlayedEpisode
from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes.bag_writer import BagWriter
from trace_memory_ros.nodes.launch_plan import DemoCell, demo_nodes
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeFailed, NodeGroup, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

WATCH_PERIOD_S = 0.25
STALL_S = 60.0
START_TIMEOUT_S = 120.0
LOG_LINES = 12
OF_THE_ARM = ("arm_sim_node", "controller_node")


class DemoFailed(RuntimeError):
    """The demo broke; the message names cell, node or episode, and ends with what the nodes logged last."""


class Stopped(Exception):
    """The demo was told to stop; nothing is wrong with this cell."""


@dataclass(frozen=True)
class CellResult:
    """What one cell gave. latency_ms: of its real-time conditions."""

    episodes: tuple[EpisodeResult, ...]
    recordings: tuple[IllustratedEpisode, ...]
    latency_ms: tuple[float, ...]
    model_id: str


@dataclass(frozen=True)
class Surroundings:
    """Where a cell runs: a ROS domain of its own, folders for logs and bag, and the demo's word to stop."""

    domain_id: int
    logs: Path
    bag: Path
    stop: Event


OnEpisode = Callable[[EpisodeResult], None]


def run_cell(plan: CellPlan, where: Surroundings, on_episode: OnEpisode) -> CellResult:
    """Start the processes, run every episode, stop the processes, whatever happens.

    Raises `DemoFailed` when a process died, did not get ready, or an episode could not be run; `Stopped` when told to.
    """
    try:
        with NodeGroup(node_specs(plan, where.logs), where.logs, private_environment(where.domain_id)) as group:
            try:
                _wait_ready(group, where.stop)
                with EpisodeClient(domain_id=where.domain_id, name=f"demo_{plan.name}") as client:
                    return _Runner(plan, where, group, client).run(on_episode)
            except EpisodeFailed as error:
                group.check_alive()
                raise DemoFailed(f"{plan.name}: {error}\n{_last_words(group)}") from error
    except NodeFailed as error:
        raise DemoFailed(f"{plan.name}: {error}") from error


def node_specs(plan: CellPlan, folder: Path) -> list[NodeSpec]:
    """The demo's graph for a cell, with the robot's file in `folder`."""
    robot = write_robot(folder / "robot.yaml")
    lockstep = all(episode.mode is Mode.LOCKSTEP for episode in plan.episodes)
    nodes = demo_nodes(
        DemoCell(
            plan.task,
            str(plan.checkpoint.resolve()),
            lockstep,
            robot,
            realtime_priority=plan.realtime_priority,
        )
    )
    return [NodeSpec(node.name, node.parameters, package=_package(node.name)) for node in nodes]


def _package(node: str) -> str:
    return "trace_memory_ros.arm.nodes" if node in OF_THE_ARM else "trace_memory_ros.nodes"


def _wait_ready(group: NodeGroup, stop: Event) -> None:
    deadline = time.monotonic() + START_TIMEOUT_S
    waiting = list(group.processes.values())
    while waiting:
        if stop.is_set():
            raise Stopped
        group.check_alive()
        try:
            waiting[0].wait_ready(0.2)
            waiting.pop(0)
        except NodeFailed:
            if time.monotonic() > deadline or not waiting[0].running:
                raise


def _last_words(group: NodeGroup) -> str:
    parts = []
    for name, process in group.processes.items():
        tail = "\n".join(f"  {line}" for line in process.log.splitlines()[-LOG_LINES:])
        parts.append(f"last lines of {name} ({process.log_path}):\n{tail}")
    return "\n".join(parts)


class _Runner:
    """Runs a cell's episodes on running nodes."""

    def __init__(self, plan: CellPlan, where: Surroundings, group: NodeGroup, client: EpisodeClient) -> None:
        self._plan = plan
        self._where = where
        self._group = group
        self._client = client
        self._observer = EpisodeObserver(client)
        self._begun_at: float | None = None
        client.node.create_timer(WATCH_PERIOD_S, self._watch)

    def run(self, on_episode: OnEpisode) -> CellResult:
        episodes: list[EpisodeResult] = []
        recordings: list[IllustratedEpisode] = []
        latency_ms: list[float] = []
        model_id = ""
        self._client.connect()
        for planned in self._plan.episodes:
            begun = time.monotonic()
            outcome = self._run_one(planned)
            self._observer.wait_records(outcome.ticks_published)
            result = self._result(planned, outcome, time.monotonic() - begun)
            episodes.append(result)
            model_id = outcome.model_id
            if planned.mode is Mode.REALTIME:
                latency_ms += outcome.latencies_ms
            if planned.record:
                recordings.append(IllustratedEpisode(result, self._observer.timeline(), self._observer.frames()))
            on_episode(result)
        return CellResult(tuple(episodes), tuple(recordings), tuple(latency_ms), model_id)

    def _run_one(self, planned: PlannedEpisode) -> PlayedEpisode:
        if not planned.bag:
            return self._play(planned, None)
        with BagWriter(self._where.bag, TOPICS) as bag:
            outcome = self._play(planned, bag)
            self._observer.release_bag(outcome.ticks_published)
            return outcome

    def _play(self, planned: PlannedEpisode, bag: BagWriter | None) -> PlayedEpisode:
        self._observer.begin(planned.record, bag)
        self._begun_at = time.monotonic()
        try:
            return self._client.run(planned.scenario, planned.mode.value, planned.timeout_s)
        finally:
            self._begun_at = None

    def _watch(self) -> None:
        """Look after the processes while messages are waited for; what is raised here ends the waiting."""
        if self._where.stop.is_set():
            raise Stopped
        self._group.check_alive()
        if self._begun_at is None:
            return
        silent_s = time.monotonic() - max(self._begun_at, self._observer.status_at)
        if silent_s > STALL_S:
            raise EpisodeFailed(f"arm_sim_node has published no episode status for {silent_s:.0f} s")

    def _result(self, planned: PlannedEpisode, outcome: PlayedEpisode, wall_s: float) -> EpisodeResult:
        records = self._observer.records
        return EpisodeResult(
            task=outcome.task,
            memory=self._plan.memory,
            seed=outcome.seed,
            cue=outcome.cue,
            branch=outcome.branch,
            success=outcome.success,
            progress=outcome.progress,
            duration_s=outcome.elapsed_s,
            pause_s=planned.scenario.extra_pause_s,
            mode=planned.mode,
            ticks_expected=outcome.ticks_expected,
            ticks_published=outcome.ticks_published,
            ticks_stale=sum(n for status, n in outcome.statuses.items() if status != MemoryCondition.OK),
            write_count=outcome.writes,
            write_rate_hz=float(records[-1].write_rate_hz) if records else 0.0,
            wall_s=wall_s,
        )
