"""The demo: held-out closed-loop episodes over real topics, with and without memory."""

from __future__ import annotations

import os
import time
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import ExitStack
from queue import SimpleQueue
from threading import Event
from typing import Protocol

from trace_memory_ros.arm.demo.cell import CellResult, DemoFailed, Stopped, Surroundings, run_cell
from trace_memory_ros.arm.demo.plan import CellPlan, DemoOptions, lockstep_cells, realtime_cells
from trace_memory_ros.arm.demo.results import DemoResult, EpisodeResult
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.transport import private_environment

__all__ = ["DemoFailed", "DemoOptions", "DemoProgress", "run_demo"]

POLL_S = 0.5


class DemoProgress(Protocol):
    """Who wants to know how far the demo is. Called from several threads."""

    def begin(self, cells: list[CellPlan]) -> None:
        """The cells that will run."""

    def episode(self, cell: CellPlan, result: EpisodeResult) -> None:
        """One episode of a cell is done."""


def run_demo(options: DemoOptions, progress: DemoProgress) -> DemoResult:
    """Run all cells, lock-step ones side by side, then the real-time ones alone on the machine.

    Raises `DemoFailed` when something broke, `ValueError` for a missing checkpoint. Whatever ends it, also a
    KeyboardInterrupt, every process that was started is stopped first.
    """
    begun = time.monotonic()
    lockstep, realtime = lockstep_cells(options), realtime_cells(options)
    progress.begin([*lockstep, *realtime])
    # What the nodes get by their environment this process needs too, as it talks to them.
    os.environ.update({k: v for k, v in private_environment(0).items() if k != "ROS_DOMAIN_ID"})
    done = _run_cells(lockstep, options, progress, options.parallel)
    done += _run_cells(realtime, options, progress, 1)
    bag = options.out / "bag"
    return DemoResult(
        tasks=options.tasks,
        memories=options.memories,
        episodes=tuple(episode for _, result in done for episode in result.episodes),
        latency_ms=[latency for _, result in done for latency in result.latency_ms],
        recordings=tuple(recording for _, result in done for recording in result.recordings),
        model_ids={f"{plan.task}_{plan.memory}": result.model_id for plan, result in done},
        wall_s=time.monotonic() - begun,
        bag=str(bag) if any(e.bag for plan in lockstep for e in plan.episodes) else None,
    )


def _run_cells(
    cells: list[CellPlan], options: DemoOptions, progress: DemoProgress, parallel: int
) -> list[tuple[CellPlan, CellResult]]:
    """Run cells, `parallel` at a time; results in the order of `cells`. The first failure stops all others."""
    stop = Event()
    domains: SimpleQueue[int] = SimpleQueue()

    def run(plan: CellPlan) -> CellResult:
        if stop.is_set():
            raise Stopped
        domain = domains.get()
        try:
            where = Surroundings(domain, options.out / "logs" / plan.name, options.out / "bag", stop)
            return run_cell(plan, where, lambda episode: progress.episode(plan, episode))
        finally:
            domains.put(domain)

    # The claims end last: leaving the pool waits for the nodes that use their domains.
    with ExitStack() as claims, ThreadPoolExecutor(parallel, thread_name_prefix="cell") as pool:
        for _ in range(parallel):
            domains.put(claims.enter_context(DomainClaim()))
        futures = [pool.submit(run, plan) for plan in cells]
        try:
            _wait(futures)
        finally:
            # Leaving the pool waits for the cells, and they for their processes.
            stop.set()
    return [(plan, future.result()) for plan, future in zip(cells, futures, strict=True)]


def _wait(futures: list[Future[CellResult]]) -> None:
    """Wait for all; raises what the first failing one raised. Wakes up often, so that Ctrl-C is heard."""
    pending = set(futures)
    while pending:
        finished, pending = wait(pending, POLL_S, FIRST_COMPLETED)
        for future in finished:
            future.result()
