"""The arguments of every launch file, said once."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from trace_memory_ros.files.strict import ConfigError

FLAG = ("true", "false")
REALTIME_PRIORITY = 20


@dataclass(frozen=True)
class Argument:
    """`name:=value` of a launch; default None where it must be given."""

    name: str
    description: str
    default: str | None = ""
    choices: tuple[str, ...] = ()


CHECKPOINT = Argument("checkpoint", "Checkpoint folder, or the name of a shipped one.", None)
NAMESPACE = Argument("namespace", "Namespace of all nodes.")
STREAMS = Argument(
    "streams",
    "This robot's topics, where they are not the checkpoint's: a YAML file, or '{STREAM: TOPIC, commands: {COMMAND: "
    "TOPIC}}', by the checkpoint's own names.",
)
RVIZ = Argument("rviz", "Open RViz with the memory panel.", "false", FLAG)
FRAME = Argument("frame", "tf frame that the panel stands in; empty for what marker_node's parameters say.")
LOG_LEVEL = Argument("log_level", "Of the nodes' own messages.", "info", ("debug", "info", "warn", "error", "fatal"))

MEMORY: tuple[Argument, ...] = (
    CHECKPOINT,
    STREAMS,
    NAMESPACE,
    Argument("params_file", "ROS parameter file; it wins over config/*.yaml, and launch arguments win over it."),
    Argument("use_sim_time", "Take the time from /clock.", "false", FLAG),
    Argument("autostart", "Nodes configure and activate by themselves; else a lifecycle manager does.", "true", FLAG),
    Argument(
        "realtime_priority",
        "Of memory and policy, 1 to 99, where the machine allows it (SCHED_FIFO; ros2_control takes 50); 0 for none.",
        str(REALTIME_PRIORITY),
    ),
    Argument("respawn", "Start nodes again after a fault, at most five times in five minutes.", "false", FLAG),
    Argument("snapshot_dir", "Folder in which the memory is kept while it ticks, to go on from after a fault."),
    RVIZ,
    FRAME,
    LOG_LEVEL,
)
ROBOT: tuple[Argument, ...] = (
    *MEMORY,
    Argument("dry_run", "Show commands on policy_node/dry_run/TOPIC in place of moving the robot.", "true", FLAG),
    Argument("start_enabled", "Send commands without a call of policy_node/enable.", "false", FLAG),
)
REPLAY: tuple[Argument, ...] = (
    Argument("bag", "Bag folder, or its .mcap or .db3 file.", None),
    CHECKPOINT,
    STREAMS,
    Argument(
        "topics",
        "Topics to play besides the sensors that the checkpoint observes, separated by spaces. A recorded command on "
        "its live topic moves a robot that listens there.",
    ),
    Argument("rate", "Bag seconds per second.", "1.0"),
    Argument("deadline_ms", "How long a tick waits for late streams; 0 takes the checkpoint's time, as live.", "2000"),
    Argument("namespace", "Namespace of all nodes: that of the topics in the bag."),
    Argument("rviz", "Open RViz with the memory panel.", "true", FLAG),
    FRAME,
    LOG_LEVEL,
)
DEMO: tuple[Argument, ...] = (
    Argument(
        "task", "Where the part came from, a colour shown early, or a part under one of three cups that are swapped.",
        "origin", ("origin", "colour", "cups"),
    ),
    Argument(
        "memory", "Which trained memory the policy is conditioned on; of cups there is gru.", "trace",
        ("trace", "gru", "first_frame", "none"),
    ),
    Argument("episodes", "Episodes to run, after which all ends; 0 runs on for ever.", "4"),
    Argument(
        "mode", "Pace of the simulator: the wall clock, or as fast as commands come.", "realtime",
        ("realtime", "lockstep"),
    ),
    Argument("extra_pause_s", "Pause between cue and branch, simulated seconds.", "0.0"),
    Argument(
        "reliability", "Quality of service of the sensor subscriptions; lock-step needs reliable.", "reliable",
        ("best_effort", "reliable"),
    ),
    NAMESPACE,
    Argument("rviz", "Open RViz with the memory panel.", "true", FLAG),
    LOG_LEVEL,
)  # fmt: skip


def whole(given: Mapping[str, str], name: str) -> int:
    """A launch argument that is a whole number. Raises ConfigError for another value."""
    try:
        return int(given[name])
    except ValueError as error:
        raise ConfigError(f"launch argument {name} = {given[name]!r}: must be a whole number") from error


def flag(given: Mapping[str, str], name: str) -> bool:
    """A launch argument that is true or false. Raises ConfigError for another value."""
    if given[name] not in FLAG:
        raise ConfigError(f"launch argument {name} = {given[name]!r}: must be true or false")
    return given[name] == "true"
