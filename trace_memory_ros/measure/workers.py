"""Worker processes that survive the death of one of their jobs."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import FIRST_COMPLETED, Future, ProcessPoolExecutor, wait
from concurrent.futures.process import BrokenProcessPool
from typing import TypeVar

from trace_memory_ros.files.parent import end_with_parent

Job = TypeVar("Job")
Result = TypeVar("Result")
Lost = list[tuple[Job, str]]
DIED = "the process that did it died"
"""How the reason of a lost job begins whose process ended without an exception."""


def do_all(
    work: Callable[[Job], Result], jobs: Sequence[Job], workers: int, report: Callable[[Result], None]
) -> Lost[Job]:
    """Do every job in `workers` processes, in order; `report` is given what each job returns as it ends.

    Returns the jobs that raised or whose process died, with the reason, in the order of `jobs`. When a process dies,
    the jobs that were being done are tried again one by one, so that only the culprit is lost and the others go on.
    """
    order = {id(job): place for place, job in enumerate(jobs)}
    waiting, lost = deque(jobs), Lost[Job]()
    while waiting:
        for suspect in _attempt(work, waiting, workers, report, lost):
            if _attempt(work, deque([suspect]), 1, report, lost):
                lost.append((suspect, DIED))
    return sorted(lost, key=lambda entry: order[id(entry[0])])


def reason_of(error: BaseException) -> str:
    """Why a job failed, in a line. A fault of its input says everything itself; anything else is named by its type."""
    text = str(error) or "no reason given"
    return text if isinstance(error, ValueError) else f"{type(error).__name__}: {text}"


def start_worker() -> None:
    """One thread per worker, for torch and for a software renderer: more would only wait for one another.

    A worker ends with the process that started it. torch itself is not imported, which takes seconds and which not
    every job needs.
    """
    os.environ.setdefault("LP_NUM_THREADS", "0")
    os.environ["OMP_NUM_THREADS"] = "1"
    if torch := sys.modules.get("torch"):
        torch.set_num_threads(1)
    end_with_parent()


def _attempt(
    work: Callable[[Job], Result],
    waiting: deque[Job],
    workers: int,
    report: Callable[[Result], None],
    lost: Lost[Job],
) -> list[Job]:
    """Do `waiting` until it is empty or a process dies; returns the jobs that were being done then."""
    # Not forked: a renderer's context and torch's threads do not survive that.
    context = multiprocessing.get_context("spawn")
    workers = max(1, min(workers, len(waiting)))
    doing: dict[Future[Result], Job] = {}
    suspects: list[Job] = []
    with ProcessPoolExecutor(workers, context, start_worker) as pool:
        while doing or (waiting and not suspects):
            # No more than are being done: those in a queue would be suspects too.
            while waiting and not suspects and len(doing) < workers:
                job = waiting.popleft()
                try:
                    doing[pool.submit(work, job)] = job
                except BrokenProcessPool:
                    suspects.append(job)
            for future in wait(doing, return_when=FIRST_COMPLETED).done:
                job = doing.pop(future)
                error = future.exception()
                if error is None:
                    report(future.result())
                elif isinstance(error, BrokenProcessPool):
                    suspects.append(job)
                else:
                    lost.append((job, reason_of(error)))
    return suspects
