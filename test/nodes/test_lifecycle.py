"""Loud configuration, repair, and the way back to unconfigured, on a node in its own process."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from fixtures import damage, tiny_checkpoint

from trace_memory_ros.arm.nodes.episode_client import EpisodeClient
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeFailed, NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.observation.config import SensorConfig, default_arm

PATIENCE_S = 120.0


@pytest.fixture
def client(domain_id: int) -> Iterator[EpisodeClient]:
    with EpisodeClient(domain_id, "alone") as client:
        yield client


@pytest.fixture
def lone_node(tmp_path: Path, domain_id: int) -> Iterator[NodeProcess]:
    spec = NodeSpec("memory_node", {"checkpoint": "/no/such/checkpoint"}, namespace="alone")
    process = NodeProcess(spec, tmp_path, private_environment(domain_id))
    yield process
    process.stop()


def test_a_bad_checkpoint_fails_loudly_and_can_be_mended(
    lone_node: NodeProcess, client: EpisodeClient, checkpoints: dict[str, Path]
) -> None:
    for service in ("reset", "snapshot", "restore"):
        with pytest.raises(EpisodeFailed, match="not configured"):
            client.trigger(f"memory_node/{service}", PATIENCE_S)
    with pytest.raises(EpisodeFailed, match="configure"):
        client.change_state("memory_node", "configure", PATIENCE_S)
    assert client.state("memory_node") == "unconfigured"
    lone_node.wait_log("cannot configure: checkpoint '/no/such/checkpoint' is none of")
    client.set_parameters("memory_node", {"checkpoint": str(checkpoints["trace"])})
    for transition, state in (
        ("configure", "inactive"),
        ("activate", "active"),
        ("deactivate", "inactive"),
        ("cleanup", "unconfigured"),
        ("configure", "inactive"),
        ("shutdown", "finalized"),
    ):
        client.change_state("memory_node", transition, PATIENCE_S)
        assert client.state("memory_node") == state
    assert lone_node.stop() == 0


@pytest.mark.parametrize("wrong", [30, -3.0], ids=["a whole number", "outside its limits"])
def test_a_parameter_that_cannot_be_ends_the_process_in_a_line(wrong: float, tmp_path: Path, domain_id: int) -> None:
    spec = NodeSpec("memory_node", {"hang_timeout_s": wrong}, namespace="alone")
    process = NodeProcess(spec, tmp_path, private_environment(domain_id))
    try:
        with pytest.raises(NodeFailed, match="ended with exit code 1"):
            process.wait_ready(PATIENCE_S)
    finally:
        process.stop()
    assert "parameter hang_timeout_s: give a float in 0 .. 3600, for example 30.0; the process ends" in process.log
    assert str(wrong) in process.log and "Traceback" not in process.log


def ends_of(client: EpisodeClient, node: str) -> list[str]:
    """Topics that a node of the client's namespace publishes or subscribes to, as often as it does."""
    graph, names = client.node, {topic for topic, _ in client.node.get_topic_names_and_types()}
    found = [
        topic
        for topic in names
        for info in (*graph.get_publishers_info_by_topic(topic), *graph.get_subscriptions_info_by_topic(topic))
        if info.node_name == node and info.node_namespace == "/alone"
    ]
    return sorted(found)


