"""Ends a process with the one that started it, however that went: no node is left behind by a launcher that died."""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable
from pathlib import Path

PARENT = "TRACE_MEMORY_PARENT_PID"
"""Tells a node to end when this process is gone, however it went."""
POLL_S = 1.0


def watch(on_gone: Callable[[], None]) -> None:
    """Call `on_gone` from a thread once the process that `PARENT` names is gone; does nothing where none is named."""
    if PARENT in os.environ:
        threading.Thread(target=_watch, args=(int(os.environ[PARENT]), on_gone), daemon=True).start()


def _watch(parent: int, on_gone: Callable[[], None]) -> None:
    # Behind a launch prefix such as gdb the parent is a grandparent: then it can only be asked for by its number.
    direct = os.getppid() == parent
    while os.getppid() == parent if direct else Path(f"/proc/{parent}").exists():
        time.sleep(POLL_S)
    on_gone()
