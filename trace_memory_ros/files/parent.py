"""Processes that end with the process that started them."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time

POLL_S = 1.0


def end_with_parent() -> None:
    """End this process when its parent ends, however that went, rather than finish a job for nobody."""
    threading.Thread(target=_end_with_parent, daemon=True).start()


def _end_with_parent() -> None:
    if (parent := multiprocessing.parent_process()) is not None:
        parent.join()
        os._exit(1)


def stop_with(parent: int) -> None:
    """Ask this process to stop, as SIGTERM does, once `parent`, the number of the process that started it, is gone."""
    threading.Thread(target=_stop_with, args=(parent,), daemon=True).start()


def _stop_with(parent: int) -> None:
    while os.getppid() == parent:
        time.sleep(POLL_S)
    os.kill(os.getpid(), signal.SIGTERM)
