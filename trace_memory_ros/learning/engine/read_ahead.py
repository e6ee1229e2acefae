"""Batches made by threads ahead of the step that needs them, in the order of the steps."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from itertools import islice
from typing import TypeVar

Step = TypeVar("Step")
Batch = TypeVar("Batch")


@contextmanager
def read_ahead(make: Callable[[Step], Batch], steps: Iterable[Step], threads: int) -> Iterator[Iterator[Batch]]:
    """What `make` makes of each step, in order; `threads` of them at once ahead of the one that is used, and one more.

    As `make` depends on its step alone, what comes is the same whatever the number of threads. Threads rather than
    processes: numpy, mapped files and torch let go of the interpreter while they copy, and nothing has to be packed.
    What `make` raises is raised where its batch was due. Batches that were not used are dropped.
    """
    if not threads:
        yield map(make, steps)
        return
    with ThreadPoolExecutor(threads, thread_name_prefix="batches") as pool:
        waiting: deque[Future[Batch]] = deque()

        def batches() -> Iterator[Batch]:
            left = iter(steps)
            waiting.extend(pool.submit(make, step) for step in islice(left, threads + 1))
            while waiting:
                batch = waiting.popleft().result()
                waiting.extend(pool.submit(make, step) for step in islice(left, 1))
                yield batch

        try:
            yield batches()
        finally:
            for future in waiting:
                future.cancel()
