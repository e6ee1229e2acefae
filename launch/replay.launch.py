"""A bag into a live memory, with RViz: `ros2 launch trace_memory_ros replay.launch.py bag:=BAG checkpoint:=C`."""

import sys
from importlib.util import find_spec

from launch.actions import ExecuteProcess, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited

from launch import Action, LaunchContext, LaunchDescription
from trace_memory_ros.nodes.launch_arguments import REPLAY
from trace_memory_ros.nodes.launch_plan import replay_command, replay_plan
from trace_memory_ros.nodes.launching import Given, description, started


def decide(given: Given) -> list[Action]:
    """All nodes; the bag begins once the memory is active."""
    plan = replay_plan(given)
    played = replay_command(
        given["bag"],
        given["rate"],
        given["checkpoint"],
        given["namespace"],
        dict(plan.nodes[0].remaps),
        given["topics"].split(),
        ros2_bag=find_spec("ros2bag") is not None,
    )
    # A node that starts by itself may be active before launch listens for its transitions.
    waiting = [sys.executable, "-m", "trace_memory_ros.nodes.wait_active", "memory_node"]
    ready = ExecuteProcess(cmd=[*waiting, "--namespace", given["namespace"]], output="screen")

    def player(exited: ProcessExited, context: LaunchContext) -> list[Action]:
        failed = exited.returncode != 0 or context.is_shutdown
        return [] if failed else [ExecuteProcess(cmd=played, output="screen")]

    return [RegisterEventHandler(OnProcessExit(target_action=ready, on_exit=player)), *started(plan, given), ready]


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` asks for."""
    return description(REPLAY, decide)