@pytest.mark.parametrize(
    ("node", "wrong", "words"),
    [
        ("policy_node", {"limits_file": "/no/such/file"}, "/no/such/file"),
        ("policy_node", {"checkpoint": "lacking"}, "is not installed"),
        ("memory_node", {"checkpoint": "lacking"}, "is not installed"),
    ],
)
def test_a_configuration_that_failed_leaves_nothing_behind(
    node: str,
    wrong: dict[str, str],
    words: str,
    tmp_path: Path,
    domain_id: int,
    client: EpisodeClient,
    checkpoints: dict[str, Path],
) -> None:
    """A publisher left over would be the corrected policy_node's rival on its own topic."""
    lacking = SensorConfig("arm", "dynamic", 250, type="control_msgs/msg/DynamicJointState", select=("position.a",))
    arm = default_arm()
    observation = replace(arm, streams=(*arm.streams, lacking), state=(*arm.state, "arm.position.a"))
    tiny_checkpoint(tmp_path / "lacking", observation=observation)
    process = NodeProcess(NodeSpec(node, namespace="alone"), tmp_path, private_environment(domain_id))
    right = {"checkpoint": str(checkpoints["trace"])} | dict.fromkeys(wrong.keys() - {"checkpoint"}, "")
    places = {"lacking": str(tmp_path / "lacking")}
    try:
        client.state(node, PATIENCE_S)
        client.set_parameters(node, right | {name: places.get(value, value) for name, value in wrong.items()})
        with pytest.raises(EpisodeFailed, match="configure"):
            client.change_state(node, "configure", PATIENCE_S)
        process.wait_log(words)
        client.set_parameters(node, right)
        client.change_state(node, "configure", PATIENCE_S)
        known = f"/alone/{arm.cameras[0].topic}"
        assert client.spin_until(lambda: known in ends_of(client, node), PATIENCE_S)
        assert client.spin_until(lambda: len(ends_of(client, node)) == len(set(ends_of(client, node))), 10.0), ends_of(
            client, node
        )
    finally:
        process.stop()


AGAIN = """
import sys, weakref
import rclpy
from trace_memory_ros.nodes.policy_node import PolicyNode

rclpy.init(args=["--ros-args", "-p", f"checkpoint:={sys.argv[1]}"])
node = PolicyNode()
node.trigger_configure(), node.trigger_activate()
samples = weakref.ref(node._answering._store)
node.trigger_deactivate(), node.trigger_cleanup()
node.trigger_configure(), node.trigger_activate()
print("kept" if samples() else "freed")
"""


def test_a_node_that_is_configured_again_frees_its_samples(domain_id: int, checkpoints: dict[str, Path]) -> None:
    command = [sys.executable, "-c", AGAIN, str(checkpoints["trace"])]
    environment = os.environ | private_environment(domain_id)
    ended = subprocess.run(command, capture_output=True, text=True, check=True, timeout=PATIENCE_S, env=environment)
    assert ended.stdout.splitlines()[-1] == "freed"


def test_autostart_with_a_damaged_checkpoint_ends_the_process(
    tmp_path: Path, domain_id: int, checkpoints: dict[str, Path]
) -> None:
    damaged = damage(checkpoints["trace"], tmp_path / "damaged")
    spec = NodeSpec("memory_node", {"checkpoint": str(damaged), "autostart": True}, namespace="damaged")
    process = NodeProcess(spec, tmp_path, private_environment(domain_id))
    with pytest.raises(NodeFailed, match="exit code 1"):
        process.wait_ready(PATIENCE_S)
    assert "damaged, truncated or another model's" in process.log
    process.stop()


def test_an_ended_node_leaves_no_shared_memory(tmp_path: Path, checkpoints: dict[str, Path]) -> None:
    spec = NodeSpec("memory_node", {"checkpoint": str(checkpoints["trace"]), "autostart": True})
    with DomainClaim() as domain:
        process = NodeProcess(spec, tmp_path, private_environment(domain))
        process.wait_ready(PATIENCE_S)
        words = Path(f"/proc/{process.pid}/maps").read_text().split()
        segments = {Path(word) for word in words if re.fullmatch(r"/dev/shm/fastdds_[0-9a-f]{16}", word)}
        assert segments and all(segment.exists() for segment in segments)
        assert process.stop() == 0
    assert not [segment for segment in segments if segment.exists()]


def test_nodes_end_when_their_starter_is_killed(tmp_path: Path, domain_id: int) -> None:
    starter = (
        "import pathlib, sys, time\n"
        "from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec\n"
        "spec = NodeSpec('marker_node', {'autostart': True}, namespace='orphan')\n"
        "node = NodeProcess(spec, pathlib.Path(sys.argv[1]))\n"
        "node.wait_ready(60.0)\n"
        "print(node.pid, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", starter, str(tmp_path)], stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        pid = int(process.stdout.readline())
        process.kill()
    deadline = time.monotonic() + PATIENCE_S
    while Path(f"/proc/{pid}").exists() and "State:\tZ" not in Path(f"/proc/{pid}/status").read_text():
        assert time.monotonic() < deadline, f"marker_node {pid} outlived its starter"
        time.sleep(0.1)
