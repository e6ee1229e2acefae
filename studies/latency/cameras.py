"""A made-up robot with two cameras of 640x480 at 30 Hz, one raw and one JPEG: how many pictures memory_node hears."""

from __future__ import annotations

import os
import shutil
from pathlib import Path
from typing import Any

import cv2
import numpy as np
from sensor_msgs.msg import CompressedImage

from studies.faults.models import made_up_checkpoint
from studies.faults.robot import ENCODERS, EYE, JAW, NAMESPACE, WRIST, DisturbedRobot
from studies.grid import Figures
from studies.latency.listener import Listener, latencies
from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import conversion
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.node_client import EpisodeFailed, NodeClient
from trace_memory_ros.nodes.processes import NodeGroup, NodeSpec, ParameterValue
from trace_memory_ros.nodes.transport import private_environment

RATES_HZ = {EYE: 30.0, WRIST: 30.0, ENCODERS: 125.0, JAW: 20.0}
HEIGHT, WIDTH = 480, 640
PICTURES = 16
READY_S, WARM = 60.0, 30


class LargePictures(DisturbedRobot):
    """The robot of the faults with larger cameras, whose pictures are made beforehand. sent: by stream."""

    def __init__(self, client: NodeClient, reliability: str) -> None:
        rng = np.random.default_rng(0)
        grounds = [rng.integers(0, 256, (HEIGHT, WIDTH, 3), dtype=np.uint8) for _ in range(PICTURES)]
        self._raw = [conversion.image_message(ground, 0, EYE) for ground in grounds]
        files = [cv2.imencode(".jpg", cv2.GaussianBlur(ground, (0, 0), 3))[1].tobytes() for ground in grounds]
        self._files = [CompressedImage(header=conversion.header(0, WRIST), format="jpeg", data=file) for file in files]
        self.sent = dict.fromkeys(RATES_HZ, 0)
        super().__init__(client, reliability)
        self.disturbance.rates = dict(RATES_HZ)

    def message(self, name: str, ns: int) -> Any:
        self.sent[name] += 1
        if name not in (EYE, WRIST):
            return super().message(name, ns)
        message = (self._raw if name == EYE else self._files)[self.sent[name] % PICTURES]
        message.header = conversion.header(ns, name)
        return message


def measure(priority: int, reliability: str, seconds: float, folder: Path) -> Figures:
    """Memory and policy at real-time `priority`; the robot, this process, at none. Raises NodeFailed, EpisodeFailed."""
    shutil.rmtree(folder, ignore_errors=True)
    checkpoint = made_up_checkpoint(folder / "checkpoint")
    model: dict[str, ParameterValue] = {
        "checkpoint": str(checkpoint.absolute()),
        "reliability": reliability,
        "realtime_priority": priority,
        "autostart": True,
    }
    specs = [NodeSpec(name, model, namespace=NAMESPACE) for name in ("memory_node", "policy_node")]
    with DomainClaim() as domain_id:
        environment = private_environment(domain_id)
        os.environ.update(environment)
        with (
            NodeGroup(specs, folder / "logs", environment) as group,
            NodeClient(domain_id, NAMESPACE, "eyes") as client,
        ):
            group.wait_ready(READY_S)
            robot, listener = LargePictures(client, reliability), Listener(client)
            if not client.spin_until(lambda: listener.newest is not None and listener.newest.tick >= WARM, READY_S):
                raise EpisodeFailed(f"fewer than {WARM} ticks within {READY_S:g} s: see the logs in {folder / 'logs'}")
            listener.listening, sent, before = True, dict(robot.sent), _heard(listener)
            client.spin_until(lambda: False, seconds)
            group.check_alive()
            after = _heard(listener)
    pictures = {name: [after[name] - before[name], robot.sent[name] - sent[name]] for name in (EYE, WRIST)}
    good = listener.statuses.count(MemoryCondition.OK)
    return {"ticks": len(listener.statuses), "ok": good, "pictures": pictures, **latencies([listener])}


def _heard(listener: Listener) -> dict[str, int]:
    """Messages that memory_node has received, by stream."""
    record = listener.newest
    assert record is not None
    return dict(zip(record.input_names, map(int, record.input_received), strict=True))
