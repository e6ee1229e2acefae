"""Worker processes: none goes on without the process that started it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

JOBS = """
import os, pathlib, sys, time
sys.path.insert(0, str(pathlib.Path(__file__).parent))
from trace_memory_ros.measure.workers import do_all

def work(place):
    pathlib.Path(place).write_text(str(os.getpid()))
    time.sleep(600)

if __name__ == "__main__":
    do_all(work, sys.argv[1:], 2, print)
"""
BAGS = """
import os, pathlib, sys, time
from studies.tiny_bags import RECORDING
from trace_memory_ros.bags.cache import load_episodes

class Slow:
    def key(self, path, recording, cache_dir):
        return path.name

    def decode(self, path, recording):
        path.write_text(str(os.getpid()))
        time.sleep(600)

if __name__ == "__main__":
    load_episodes(sys.argv[1:], RECORDING, pathlib.Path(__file__).parent / "cache", 2, source=Slow())
"""


@pytest.mark.parametrize("lines", [JOBS, BAGS], ids=["jobs", "bags"])
def test_workers_end_with_a_parent_that_is_killed(tmp_path: Path, lines: str) -> None:
    program = tmp_path / "program.py"
    program.write_text(lines)
    places = [tmp_path / "first", tmp_path / "second"]
    parent = subprocess.Popen([sys.executable, str(program), *map(str, places)])
    deadline = time.monotonic() + 60
    try:
        while not all(place.exists() and place.read_text() for place in places):
            assert parent.poll() is None and time.monotonic() < deadline
            time.sleep(0.05)
    finally:
        parent.kill()
        parent.wait()
    workers = [int(place.read_text()) for place in places]
    while any(map(_runs, workers)):
        assert time.monotonic() < deadline, "a worker goes on"
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    # Nobody may collect it where this machine's first process does not.
    return Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0] != "Z"
