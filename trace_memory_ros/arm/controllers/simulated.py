"""The controllers of the simulated arms, and a policy's outputs for them: one file that both nodes read."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.arm.controllers.config import FORWARD, TRAJECTORY, ControllerConfig, plain
from trace_memory_ros.arm.sim.names import ARMS, JOINT_NAMES, SUCTION_NAMES

CONTROLLERS = (
    *(
        ControllerConfig(
            f"{arm}_arm_controller",
            TRAJECTORY,
            tuple(name for name in JOINT_NAMES if name.startswith(arm)),
            interpolate_from_desired_state=True,
        )
        for arm in ARMS
    ),
    ControllerConfig("suction_controller", FORWARD, SUCTION_NAMES),
)


def actions() -> list[dict[str, Any]]:
    """A part per controller, as `actions` of a configuration has them."""
    parts: list[dict[str, Any]] = []
    for one in CONTROLLERS:
        if one.type == TRAJECTORY:
            kind, select = "trajectory_msgs/msg/JointTrajectory", {"position": list(one.joints)}
            parts.append({"topic": one.command_topic, "type": kind, "select": select})
        else:
            kind, numbers = "std_msgs/msg/Float64MultiArray", {name: i for i, name in enumerate(one.joints)}
            parts.append({"topic": one.command_topic, "type": kind, "select": numbers, "stamp": "received"})
    return parts


def write_robot(path: Path) -> str:
    """Write `controllers` and `actions` as YAML; returns the path."""
    path.parent.mkdir(parents=True, exist_ok=True)
    content = {"controllers": plain(CONTROLLERS), "actions": actions()}
    path.write_text(yaml.safe_dump(content, sort_keys=False), encoding="utf-8")
    return str(path)
