"""Worker processes that survive the death of one of their jobs."""

from __future__ import annotations

import multiprocessing
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from trace_memory_ros.runtime.model import one_thread

Job = TypeVar("Job")


def do_all(
    work: Callable[[Job], str], jobs: Sequence[Job], workers: int, report: Callable[[str], None]
) -> list[tuple[Job, str]]:
    """Do every job in `workers` processes, in order; `report` is given what each job returns as it ends.

    Returns the jobs that raised or whose process died, with the reason. When a process dies, the jobs that were not
    done yet are tried again one by one, so that only the culprit is lost.
    """
    left, lost = _attempt(work, jobs, workers, report)
    for job in left:
        alone, failed = _attempt(work, [job], 1, report)
        lost += failed + [(job, "the process that did it died") for job in alone]
    return lost


def _start() -> None:
    """One thread per worker, for torch and for a software renderer: more would only wait for one another."""
    os.environ.setdefault("LP_NUM_THREADS", "0")
    one_thread()


def _attempt(
    work: Callable[[Job], str], jobs: Sequence[Job], workers: int, report: Callable[[str], None]
) -> tuple[list[Job], list[tuple[Job, str]]]:
    """The jobs not done because a process died, and those that raised."""
    left: list[Job] = []
    lost: list[tuple[Job, str]] = []
    # Not forked: a renderer's context and torch's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(max(1, min(workers, len(jobs))), context, _start) as pool:
        futures = {pool.submit(work, job): job for job in jobs}
        for future in as_completed(futures):
            try:
                report(future.result())
            except BrokenProcessPool:
                left.append(futures[future])
            except Exception as error:
                lost.append((futures[future], f"{type(error).__name__}: {error}"))
    order = {id(job): place for place, job in enumerate(jobs)}
    return sorted(left, key=lambda job: order[id(job)]), lost
