"""What the launch files share; imported by them alone, since `launch` comes with a ROS install."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial

from launch.action import Action
from launch.actions import (
    DeclareLaunchArgument,
    EmitEvent,
    LogInfo,
    OpaqueFunction,
    RegisterEventHandler,
    SetEnvironmentVariable,
    TimerAction,
)
from launch.event_handlers import OnProcessExit
from launch.events import Shutdown
from launch.events.process import ProcessExited
from launch.launch_context import LaunchContext
from launch.launch_description import LaunchDescription
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode, Node
from launch_ros.substitutions import FindPackageShare

from trace_memory_ros.nodes.launch_arguments import Argument, flag
from trace_memory_ros.nodes.launch_plan import (
    RESTART_DELAY_S,
    LaunchPlan,
    NodePlan,
    Restarts,
    ros_arguments,
    rviz_arguments,
    rviz_missing,
)
from trace_memory_ros.nodes.markers.parameters import MarkerNodeParameters
from trace_memory_ros.nodes.memory.parameters import MemoryNodeParameters
from trace_memory_ros.nodes.parameters import specs
from trace_memory_ros.nodes.parent import PARENT
from trace_memory_ros.nodes.policy.parameters import PolicyNodeParameters
from trace_memory_ros.nodes.transport import BUILTIN, large_data

PACKAGE = "trace_memory_ros"
KNOWN = {
    name: (*specs(table), "use_sim_time")
    for name, table in (
        ("memory_node", MemoryNodeParameters),
        ("policy_node", PolicyNodeParameters),
        ("marker_node", MarkerNodeParameters),
    )
}
Given = Mapping[str, str]


def description(arguments: Sequence[Argument], decide: Callable[[Given], list[Action]]) -> LaunchDescription:
    """A launch file's content: its arguments, then what `decide` makes of their values."""

    def act(context: LaunchContext) -> list[Action]:
        return decide({one.name: LaunchConfiguration(one.name).perform(context) for one in arguments})

    return LaunchDescription([*map(_declared, arguments), *surroundings(), OpaqueFunction(function=act)])


def _declared(one: Argument) -> DeclareLaunchArgument:
    choices = {"choices": list(one.choices)} if one.choices else {}
    return DeclareLaunchArgument(one.name, default_value=one.default, description=one.description, **choices)


def surroundings() -> list[SetEnvironmentVariable]:
    """What every process of a launch is told.

    Raw pictures are lost on Fast DDS's default transports, so that others are taken; and each node ends when the launch
    is gone, however it went.
    """
    return [
        SetEnvironmentVariable(BUILTIN, EnvironmentVariable(BUILTIN, default_value=large_data())),
        SetEnvironmentVariable(PARENT, str(os.getpid())),
    ]


def started(plan: LaunchPlan, given: Given) -> list[Action]:
    """The plan's nodes, and RViz where launch argument `rviz` is true and it is installed."""
    actions: list[Action] = [LogInfo(msg=note) for note in plan.notes]
    respawn = "respawn" in given and flag(given, "respawn")
    for node in plan.nodes:
        actions += _watched(node, partial(_node, node, given), Restarts(respawn))
    return actions + (_rviz(given) if flag(given, "rviz") else [])


def end(reason: str, failed: bool = False) -> list[Action]:
    """Ends the launch. Raises RuntimeError where it `failed`, which is how launch comes to an exit code of 1."""
    if failed:
        raise RuntimeError(reason)
    return [EmitEvent(event=Shutdown(reason=reason))]


def _node(plan: NodePlan, given: Given) -> LifecycleNode:
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", f"{plan.name}.yaml"])
    return LifecycleNode(
        package=PACKAGE,
        executable=plan.name,
        name=plan.name,
        namespace=given["namespace"],
        output="screen",
        parameters=[config, *plan.params_files, dict(plan.parameters)],
        remappings=list(plan.remaps),
        ros_arguments=ros_arguments(plan.name, given["namespace"], given["log_level"]),
    )


def _watched(plan: NodePlan, make: Callable[[], Node], restarts: Restarts) -> list[Action]:
    """A process, and what its end means to the others."""
    node = make()

    def exited(event: ProcessExited, context: LaunchContext) -> list[Action]:
        if context.is_shutdown:
            return []
        _forget_name(context, node)
        words = f"{plan.name} ended with exit code {event.returncode}"
        if restarts.again(event.returncode, time.monotonic()):
            again = OpaqueFunction(function=lambda _: _watched(plan, make, restarts))
            return [LogInfo(msg=f"{words}, and is started again"), TimerAction(period=RESTART_DELAY_S, actions=[again])]
        if plan.required:
            return end(f"{words}, and all others end with it", failed=event.returncode != 0)
        return [LogInfo(msg=f"{words}; all else goes on")]

    return [RegisterEventHandler(OnProcessExit(target_action=node, on_exit=exited)), node]


def _forget_name(context: LaunchContext, node: Node) -> None:
    """Launch counts names of nodes that ended too, and would warn of two of one name at a restart."""
    counts = getattr(context.locals, "unique_ros_node_names", {})
    if counts.get(node.node_name, 0):
        counts[node.node_name] -= 1


def _rviz(given: Given) -> list[Action]:
    missing = rviz_missing()
    if missing:
        return [LogInfo(msg=missing)]
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", "memory.rviz"])
    words, remaps = rviz_arguments(given["namespace"], given.get("frame", ""))

    def make() -> Node:
        return Node(package="rviz2", executable="rviz2", arguments=["-d", config, *words], remappings=list(remaps))

    return _watched(NodePlan("rviz2", required=False), make, Restarts(False))
