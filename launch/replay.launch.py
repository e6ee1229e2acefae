"""A bag into a live memory, with RViz: `ros2 launch trace_memory_ros replay.launch.py bag:=BAG checkpoint:=C`."""

import sys
from importlib.util import find_spec

from launch.actions import DeclareLaunchArgument, ExecuteProcess, LogInfo, RegisterEventHandler
from launch.event_handlers import OnProcessExit
from launch.events.process import ProcessExited
from launch.substitutions import LaunchConfiguration
from launch_ros.parameter_descriptions import ParameterValue

from launch import Action, LaunchContext, LaunchDescription
from trace_memory_ros.nodes.launch_plan import replay_command
from trace_memory_ros.nodes.launching import managed, rviz, surroundings

CAMERAS = ("overhead", "left_wrist", "right_wrist")
TOPICS = {f"camera/{camera}/image_raw": LaunchConfiguration(f"{camera}_topic") for camera in CAMERAS}
TOPICS |= {"joint_states": LaunchConfiguration("joint_states_topic"), "odom": LaunchConfiguration("odom_topic")}


def player(exited: ProcessExited, context: LaunchContext) -> list[Action]:
    """What plays the bag: the topics that the memory observes, and those asked for by name."""
    if exited.returncode:
        return []
    try:
        command = replay_command(
            LaunchConfiguration("bag").perform(context),
            LaunchConfiguration("rate").perform(context),
            LaunchConfiguration("checkpoint").perform(context),
            LaunchConfiguration("namespace").perform(context),
            {topic: name.perform(context) for topic, name in TOPICS.items()},
            LaunchConfiguration("topics").perform(context).split(),
            ros2_bag=find_spec("ros2bag") is not None,
        )
    except ValueError as error:
        return [LogInfo(msg=f"no bag is played: {error}")]
    return [ExecuteProcess(cmd=command, output="screen")]


def generate_launch_description() -> LaunchDescription:
    """Launch arguments first, then the processes; the bag begins once the memory is active."""
    model = {
        "checkpoint": ParameterValue(LaunchConfiguration("checkpoint"), value_type=str),
        "reliability": "reliable",
        "deadline_ms": ParameterValue(LaunchConfiguration("deadline_ms"), value_type=int),
    }
    topics = list(TOPICS.items())
    camera_arguments = [
        DeclareLaunchArgument(
            f"{camera}_topic", default_value=f"camera/{camera}/image_raw", description=f"Image topic of {camera}."
        )
        for camera in CAMERAS
    ]
    # A node that starts by itself may be active before launch listens for its transitions.
    waiting = [sys.executable, "-m", "trace_memory_ros.nodes.wait_active", "memory_node"]
    ready = ExecuteProcess(cmd=[*waiting, "--namespace", LaunchConfiguration("namespace")], output="screen")
    return LaunchDescription(
        [
            DeclareLaunchArgument("bag", description="Bag folder, or its .mcap or .db3 file."),
            DeclareLaunchArgument("checkpoint", description="Checkpoint folder, or the name of a shipped one."),
            DeclareLaunchArgument(
                "topics", default_value="",
                description="Topics to play besides the sensors that the checkpoint observes, separated by spaces. A "
                "recorded command on its live topic moves a robot that listens there.",
            ),
            DeclareLaunchArgument("rate", default_value="1.0", description="Bag seconds per second."),
            DeclareLaunchArgument(
                "deadline_ms", default_value="2000",
                description="How long a tick waits for late streams; 0 takes the checkpoint's time, as live.",
            ),
            DeclareLaunchArgument(
                "namespace", default_value="", description="Namespace of all nodes: that of the topics in the bag.",
            ),
            *camera_arguments,
            DeclareLaunchArgument("joint_states_topic", default_value="joint_states", description="JointState topic."),
            DeclareLaunchArgument(
                "odom_topic", default_value="odom",
                description="Base velocity; unused where the checkpoint masks the base.",
            ),
            DeclareLaunchArgument("rviz", default_value="true", description="Open RViz with the memory panel."),
            *surroundings(),
            RegisterEventHandler(OnProcessExit(target_action=ready, on_exit=player)),
            managed("memory_node", model, topics),
            ready,
            managed("marker_node", {}, topics[3:4]),
            rviz(),
        ]
    )  # fmt: skip
