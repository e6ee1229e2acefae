"""A node takes real-time priority where it may, and says so where it may not, on a process of its own."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

PRIORITY = 7


def may_take_it() -> bool:
    """Whether this user's processes may have real-time priority; asked by a thread that ends."""
    answers = []

    def ask() -> None:
        try:
            os.sched_setscheduler(0, os.SCHED_FIFO, os.sched_param(PRIORITY))
            answers.append(True)
        except PermissionError:
            answers.append(False)

    thread = threading.Thread(target=ask)
    thread.start()
    thread.join()
    return answers[0]


@pytest.fixture
def node(
    request: pytest.FixtureRequest, tmp_path: Path, domain_id: int, checkpoints: dict[str, Path]
) -> Iterator[NodeProcess]:
    """memory_node, which keeps snapshots by a thread of its own."""
    parameters = {
        "checkpoint": str(checkpoints["trace"]),
        "realtime_priority": PRIORITY,
        "snapshot_dir": str(tmp_path / "kept"),
        "autostart": True,
    }
    process = NodeProcess(NodeSpec("memory_node", parameters), tmp_path, private_environment(domain_id), request.param)
    yield process
    process.stop()


@pytest.mark.skipif(not may_take_it(), reason="this user may not have real-time priority")
@pytest.mark.parametrize("node", [()], indirect=True)
def test_executor_and_middleware_go_first(node: NodeProcess) -> None:
    node.wait_ready()
    assert os.sched_getscheduler(node.pid) & ~os.SCHED_RESET_ON_FORK == os.SCHED_FIFO
    tasks = [int(task.name) for task in Path(f"/proc/{node.pid}/task").iterdir()]
    prompt = [task for task in tasks if os.sched_getparam(task).sched_priority == PRIORITY]
    # Waiting for signals and for the launch's end has time.
    assert len(prompt) > 2 and len(tasks) - len(prompt) >= 2
    assert all(os.sched_getparam(task).sched_priority in (0, PRIORITY) for task in tasks)


@pytest.mark.parametrize("node", [("setpriv", "--bounding-set=-sys_nice", "prlimit", "--rtprio=0")], indirect=True)
def test_what_is_refused_is_told_with_the_remedy_and_the_node_works(node: NodeProcess) -> None:
    node.wait_log(f"realtime_priority = {PRIORITY} is not allowed here")
    node.wait_ready()
    assert "rtprio 99" in node.log
    assert os.sched_getscheduler(node.pid) == os.SCHED_OTHER
