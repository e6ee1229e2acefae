"""A node whose executor stands still ends with where it was, and one that works does not, in processes of their own."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from diagnostic_msgs.msg import DiagnosticArray

from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

HANGING = """
import ctypes
from dataclasses import dataclass
from trace_memory_ros.nodes.lifecycle import ManagedNode, run
from trace_memory_ros.nodes.parameters import AUTOSTART, hang_timeout, parameter

@dataclass(frozen=True)
class Table:
    hang_timeout_s: float = hang_timeout()
    autostart: bool = parameter(False, AUTOSTART, changes="start")

class Node(ManagedNode):
    table = Table

    def activate(self):
        self.create_timer(0.5, self.keep_the_interpreter)

    def keep_the_interpreter(self):
        ctypes.PyDLL(None).sleep(600)  # as a publish does that waits for a lock in shared memory

run(lambda: Node("hanging_node"))
"""


def test_a_node_that_stands_still_within_a_call_ends_and_says_where(tmp_path: Path, domain_id: int) -> None:
    package = tmp_path / "hanging"
    package.mkdir()
    (package / "__init__.py").write_text("")
    (package / "hanging_node.py").write_text(HANGING)
    spec = NodeSpec("hanging_node", {"hang_timeout_s": 2.0, "autostart": True}, package="hanging")
    paths = os.pathsep.join([str(tmp_path), os.environ["PYTHONPATH"]])
    node = NodeProcess(spec, tmp_path / "logs", {**private_environment(domain_id), "PYTHONPATH": paths})
    try:
        node.wait_ready(60)
        node.wait_log("in keep_the_interpreter", 30)
        assert "Timeout (0:00:02)" in node.log
        deadline = time.monotonic() + 10
        while node.running and time.monotonic() < deadline:
            time.sleep(0.05)
        assert node.returncode == 1
    finally:
        node.stop()


@pytest.fixture
def working(tmp_path: Path, domain_id: int, checkpoints: dict[str, Path]) -> Iterator[NodeProcess]:
    parameters = {
        "checkpoint": str(checkpoints["trace"]),
        "hang_timeout_s": 1.0,
        "diagnostics_rate_hz": 20.0,
        "autostart": True,
    }
    spec = NodeSpec("memory_node", parameters, namespace="beats")
    process = NodeProcess(spec, tmp_path, private_environment(domain_id))
    yield process
    process.stop()


def test_a_node_that_works_or_is_inactive_goes_on(working: NodeProcess, domain_id: int) -> None:
    working.wait_ready(60)
    heard: list[DiagnosticArray] = []
    with NodeClient(domain_id, "beats", "listener") as client:
        client.node.create_subscription(DiagnosticArray, "/diagnostics", heard.append, 10)
        # For more than twice the timeout, at the rate of its reports; then for as long without any.
        assert client.spin_until(lambda: len(heard) > 50, 60)
        client.change_state("memory_node", "deactivate")
        client.spin_until(lambda: False, 2.5)
        client.change_state("memory_node", "activate")
    assert working.stop() == 0
    assert "Timeout" not in working.log
