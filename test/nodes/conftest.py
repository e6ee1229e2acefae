"""Nodes in processes of their own, started once for all tests of this package, and ended with the last of them."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from fixtures import tiny_checkpoint
from nodes.robot import Robot

from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.processes import NodeGroup, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

READY_S = 120.0


@pytest.fixture(scope="session")
def domain_id() -> int:
    return int(os.environ["ROS_DOMAIN_ID"])


@pytest.fixture(scope="session")
def checkpoints(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """Random checkpoints: `trace`, and `foreign` with the same shape and other weights."""
    folder = tmp_path_factory.mktemp("checkpoints")
    tiny_checkpoint(folder / "trace")
    tiny_checkpoint(folder / "foreign", seed=1)
    return {name: folder / name for name in ("trace", "foreign")}


@pytest.fixture(scope="package")
def nodes(
    tmp_path_factory: pytest.TempPathFactory, domain_id: int, checkpoints: dict[str, Path]
) -> Iterator[NodeGroup]:
    """memory_node in /memory, policy_node in /policy, and sim, memory and policy together in /loop."""
    folder = tmp_path_factory.mktemp("nodes")
    model = {"checkpoint": str(checkpoints["trace"]), "reliability": "reliable", "autostart": True}
    quick = {**model, "diagnostics_rate_hz": 20.0}
    snapshot = {"snapshot_path": str(folder / "snapshot.safetensors")}
    specs = [
        NodeSpec(
            "memory_node", {**quick, **snapshot, "publish_seen": True, "stream_timeout_s": 0.5}, namespace="memory"
        ),
        NodeSpec("policy_node", {**quick, **LOCKSTEP, "hold_ms": 200, "input_wait_ms": 200}, namespace="policy"),
        NodeSpec(
            "arm_sim_node",
            {"autostart": True, "command_timeout_s": 60.0},
            namespace="loop",
            package="trace_memory_ros.arm.nodes",
        ),
        # In lock-step nothing is late, however slow the machine is.
        NodeSpec("memory_node", {**model, "deadline_ms": 20_000}, namespace="loop"),
        NodeSpec("policy_node", {**model, **LOCKSTEP, "input_wait_ms": 10_000}, namespace="loop"),
    ]
    with NodeGroup(specs, folder / "logs", private_environment(domain_id)) as group:
        group.wait_ready(READY_S)
        yield group
        group.check_alive()


@pytest.fixture(scope="package")
def memory_robot(nodes: NodeGroup, domain_id: int) -> Iterator[Robot]:
    robot = Robot(domain_id, "memory", remembers=False)
    robot.wait_matched()
    yield robot
    robot.client.close()


@pytest.fixture(scope="package")
def policy_robot(nodes: NodeGroup, domain_id: int) -> Iterator[Robot]:
    robot = Robot(domain_id, "policy")
    robot.wait_matched()
    yield robot
    robot.client.close()
