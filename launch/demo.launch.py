"""The simulated arm, its memory, a policy and the RViz panel: `ros2 launch trace_memory_ros demo.launch.py`."""

import sys

from launch.actions import DeclareLaunchArgument, ExecuteProcess, SetEnvironmentVariable
from launch.substitutions import EnvironmentVariable, LaunchConfiguration, PythonExpression
from launch_ros.parameter_descriptions import ParameterValue

from launch import LaunchDescription
from trace_memory_ros.nodes.launching import managed, rviz, surroundings

TASK = LaunchConfiguration("task")
NAMESPACE = LaunchConfiguration("namespace")
# The stamps of a lock-step episode are not the clock's.
EXPRESSION = ["0 if '", LaunchConfiguration("mode"), "' == 'lockstep' else 500"]
AGE_LIMIT = {"command_age_limit_ms": ParameterValue(PythonExpression(EXPRESSION), value_type=int)}


def generate_launch_description() -> LaunchDescription:
    """Launch arguments first, then the processes."""
    checkpoint = ParameterValue([TASK, "_", LaunchConfiguration("memory")], value_type=str)
    model = {"checkpoint": checkpoint, "reliability": LaunchConfiguration("reliability")}
    player = [sys.executable, "-m", "trace_memory_ros.arm.nodes.episode_player", "--task", TASK]
    player += ["--namespace", NAMESPACE, "--episodes", LaunchConfiguration("episodes")]
    player += ["--mode", LaunchConfiguration("mode")]
    player += ["--extra-pause-s", LaunchConfiguration("extra_pause_s")]
    return LaunchDescription(
        [
            DeclareLaunchArgument(
                "task", default_value="origin", choices=["origin", "colour"],
                description="Delayed-evidence task: where the part came from, or a colour shown early.",
            ),
            DeclareLaunchArgument(
                "memory", default_value="trace", choices=["trace", "gru", "none"],
                description="Which trained memory the policy is conditioned on.",
            ),
            DeclareLaunchArgument("episodes", default_value="4", description="Episodes to run; 0 runs on for ever."),
            DeclareLaunchArgument(
                "mode", default_value="realtime", choices=["realtime", "lockstep"],
                description="Pace of the simulator: the wall clock, or as fast as commands come.",
            ),
            DeclareLaunchArgument(
                "extra_pause_s", default_value="0.0", description="Pause between cue and branch, simulated seconds.",
            ),
            DeclareLaunchArgument(
                "reliability", default_value="reliable", choices=["best_effort", "reliable"],
                description="Quality of service of the sensor subscriptions; lock-step needs reliable.",
            ),
            DeclareLaunchArgument("namespace", default_value="", description="Namespace of all nodes."),
            DeclareLaunchArgument("rviz", default_value="true", description="Open RViz with the memory panel."),
            *surroundings(),
            SetEnvironmentVariable("MUJOCO_GL", EnvironmentVariable("MUJOCO_GL", default_value="egl")),
            managed("arm_sim_node", {"task": TASK, "mode": LaunchConfiguration("mode")}),
            # Generous waits: on a busy machine a lock-step tick would otherwise go on without its images.
            managed("memory_node", {**model, "deadline_ms": 2000}),
            managed("policy_node", {**model, "input_wait_ms": 2000, "trajectory_stamp": "tick", **AGE_LIMIT}),
            managed("marker_node", {}),
            ExecuteProcess(cmd=player, output="screen"),
            rviz(),
        ]
    )  # fmt: skip
