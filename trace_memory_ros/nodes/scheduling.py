"""Real-time scheduling of a node's process, so that messages are not kept waiting by whatever else a machine does."""

from __future__ import annotations

import os
import threading
from contextlib import suppress
from pathlib import Path

REMEDY = (
    "allow it by a line `USER - rtprio 99` in /etc/security/limits.d/realtime.conf and a new login, or by a "
    "container's capability SYS_NICE, or set realtime_priority: 0"
)


def first_in_first_out(priority: int) -> None:
    """Give the executor's thread and the middleware's SCHED_FIFO at `priority`, 1 to 99.

    Python's other threads (snapshots, a policy's network) keep their turn behind everyone's, and so do those that the
    executor's starts later. Called in the executor's thread. Raises PermissionError with the remedy.
    """
    own = threading.get_native_id()
    others = {thread.native_id for thread in threading.enumerate()} - {own}
    wanted = os.sched_param(priority)
    try:
        os.sched_setscheduler(own, os.SCHED_FIFO | os.SCHED_RESET_ON_FORK, wanted)
        for task in Path("/proc/self/task").iterdir():
            if int(task.name) in {own, *others}:
                continue
            with suppress(ProcessLookupError):  # it has just ended
                os.sched_setscheduler(int(task.name), os.SCHED_FIFO, wanted)
    except PermissionError as error:
        raise PermissionError(f"realtime_priority = {priority} is not allowed here ({error}): {REMEDY}") from error
