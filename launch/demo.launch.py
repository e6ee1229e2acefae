"""The simulated arm, its memory, a policy and the RViz panel: `ros2 launch trace_memory_ros demo.launch.py`."""

from pathlib import Path

from launch.actions import ExecuteProcess, RegisterEventHandler, SetEnvironmentVariable
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.logging import launch_config
from launch.substitutions import EnvironmentVariable

from launch import Action, LaunchContext, LaunchDescription
from trace_memory_ros.arm.controllers.simulated import write_robot
from trace_memory_ros.nodes.launch_arguments import DEMO
from trace_memory_ros.nodes.launch_plan import demo_plan, demo_player
from trace_memory_ros.nodes.launching import Given, description, end, started


def over(event: ProcessExited, context: LaunchContext) -> list[Action]:
    """After the last episode all ends."""
    if context.is_shutdown:
        return []
    return end(f"the demo ended with exit code {event.returncode}", failed=event.returncode != 0)


def decide(given: Given) -> list[Action]:
    """All nodes, and what runs the episodes."""
    robot = write_robot(Path(launch_config.log_dir) / "robot.yaml")
    player = ExecuteProcess(cmd=demo_player(given), output="screen")
    renderer = SetEnvironmentVariable("MUJOCO_GL", EnvironmentVariable("MUJOCO_GL", default_value="egl"))
    watch = RegisterEventHandler(OnProcessExit(target_action=player, on_exit=over))
    return [renderer, watch, *started(demo_plan(given, robot), given), player]


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` asks for."""
    return description(DEMO, decide)
