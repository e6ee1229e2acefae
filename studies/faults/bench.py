"""The robot, its nodes as processes and whoever watches them, in a ROS domain of their own."""

from __future__ import annotations

import os
import signal
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from studies.faults.models import made_up_checkpoint, write_misbehaved
from studies.faults.robot import ENCODERS, EYE, JAW, NAMESPACE, WRIST, DisturbedRobot
from studies.faults.setting import Setting
from studies.faults.watch import Watch
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.nodes.processes import READY, NodeFailed, NodeProcess, NodeSpec, ParameterValue

READY_S = 120.0
MEMORY, POLICY = "memory_node", "policy_node"
MEMORY_STATUS, POLICY_STATUS = f"{NAMESPACE}/{MEMORY}", f"{NAMESPACE}/{POLICY}"


class BenchFailed(RuntimeError):
    """The nodes do not run as they should before anything was disturbed."""


class Bench:
    """A context manager. folder: for logs, snapshots and checkpoints. environment: of the nodes.

    prefixes: words before a node's command, by node. parts: statuses that memory_node has. link: joins two networks.
    """

    def __init__(
        self,
        folder: Path,
        domain_id: int,
        environment: Mapping[str, str],
        setting: Setting | None = None,
        prefixes: Mapping[str, Sequence[str]] | None = None,
    ) -> None:
        setting = setting or Setting()
        self.folder, self.domain_id, self.environment = folder, domain_id, dict(environment)
        self.prefixes = prefixes or {}
        if setting.misbehaved:
            found = (write_misbehaved(folder / "installed"), os.environ.get("PYTHONPATH"))
            self.environment["PYTHONPATH"] = os.pathsep.join(filter(None, found))
        self.kept = folder / "kept"
        self.checkpoint = made_up_checkpoint(
            folder / "checkpoint", misbehaved=setting.misbehaved, headers_only=setting.headers_only
        )
        streams = (EYE, WRIST, ENCODERS) if setting.headers_only else (EYE, WRIST, ENCODERS, JAW)
        self.parts = ("", ": condition", ": memory", *(f": {stream}" for stream in streams))
        model: dict[str, ParameterValue] = {
            "checkpoint": str(self.checkpoint),
            "reliability": setting.reliability,
            "autostart": True,
            "diagnostics_rate_hz": 10.0,
        }
        keeping: dict[str, ParameterValue] = {"snapshot_dir": str(self.kept), "snapshot_period_s": 0.3}
        keeping["stream_timeout_s"] = 1.5
        careful: dict[str, ParameterValue] = {"start_enabled": False, "trajectory_stamp": "tick"}
        self.parameters: dict[str, dict[str, ParameterValue]] = {
            MEMORY: {**model, **keeping, **setting.memory},
            POLICY: {**model, **careful, **setting.policy},
        }
        self.processes: dict[str, NodeProcess] = {}
        self.link: Any = None
        self._starts = 0
        self.client = NodeClient(domain_id, NAMESPACE, "fault_bench")
        self.robot = DisturbedRobot(self.client, setting.reliability)
        self.watch = Watch(self.client)

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End all that runs."""
        for process in self.processes.values():
            if process.running:
                os.kill(process.pid, signal.SIGCONT)
        for process in self.processes.values():
            process.stop()
        self.client.close()

    def start(
        self,
        node: str,
        key: str = "",
        parameters: Mapping[str, ParameterValue] | None = None,
        environment: Mapping[str, str] | None = None,
        package: str = "trace_memory_ros.nodes",
        remappings: Mapping[str, str] | None = None,
    ) -> NodeProcess:
        """Start a node, known as `key` from now on; does not wait."""
        values = {**self.parameters.get(node, {}), **(parameters or {})}
        self._starts += 1
        spec = NodeSpec(node, values, remappings or {}, NAMESPACE, package=package)
        logs = self.folder / "logs" / f"{self._starts:02d}"
        known = {**self.environment, **(environment or {})}
        process = NodeProcess(spec, logs, known, self.prefixes.get(key or node, ()))
        self.processes[key or node] = process
        return process

    def ready(self, *keys: str) -> None:
        """Play until these nodes are active. Raises NodeFailed for one that ended or is not, BenchFailed unheard."""
        for key in keys:
            process = self.processes[key]
            if not self.play_until(partial(_started, process), READY_S) or not process.running:
                raise NodeFailed(f"{key} did not become active: {process.log[-600:]}")

    def play_until(self, condition: Callable[[], bool], timeout_s: float) -> bool:
        """Be the robot until `condition()`; False where it did not come."""
        return self.client.spin_until(condition, timeout_s)

    def play(self, seconds: float) -> None:
        """Be the robot for a while."""
        self.play_until(lambda: False, seconds)

    def send(self, key: str, number: int) -> None:
        """Send a signal to a node."""
        os.kill(self.processes[key].pid, number)

    def kill(self, key: str) -> None:
        """As a crash, or the kernel for want of memory."""
        self.send(key, signal.SIGKILL)
        self.processes.pop(key).stop()

    def dead(self) -> list[str]:
        """Nodes that ended without being told to, with the end of their logs."""
        gone = {key: process for key, process in self.processes.items() if not process.running}
        return [f"{key} ended with exit code {one.returncode}: {one.log[-300:]}" for key, one in gone.items()]


def _started(process: NodeProcess) -> bool:
    return READY in process.log or not process.running
