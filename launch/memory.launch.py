"""Memory and its RViz panel beside a real arm: `ros2 launch trace_memory_ros memory.launch.py checkpoint:=/path`."""

from launch.actions import DeclareLaunchArgument
from launch.conditions import IfCondition
from launch.substitutions import LaunchConfiguration
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription
from trace_memory_ros.nodes.launching import managed, rviz, surroundings

CAMERAS = ("overhead", "left_wrist", "right_wrist")


def generate_launch_description() -> LaunchDescription:
    """Launch arguments first, then the processes."""
    model = {
        "checkpoint": ParameterValue(LaunchConfiguration("checkpoint"), value_type=str),
        "reliability": LaunchConfiguration("reliability"),
    }
    kept = {"snapshot_dir": ParameterValue(LaunchConfiguration("snapshot_dir"), value_type=str)}
    topics = [(f"camera/{camera}/image_raw", LaunchConfiguration(f"{camera}_topic")) for camera in CAMERAS]
    topics += [("joint_states", LaunchConfiguration("joint_states_topic")), ("odom", LaunchConfiguration("odom_topic"))]
    command = [("command", LaunchConfiguration("command_topic"))]
    camera_arguments = [
        DeclareLaunchArgument(
            f"{camera}_topic", default_value=f"camera/{camera}/image_raw", description=f"Image topic of {camera}."
        )
        for camera in CAMERAS
    ]
    return LaunchDescription(
        [
            DeclareLaunchArgument("checkpoint", description="Checkpoint folder, or the name of a shipped one."),
            DeclareLaunchArgument("namespace", default_value="", description="Namespace of all nodes."),
            *camera_arguments,
            DeclareLaunchArgument("joint_states_topic", default_value="joint_states", description="JointState topic."),
            DeclareLaunchArgument(
                "odom_topic", default_value="odom",
                description="Base velocity; unused where the checkpoint masks the base.",
            ),
            DeclareLaunchArgument(
                "command_topic", default_value="command", description="Where policy_node sends its JointTrajectory.",
            ),
            DeclareLaunchArgument(
                "reliability", default_value="best_effort", choices=["best_effort", "reliable"],
                description="Quality of service of the sensor subscriptions.",
            ),
            DeclareLaunchArgument(
                "policy", default_value="false",
                description="Start policy_node too. It moves the arm: read docs/nodes.md first.",
            ),
            DeclareLaunchArgument(
                "snapshot_dir", default_value="",
                description="Folder in which memory_node keeps what it goes on from after a fault; empty keeps none.",
            ),
            DeclareLaunchArgument("respawn", default_value="false", description="Start a failed memory_node again."),
            DeclareLaunchArgument("rviz", default_value="false", description="Open RViz with the memory panel."),
            *surroundings(),
            managed("memory_node", {**model, **kept}, topics, respawn=LaunchConfiguration("respawn")),
            managed("marker_node", {}, topics[3:4]),
            managed("policy_node", model, topics + command, condition=IfCondition(LaunchConfiguration("policy"))),
            rviz(),
        ]
    )  # fmt: skip
