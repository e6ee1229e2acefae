"""What the launch files share; imported by them alone, since `launch` comes with a ROS install."""

from __future__ import annotations

from typing import Any

from launch.actions import SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode, Node
from launch_ros.substitutions import FindPackageShare

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


def lossless_transport() -> SetEnvironmentVariable:
    """Three cameras lose most of their images on the default shared-memory transport."""
    name = "FASTDDS_BUILTIN_TRANSPORTS"
    return SetEnvironmentVariable(name, EnvironmentVariable(name, default_value="LARGE_DATA"))


def rviz() -> Node:
    """RViz with the memory panel, where launch argument `rviz` is true."""
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", "memory.rviz"])
    wanted = IfCondition(LaunchConfiguration("rviz"))
    return Node(package="rviz2", executable="rviz2", arguments=["-d", config], condition=wanted)
