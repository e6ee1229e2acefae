"""Every registered mechanism in memory_node, over DDS: one process, reconfigured for each of them."""

from __future__ import annotations

import math
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from fixtures import WIDTH, tiny_checkpoint
from nodes.robot import Robot

from trace_memory_ros.memory import registry
from trace_memory_ros.memory.base import Memory
from trace_memory_ros.msg import MemoryCondition, MemoryDiagnostics
from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment
from trace_memory_ros.runtime.checkpoint import load
from trace_memory_ros.runtime.model import MemoryModel

NODE = "memory_node"
READY_S = 120.0
SHUT = {"gate_bias": -20.0}
CASES: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {}) for name in registry.names()},
    "gru+cache": ("gru+cache", {}),
    "trace+gate": ("trace+gate", {"gate_bias": 20.0}),
    "trace+gate, shut": ("trace+gate", SHUT),
}


@pytest.fixture(scope="module")
def process(tmp_path_factory: pytest.TempPathFactory, domain_id: int) -> Iterator[NodeProcess]:
    """memory_node in /live, unconfigured."""
    folder = tmp_path_factory.mktemp("live")
    values = {"reliability": "reliable", "snapshot_path": str(folder / "snapshot.safetensors")}
    node = NodeProcess(NodeSpec(NODE, values, namespace="live"), folder, private_environment(domain_id))
    yield node
    assert node.stop() == 0, node.log[-2000:]


@pytest.fixture(scope="module")
def robot(process: NodeProcess, domain_id: int) -> Iterator[Robot]:
    robot = Robot(domain_id, "live")
    robot.client.state(NODE, READY_S)
    yield robot
    robot.client.close()


def begin(robot: Robot) -> None:
    """Activate, and let ticks pass until one is answered: a topic that was just opened may lose its first samples."""
    robot.client.change_state(NODE, "activate")
    robot.wait_matched()
    robot.conditions.clear()
    robot.records.clear()

    def answered() -> bool:
        robot.send_tick(0)
        return robot.client.spin_until(lambda: bool(robot.conditions and robot.records), 0.3)

    robot.wait(answered, "the first condition")
    robot.reset(NODE)


def check_shapes(condition: MemoryCondition, record: MemoryDiagnostics, memory: Memory) -> None:
    count = memory.slot_count
    assert condition.status == MemoryCondition.OK
    assert (condition.token_count, condition.token_width) == (count, WIDTH)
    assert [len(condition.tokens), len(condition.vector)] == [count * WIDTH, WIDTH]
    assert [len(condition.read_weights), len(condition.address)] == [count, memory.address_width]
    entries = (record.route, record.write_strength, record.read_weights, record.slot_norms)
    assert [len(part) for part in entries] == [count] * 4
    everything = (condition.tokens, condition.vector, condition.address, *entries, [record.gate, record.surprise])
    assert all(math.isfinite(value) for part in everything for value in part)
    assert 0.0 <= record.gate <= 1.0
    assert record.slot_kind == memory.slot_kind
    assert record.state_bytes == memory.state_bytes
    assert not count or sum(condition.read_weights) == pytest.approx(1.0, abs=1e-5)


def arrays(condition: MemoryCondition) -> list[list[float]]:
    return [list(part) for part in (condition.tokens, condition.vector, condition.read_weights, condition.address)]


@pytest.mark.parametrize("case", CASES)
def test_every_mechanism_runs_live(case: str, tmp_path: Path, process: NodeProcess, robot: Robot) -> None:
    mechanism, options = CASES[case]
    model_id = tiny_checkpoint(tmp_path, mechanism, policy=False, options=options)
    memory = MemoryModel.from_checkpoint(load(tmp_path)).memory
    robot.client.set_parameters(NODE, {"checkpoint": str(tmp_path)})
    robot.client.change_state(NODE, "configure")
    try:
        begin(robot)
        answers = [robot.tick(seed) for seed in range(4)]
        for condition, record in answers:
            assert (condition.mechanism, condition.model_id) == (mechanism, model_id)
            check_shapes(condition, record, memory)
        assert [record.due for _, record in answers] == [True, False, True, False]
        assert answers[-1][1].due_count == 2
        if options == SHUT:
            assert not any(condition.wrote for condition, _ in answers)
            assert all(record.gate < 0.5 and not any(record.write_strength) for _, record in answers)
        assert answers[-1][1].write_count == sum(condition.wrote for condition, _ in answers)
        robot.client.trigger(f"{NODE}/snapshot")
        expected = [robot.tick(seed)[0] for seed in (4, 5)]
        robot.client.trigger(f"{NODE}/restore")
        again = [robot.tick(seed)[0] for seed in (4, 5)]
        assert [arrays(condition) for condition in again] == [arrays(condition) for condition in expected]
        assert [(c.tick, c.wrote) for c in again] == [(c.tick, c.wrote) for c in expected]
    finally:
        if robot.client.state(NODE) == "active":
            robot.client.change_state(NODE, "deactivate")
        robot.client.change_state(NODE, "cleanup")
    assert process.running
