"""memory_node is killed, started again, its disk filled and its snapshot damaged: what is lost is said."""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from nodes.robot import CAMERAS, PERIOD_NS, Robot
from safetensors.numpy import load_file
from std_srvs.srv import Trigger

from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes.memory.snapshot_file import HEAD
from trace_memory_ros.nodes.parent import PARENT
from trace_memory_ros.nodes.processes import NodeProcess, NodeSpec
from trace_memory_ros.nodes.transport import private_environment

NODE = "survivor/memory_node"
FAULTY = """
from trace_memory_ros.nodes.lifecycle import run
from trace_memory_ros.nodes.memory_node import MemoryNode


class Faulty(MemoryNode):
    def _on_reset(self, request, response):
        raise RuntimeError("somebody's mistake")


run(Faulty)
"""
TOPICS = (*(f"camera/{camera}/image_raw" for camera in CAMERAS), "joint_states")


class Survivor:
    """A memory_node that is killed and started again, and the robot that it watches."""

    def __init__(self, domain_id: int, checkpoint: Path, folder: Path) -> None:
        self.robot = Robot(domain_id, "survivor", remembers=False)
        self.file = folder / "kept" / "survivor.memory_node.safetensors"
        self._environment = private_environment(domain_id)
        self._folder = folder
        settings = {"checkpoint": str(checkpoint), "reliability": "reliable", "autostart": True}
        kept = {"snapshot_dir": str(self.file.parent), "snapshot_period_s": 1e-6, "diagnostics_rate_hz": 20.0}
        self._spec = NodeSpec("memory_node", {**settings, **kept}, namespace="survivor")
        self.process = self.start(0)

    def start(self, number: int, package: str = "trace_memory_ros.nodes", **environment: str) -> NodeProcess:
        """Start it and wait until robot and node hear each other: a killed one stays listed for a while."""
        before = self._ends()
        self.robot.health.clear()
        spec = replace(self._spec, package=package)
        process = NodeProcess(spec, self._folder / f"logs{number}", self._environment | environment)
        process.wait_ready(120.0)
        self.robot.wait(
            lambda: all(new - old for new, old in zip(self._ends(), before, strict=True)), "new subscribers"
        )
        self.robot.wait(lambda: f"{NODE}: memory" in self.robot.health, "diagnostics of the new node")
        return process

    def kill(self) -> None:
        os.kill(self.process.pid, signal.SIGKILL)
        self.process.stop()

    def restart(self, number: int, package: str = "trace_memory_ros.nodes", **environment: str) -> None:
        self.process = self.start(number, package, **environment)

    def wait_ended(self) -> int:
        self.robot.wait(lambda: not self.process.running, "the end of the process")
        code = self.process.returncode
        assert code is not None
        return code

    def wait_kept(self, ticks: int) -> None:
        self.robot.wait(
            lambda: self.file.exists() and int(load_file(self.file)[HEAD][1]) == ticks, f"a snapshot of {ticks} ticks"
        )

    def memory(self) -> Any:
        """The newest status of the memory; messages are handled first."""
        self.robot.client.spin_until(lambda: False, 0.2)
        return self.robot.health[f"{NODE}: memory"]

    def _ends(self) -> list[set[tuple[int, ...]]]:
        node = self.robot.client.node
        found = [node.get_subscriptions_info_by_topic(f"/survivor/{topic}") for topic in TOPICS]
        return [{tuple(info.endpoint_gid) for info in one} for one in found]


@pytest.fixture
def survivor(tmp_path: Path, domain_id: int, checkpoints: dict[str, Path]) -> Iterator[Survivor]:
    made = Survivor(domain_id, checkpoints["trace"], tmp_path)
    yield made
    made.process.stop()
    made.robot.client.close()


def numbers(condition: MemoryCondition) -> list[list[float]]:
    return [list(part) for part in (condition.tokens, condition.vector, condition.read_weights, condition.address)]


def value(status: Any, key: str) -> str:
    return str(next(entry.value for entry in status.values if entry.key == key))


