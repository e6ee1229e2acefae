"""What the launch files decide, apart from `launch` itself, which comes with a ROS 2 installation only."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from trace_memory_ros.nodes.played_topics import absolute, sensor_topics

RECORDED = ("memory/condition", "memory/diagnostics", "memory/markers")
"""What a live run left in the bag plays beside what the memory publishes now, not into it."""


def rviz_missing() -> str:
    """Why RViz cannot be started, with the remedy; empty where it can. Looked for as launch does."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    index = "share/ament_index/resource_index/packages/rviz2"
    if any(Path(prefix, index).is_file() for prefix in prefixes if prefix):
        return ""
    distribution = os.environ.get("ROS_DISTRO", "DISTRO")
    return (
        "RViz is left out, all else goes on: package rviz2 is not installed. "
        f"sudo apt-get install -y ros-{distribution}-rviz2, or launch with rviz:=false"
    )


def replay_command(
    bag: str,
    rate: str,
    checkpoint: str,
    namespace: str = "",
    renamed: Mapping[str, str] | None = None,
    more: Sequence[str] = (),
    ros2_bag: bool = False,
) -> list[str]:
    """The command that plays a bag to a live memory: `ros2 bag play` where it is installed, else this package's player.

    Only what `sensor_topics` names is played, and `more`: a recorded command on its live topic would move the robot.
    Raises ValueError as `sensor_topics`.
    """
    asked = [absolute(topic, namespace) for topic in more]
    topics = list(dict.fromkeys([*sensor_topics(checkpoint, namespace, renamed), *asked]))
    own = [absolute(name, namespace) for name in RECORDED]
    rules = [f"{name}:=/recorded{name}" for name in own if name in topics]
    command = ["ros2", "bag", "play", bag]
    if not ros2_bag:
        command = [sys.executable, "-m", "trace_memory_ros.nodes.bag_player_node", bag, "--wait-s", "5"]
    command += ["--rate", rate, "--topics", *topics]
    return [*command, "--remap", *rules] if rules else command
