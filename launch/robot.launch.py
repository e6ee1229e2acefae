"""Memory and policy on any robot: `ros2 launch trace_memory_ros robot.launch.py checkpoint:=/path streams:=robot.yaml`.

It is a dry run until dry_run:=false, and moves nothing before policy_node/enable is called.
"""

from launch import Action, LaunchDescription
from trace_memory_ros.nodes.launch_arguments import ROBOT
from trace_memory_ros.nodes.launch_plan import robot_plan
from trace_memory_ros.nodes.launching import KNOWN, Given, description, started


def decide(given: Given) -> list[Action]:
    """All nodes."""
    return started(robot_plan(given, KNOWN, policy=True), given)


def generate_launch_description() -> LaunchDescription:
    """What `ros2 launch` asks for."""
    return description(ROBOT, decide)
