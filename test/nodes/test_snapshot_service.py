"""~/snapshot and ~/restore refuse by name what they cannot do, and end no node."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodes.conftest import READY_S
from nodes.robot import Robot
from std_srvs.srv import Trigger

from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

STUCK_DISK = """
import threading
from trace_memory_ros.nodes.lifecycle import run
from trace_memory_ros.nodes.memory import snapshot_writer
from trace_memory_ros.nodes.memory_node import MemoryNode

snapshot_writer.write_snapshot = lambda *_: threading.Event().wait()
run(MemoryNode)
"""


@pytest.fixture
def stuck(tmp_path: Path, domain_id: int, checkpoints: dict[str, Path]) -> Iterator[NodeProcess]:
    """A memory_node whose disk never answers."""
    package = tmp_path / "site" / "stuck"
    package.mkdir(parents=True)
    (package / "memory_node.py").write_text(STUCK_DISK)
    paths = [str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])]
    environment = {**private_environment(domain_id), "PYTHONPATH": os.pathsep.join(paths)}
    model = {"checkpoint": str(checkpoints["trace"]), "reliability": "reliable", "autostart": True}
    kept = {"snapshot_dir": str(tmp_path / "kept"), "snapshot_path": str(tmp_path / "one.safetensors")}
    process = NodeProcess(
        NodeSpec("memory_node", model | kept, namespace="stuck", package="stuck"), tmp_path, environment
    )
    process.wait_ready(READY_S)
    yield process
    process.stop()


@pytest.fixture
def robot(stuck: NodeProcess, domain_id: int) -> Iterator[Robot]:
    robot = Robot(domain_id, "stuck", remembers=False)
    robot.wait_matched()
    yield robot
    robot.client.close()


def test_what_names_no_file_is_refused(robot: Robot, stuck: NodeProcess) -> None:
    for path, words in (
        ("~nobody-of-this-name/x", "Give the whole path"),
        ("/", "names no file"),
        ("", "names no fil"),
    ):
        robot.client.set_parameters("memory_node", {"snapshot_path": path})
        for service in ("snapshot", "restore"):
            with pytest.raises(EpisodeFailed, match=words):
                robot.client.trigger(f"memory_node/{service}")
    assert stuck.running


def test_what_is_no_snapshot_is_not_overwritten(
    memory_robot: Robot, checkpoints: dict[str, Path], tmp_path: Path
) -> None:
    weights, notes, fresh = tmp_path / "model.safetensors", tmp_path / "notes.txt", tmp_path / "fresh.safetensors"
    weights.write_bytes((checkpoints["trace"] / "model.safetensors").read_bytes())
    notes.write_text("what a person wrote")
    fresh.touch()
    client = memory_robot.client
    usual = client.get_parameter("memory_node", "snapshot_path")
    for file in (weights, notes):
        before = file.read_bytes()
        client.set_parameters("memory_node", {"snapshot_path": str(file)})
        with pytest.raises(EpisodeFailed, match="is no snapshot, and stays as it is: correct snapshot_path"):
            client.trigger("memory_node/snapshot")
        assert file.read_bytes() == before
    client.set_parameters("memory_node", {"snapshot_path": str(fresh)})
    for _ in range(2):
        client.trigger("memory_node/snapshot")
    assert fresh.stat().st_size
    client.set_parameters("memory_node", {"snapshot_path": usual})


def test_a_snapshot_that_waits_when_the_node_is_cleaned_up_is_answered(robot: Robot, stuck: NodeProcess) -> None:
    robot.tick(0)  # its snapshot occupies the disk
    client = robot.client.node.create_client(Trigger, "memory_node/snapshot")
    assert client.wait_for_service(READY_S)
    answer = client.call_async(Trigger.Request())
    for transition in ("deactivate", "cleanup"):
        robot.client.change_state("memory_node", transition)
    robot.wait(answer.done, "an answer")
    result = answer.result()
    assert result is not None and not result.success and "was cleaned up meanwhile" in result.message
    assert stuck.running


def test_nothing_is_restored_that_activation_would_forget(robot: Robot, stuck: NodeProcess) -> None:
    robot.client.change_state("memory_node", "deactivate")
    with pytest.raises(EpisodeFailed, match="not active: activate it first"):
        robot.client.trigger("memory_node/restore")
    robot.client.change_state("memory_node", "activate")
    with pytest.raises(EpisodeFailed, match="there is no snapshot file"):
        robot.client.trigger("memory_node/restore")
