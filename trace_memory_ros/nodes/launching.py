"""What the launch files share; imported by them alone, since `launch` comes with a ROS install."""

from __future__ import annotations

import os
from typing import Any

from launch.action import Action
from launch.actions import LogInfo, OpaqueFunction, SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.launch_context import LaunchContext
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode, Node
from launch_ros.substitutions import FindPackageShare

from trace_memory_ros.nodes.launch_plan import rviz_missing
from trace_memory_ros.nodes.parent import PARENT

PACKAGE = "trace_memory_ros"


def managed(name: str, parameters: dict[str, Any], remappings: list[Any] | None = None, **more: Any) -> LifecycleNode:
    """One of this package's nodes with its config file, in launch argument `namespace`, starting by itself."""
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", f"{name}.yaml"])
    return LifecycleNode(
        package=PACKAGE,
        executable=name,
        name=name,
        namespace=LaunchConfiguration("namespace"),
        output="screen",
        parameters=[config, {"autostart": True, **parameters}],
        remappings=remappings or [],
        **more,
    )


def surroundings() -> list[SetEnvironmentVariable]:
    """What every process of a launch is told.

    Three cameras lose most of their images on the default shared-memory transport, so that another is taken; and each
    node ends when the launch is gone, however it went.
    """
    name = "FASTDDS_BUILTIN_TRANSPORTS"
    return [
        SetEnvironmentVariable(name, EnvironmentVariable(name, default_value="LARGE_DATA")),
        SetEnvironmentVariable(PARENT, str(os.getpid())),
    ]


def rviz() -> OpaqueFunction:
    """RViz with the memory panel, where launch argument `rviz` is true; else words that say it is not installed."""
    return OpaqueFunction(function=_start_rviz, condition=IfCondition(LaunchConfiguration("rviz")))


def _start_rviz(_: LaunchContext) -> list[Action]:
    missing = rviz_missing()
    if missing:
        return [LogInfo(msg=missing)]
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", "memory.rviz"])
    return [Node(package="rviz2", executable="rviz2", arguments=["-d", config])]
