"""Memory and its RViz panel beside a real arm: `ros2 launch trace_memory_ros memory.launch.py checkpoint:=/path`."""

from launch.actions import DeclareLaunchArgument, SetEnvironmentVariable
from launch.conditions import IfCondition
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PathJoinSubstitution
from launch_ros.actions import LifecycleNode, Node
from launch_ros.parameter_descriptions import ParameterValue
from launch_ros.substitutions import FindPackageShare

from launch import LaunchDescription

PACKAGE = "trace_memory_ros"
CAMERAS = ("overhead", "left_wrist", "right_wrist")
NAMESPACE = LaunchConfiguration("namespace")


def managed(name: str, parameters: dict, remappings: list, **more: object) -> LifecycleNode:
    """One of this package's nodes with its config file, starting by itself."""
    config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", f"{name}.yaml"])
    return LifecycleNode(
        package=PACKAGE,
        executable=name,
        name=name,
        namespace=NAMESPACE,
        output="screen",
        parameters=[config, {"autostart": True, **parameters}],
        remappings=remappings,
        **more,
    )


def generate_launch_description() -> LaunchDescription:
    """Launch arguments first, then the processes."""
    model = {
        "checkpoint": ParameterValue(LaunchConfiguration("checkpoint"), value_type=str),
        "reliability": LaunchConfiguration("reliability"),
    }
    topics = [(f"camera/{camera}/image_raw", LaunchConfiguration(f"{camera}_topic")) for camera in CAMERAS]
    topics += [("joint_states", LaunchConfiguration("joint_states_topic")), ("odom", LaunchConfiguration("odom_topic"))]
    command = [("command", LaunchConfiguration("command_topic"))]
    rviz_config = PathJoinSubstitution([FindPackageShare(PACKAGE), "config", "memory.rviz"])
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
            DeclareLaunchArgument("rviz", default_value="false", description="Open RViz with the memory panel."),
            # Three cameras lose most of their images on the default shared-memory transport.
            SetEnvironmentVariable(
                "FASTDDS_BUILTIN_TRANSPORTS",
                EnvironmentVariable("FASTDDS_BUILTIN_TRANSPORTS", default_value="LARGE_DATA"),
            ),
            managed("memory_node", model, topics),
            managed("marker_node", {}, topics[3:4]),
            managed("policy_node", model, topics + command, condition=IfCondition(LaunchConfiguration("policy"))),
            Node(
                package="rviz2", executable="rviz2", arguments=["-d", rviz_config],
                condition=IfCondition(LaunchConfiguration("rviz")),
            ),
        ]
    )  # fmt: skip