@pytest.mark.timeout(400)
def test_a_memory_survives_its_node_and_says_what_it_lacks(survivor: Survivor, memory_robot: Robot) -> None:
    memory_robot.reset("memory_node")
    uninterrupted = [memory_robot.tick(seed)[0] for seed in range(8)]
    robot = survivor.robot
    before = [robot.tick(seed)[0] for seed in range(5)]
    survivor.wait_kept(5)

    survivor.kill()
    survivor.restart(1)
    robot.now_ns += 3 * PERIOD_NS
    after = [robot.tick(seed)[0] for seed in (5, 6, 7)]
    assert [numbers(one) for one in (*before, *after)] == [numbers(one) for one in uninterrupted]
    assert [one.wrote for one in (*before, *after)] == [one.wrote for one in uninterrupted]
    assert [one.tick for one in after] == [8, 9, 10]
    assert {one.episode for one in (*before, *after)} == {before[0].episode}
    assert {(one.restored, one.gap_ticks) for one in after} == {(True, 3)}
    assert len({one.instance for one in (*before, *after)}) == 2
    status = survivor.memory()
    assert (status.level, value(status, "gap (ticks)")) == (b"\x01", "3")
    assert "restored from a snapshot" in status.message
    assert robot.health[NODE].level != b"\x00"

    full = (100, resource.RLIM_INFINITY)
    limit = resource.prlimit(survivor.process.pid, resource.RLIMIT_FSIZE, full)
    assert robot.tick(8)[0].tick == 11
    robot.wait(lambda: "cannot be written" in survivor.memory().message, "a fault that names the disk")
    assert str(survivor.file.parent) in survivor.memory().message
    assert robot.tick(9)[0].tick == 12
    resource.prlimit(survivor.process.pid, resource.RLIMIT_FSIZE, limit)
    assert robot.tick(10)[0].tick == 13
    survivor.wait_kept(14)
    robot.wait(lambda: "cannot be written" not in survivor.memory().message, "an end of the fault")

    survivor.kill()
    damaged = bytearray(survivor.file.read_bytes())
    damaged[-2] ^= 1
    survivor.file.write_bytes(damaged)
    survivor.restart(2)
    condition, record = robot.tick(0)
    assert (condition.tick, condition.restored, numbers(condition)) == (0, False, numbers(uninterrupted[0]))
    assert any("another checksum" in fault for fault in record.faults)
    assert str(survivor.file.with_suffix(".refused.safetensors")) in survivor.memory().message
    assert survivor.memory().level == b"\x01"
    robot.reset("memory_node")
    robot.tick(0)
    robot.wait(lambda: survivor.memory().level == b"\x00", "nothing lost in the new episode")

    survivor.wait_kept(1)
    assert survivor.process.stop() == 0
    assert not survivor.file.exists()


@pytest.mark.timeout(400)
def test_a_memory_whose_node_ends_by_an_error_or_with_its_launcher_is_gone_on_from(
    survivor: Survivor, tmp_path: Path
) -> None:
    package = tmp_path / "site" / "faulty"
    package.mkdir(parents=True)
    (package / "memory_node.py").write_text(FAULTY)
    paths = os.pathsep.join([str(package.parent), *filter(None, [os.environ.get("PYTHONPATH")])])
    robot = survivor.robot
    assert robot.tick(0)[0].tick == 0
    survivor.wait_kept(1)
    survivor.kill()

    with subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE) as launcher:
        survivor.restart(1, **{PARENT: str(launcher.pid)})
        (condition, _) = robot.tick(1)
        assert (condition.tick, condition.restored) == (1, True)
        survivor.wait_kept(2)
        launcher.kill()
    assert survivor.wait_ended() == 0

    survivor.restart(2, "faulty", PYTHONPATH=paths)
    (condition, _) = robot.tick(2)
    assert (condition.tick, condition.restored) == (2, True)
    survivor.wait_kept(3)
    robot.client.node.create_client(Trigger, "memory_node/reset").call_async(Trigger.Request())
    assert survivor.wait_ended() == 1
    assert "somebody's mistake" in survivor.process.log

    survivor.restart(3)
    (condition, _) = robot.tick(3)
    assert (condition.tick, condition.restored) == (3, True)
