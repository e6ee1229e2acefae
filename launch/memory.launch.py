"""Memory without its policy, beside any robot: `ros2 launch trace_memory_ros memory.launch.py checkpoint:=/path`."""

from launch import Action, LaunchDescription
from trace_memory_ros.nodes.launch_arguments import MEMORY
from trace_memory_ros.nodes.launch_plan import robot_plan
from trace_memory_ros.nodes.launching import KNOWN, Given, description, started


def decide(given: Given) -> list[Action]:
    """Memory and markers."""
    return started(robot_plan(given, KNOWN, policy=False), given)


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` asks for."""
    return description(MEMORY, decide)
