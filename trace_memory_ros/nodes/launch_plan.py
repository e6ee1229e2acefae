"""What the launch files decide, apart from `launch` itself, which comes with a ROS 2 installation only."""

from __future__ import annotations

import fnmatch
import os
import re
import sys
from collections import deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import yaml

from trace_memory_ros.files.home import opened
from trace_memory_ros.files.strict import ConfigError, nearest
from trace_memory_ros.nodes.launch_arguments import REALTIME_PRIORITY, flag, whole
from trace_memory_ros.nodes.markers.groups import ARMS
from trace_memory_ros.nodes.permissions import enclave
from trace_memory_ros.nodes.played_topics import absolute, lost_in_play, sensor_topics
from trace_memory_ros.nodes.policy.parameters import LOCKSTEP
from trace_memory_ros.nodes.robot_topics import Remaps, RobotTopics
from trace_memory_ros.runtime.message_fields import CONDITION_TOPIC, MARKERS_TOPIC, RECORD_TOPIC, SEEN_TOPIC
from trace_memory_ros.runtime.shipped import find_checkpoint

RECORDED = (CONDITION_TOPIC, RECORD_TOPIC, MARKERS_TOPIC)
"""What a live run left in the bag plays beside what the memory publishes now, not into it."""
RVIZ_TOPICS = (MARKERS_TOPIC, SEEN_TOPIC)
RESTART_DELAY_S = 2.0
DEMO_RATE_HZ = 50.0
"""Of the demo's controllers in real time: that of the simulator's joints."""
LOCKSTEP_WAIT_S = 20.0
"""How long a tick of the demo's lock-step waits for its command, and half of it for its inputs."""
ROS_PARAMETERS = "ros__parameters"


@dataclass(frozen=True)
class NodePlan:
    """One process. required: the launch ends when it ended for good; of others only words tell.

    params_files: ROS parameter files that `parameters` win over.
    """

    name: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    remaps: Remaps = ()
    required: bool = True
    params_files: tuple[str, ...] = ()


@dataclass(frozen=True)
class LaunchPlan:
    """What a launch starts, and what it says first."""

    nodes: tuple[NodePlan, ...]
    notes: tuple[str, ...] = ()


class Restarts:
    """Whether a process that ended is started again: after a fault, and at most `most` times within `within_s`."""

    def __init__(self, wanted: bool, most: int = 5, within_s: float = 300.0) -> None:
        self._wanted, self._within_s = wanted, within_s
        self._most = most
        self._begun: deque[float] = deque()

    def again(self, returncode: int, now_s: float) -> bool:
        """Judge an end at a time, of a clock that never jumps; counts the restart where it says so."""
        while self._begun and now_s - self._begun[0] > self._within_s:
            self._begun.popleft()
        if not self._wanted or returncode == 0 or len(self._begun) >= self._most:
            return False
        self._begun.append(now_s)
        return True


def robot_plan(given: Mapping[str, str], known: Mapping[str, Collection[str]], policy: bool) -> LaunchPlan:
    """Memory, its markers and, where `policy`, what moves the robot.

    given: the launch arguments. known: parameters by node. Raises ValueError for a checkpoint, a stream's name or a
    parameter that does not exist.
    """
    topics = RobotTopics.of_checkpoint(given["checkpoint"])
    # Launch passes over a file that it does not find, and no shell expands the ~ of NAME:=~/FILE.
    path = _expanded(given["params_file"]) if given["params_file"] else ""
    if policy and path:
        topics = topics.commanding(_said(path, "actions_file", absolute("policy_node", given["namespace"])))
    remaps = topics.remaps(given["streams"])
    model: dict[str, Any] = {"checkpoint": given["checkpoint"], "autostart": flag(given, "autostart")}
    if flag(given, "use_sim_time"):
        model["use_sim_time"] = True
    kept = {"snapshot_dir": given["snapshot_dir"]} if given["snapshot_dir"] else {}
    prompt = {**model, "realtime_priority": whole(given, "realtime_priority")}
    nodes = [NodePlan("memory_node", {**prompt, **kept}, _of(topics.streams, remaps))]
    if policy:
        guards = {"dry_run": flag(given, "dry_run"), "start_enabled": flag(given, "start_enabled")}
        nodes.append(NodePlan("policy_node", {**prompt, **guards}, remaps))
    nodes.append(_markers(model, given, topics, remaps))
    notes: tuple[str, ...] = ()
    if path:
        notes = check_params_file(path, known, nodes, given["namespace"])
        nodes = [replace(node, params_files=(path,)) for node in nodes]
    return LaunchPlan(tuple(nodes), (*notes, *(policy_notes(given, topics, remaps) if policy else ())))


def replay_plan(given: Mapping[str, str]) -> LaunchPlan:
    """A memory that a bag is played to, and the panel. Raises ValueError as `robot_plan`."""
    topics = RobotTopics.of_checkpoint(given["checkpoint"])
    remaps = topics.remaps(given["streams"])
    model: dict[str, Any] = {"checkpoint": given["checkpoint"], "reliability": "reliable", "autostart": True}
    memory = {**model, "deadline_ms": whole(given, "deadline_ms")}
    nodes = (NodePlan("memory_node", memory, _of(topics.streams, remaps)), _markers(model, given, topics, remaps))
    lost = lost_in_play(given["checkpoint"])
    return LaunchPlan(nodes, (lost,) if lost else ())


def _expanded(path: str) -> str:
    """`path` without ~. Raises ConfigError for the home of a user who is not there."""
    return str(opened(path))


def _markers(model: Mapping[str, Any], given: Mapping[str, str], topics: RobotTopics, remaps: Remaps) -> NodePlan:
    frame = {"frame_id": given["frame"]} if given["frame"] else {}
    return NodePlan("marker_node", {**model, **frame}, _of(topics.streams, remaps), required=False)


def _of(named: Mapping[str, str], remaps: Remaps) -> Remaps:
    return tuple(rule for rule in remaps if rule[0] in named.values())


def policy_notes(given: Mapping[str, str], topics: RobotTopics, remaps: Remaps) -> tuple[str, ...]:
    """Where commands go, and what it takes until the robot moves."""
    space = given["namespace"]
    node = absolute("policy_node", space)
    if flag(given, "dry_run"):
        shown = ", ".join(f"{node}/dry_run/{topic.lstrip('~/')}" for topic in topics.commands.values())
        return (f"dry run: commands are shown on {shown}, and nothing goes to the robot; dry_run:=false moves it",)
    sent = ", ".join(absolute(dict(remaps).get(topic, topic), space) for topic in topics.commands.values())
    if flag(given, "start_enabled"):
        return (f"commands go to {sent} from the first complete observation on",)
    return (f"commands go to {sent} once enabled: ros2 service call {node}/enable std_srvs/srv/Trigger",)


@dataclass(frozen=True)
class DemoCell:
    """What runs in a cell of the demo. robot: file of the controllers, and of the policy's outputs for them.

    realtime_priority: of simulator, memory and policy, where the machine allows it.
    """

    task: str
    checkpoint: str
    lockstep: bool
    robot: str
    reliability: str = "reliable"
    realtime_priority: int = 0


def demo_nodes(cell: DemoCell) -> tuple[NodePlan, ...]:
    """The simulated arm and its controllers, a memory and a policy, and the panel: the demo's graph and the launch's.

    In real time they run as on a robot. In lock-step simulated time stands still meanwhile: on a busy machine a late
    sample is waited for instead of given up.
    """
    mode = "lockstep" if cell.lockstep else "realtime"
    prompt = {"realtime_priority": cell.realtime_priority, "autostart": True}
    model = {"checkpoint": cell.checkpoint, "reliability": cell.reliability, **prompt}
    sim: dict[str, Any] = {"task": cell.task, "mode": mode, **prompt}
    memory, policy = dict(model), {**model, "actions_file": cell.robot}
    control = {"controllers_file": cell.robot, "update_rate_hz": DEMO_RATE_HZ, "autostart": True}
    if cell.lockstep:
        sim["command_timeout_s"] = LOCKSTEP_WAIT_S
        control["update_rate_hz"] = 0.0
        waits = round(1e3 * LOCKSTEP_WAIT_S / 2)
        memory["deadline_ms"] = waits
        policy |= {**LOCKSTEP, "input_wait_ms": waits, "chunk_wait_ms": waits}
    panel = {"joint_groups": ARMS, "reliability": cell.reliability, "autostart": True}
    return (
        NodePlan("arm_sim_node", sim),
        NodePlan("controller_node", control),
        NodePlan("memory_node", memory),
        NodePlan("policy_node", policy),
        NodePlan("marker_node", panel, required=False),
    )


def demo_plan(given: Mapping[str, str], robot: str) -> LaunchPlan:
    """The demo's graph with a shipped checkpoint. robot: as `DemoCell` has it.

    Raises ConfigError where none is shipped of the task and the memory.
    """
    lockstep, checkpoint = given["mode"] == "lockstep", f"{given['task']}_{given['memory']}"
    try:
        find_checkpoint(checkpoint)
    except ValueError as error:
        raise ConfigError(f"launch arguments task = {given['task']}, memory = {given['memory']}: {error}") from error
    priority = 0 if lockstep else REALTIME_PRIORITY
    return LaunchPlan(demo_nodes(DemoCell(given["task"], checkpoint, lockstep, robot, given["reliability"], priority)))


def demo_player(given: Mapping[str, str]) -> list[str]:
    """The command that runs the demo's episodes, and ends with the last."""
    command = [sys.executable, "-m", "trace_memory_ros.arm.nodes.episode_player"]
    words = [("task", "task"), ("namespace", "namespace"), ("episodes", "episodes"), ("mode", "mode")]
    for option, name in (*words, ("extra-pause-s", "extra_pause_s")):
        command += [f"--{option}", given[name]]
    return command


def rviz_missing() -> str:
    """Why RViz cannot be started, with the remedy; empty where it can. Looked for as launch does."""
    prefixes = os.environ.get("AMENT_PREFIX_PATH", "").split(os.pathsep)
    index = "share/ament_index/resource_index/packages/rviz2"
    if any(Path(prefix, index).is_file() for prefix in prefixes if prefix):
        return ""
    distribution = os.environ.get("ROS_DISTRO", "DISTRO")
    return (
        "RViz is left out, all else goes on: package rviz2 is not installed. "
        f"sudo apt-get install -y ros-{distribution}-rviz2, or launch with rviz:=false"
    )


def rviz_arguments(namespace: str, frame: str) -> tuple[list[str], Remaps]:
    """What RViz is told, and its remaps: its displays name absolute topics, which a namespace moves."""
    remaps = tuple((absolute(topic), absolute(topic, namespace)) for topic in RVIZ_TOPICS)
    return ["-f", frame] if frame else [], remaps if namespace.strip("/") else ()


def ros_arguments(name: str, namespace: str, level: str) -> list[str]:
    """A node's enclave, which counts where ROS_SECURITY_ENABLE is true, and the level of its own logger.

    At debug, the loggers of the middleware would drown it.
    """
    logger = absolute(name, namespace).strip("/").replace("/", ".")
    return ["--enclave", enclave(name, namespace), "--log-level", f"{logger}:={level}"]


def check_params_file(
    path: str, known: Mapping[str, Collection[str]], nodes: Sequence[NodePlan], namespace: str = ""
) -> tuple[str, ...]:
    """What a file of parameters says in vain, since the launch arguments win, or since it is of another namespace; ROS
    itself passes over wrong names.

    Raises ConfigError for a file that cannot be read, for a section or parameter of no node, and for a section that
    names a node of this launch without the namespace that it runs in.
    """
    notes = []
    for section, values in _sections(_parameters_in(path), path):
        named = [node for node in nodes if _matches(section, node.name)]
        meant = [node for node in named if _reaches(section, absolute(node.name, namespace))]
        if named and not meant:
            notes.append(_missed(path, section, absolute(named[0].name, namespace)))
        others = [name for name in known if _matches(section, name)]
        if not others:
            raise ConfigError(f"{path}: section {section!r} is of no node of this package; {nearest(section, known)}")
        names = {name for other in others for name in known[other]}
        for name, value in values.items():
            if name not in names:
                raise ConfigError(f"{path}: {section}: parameter {name!r} does not exist; {nearest(name, names)}")
            for node in meant:
                if node.parameters.get(name, value) != value:
                    notes.append(
                        f"{path}: {section}: {name} = {value} does not count: the launch says {node.parameters[name]}"
                    )
    return tuple(notes)


def _parameters_in(path: str) -> object:
    try:
        return yaml.safe_load(Path(path).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        raise ConfigError(f"params_file = {path}: cannot be read: {error}; correct the path or the file") from error


def _said(path: str, name: str, node: str) -> str:
    """The text that a file of parameters gives a node for one of them, the last that does; empty for none."""
    found = [values[name] for section, values in _sections(_parameters_in(path), path)
             if name in values and _reaches(section, node)]  # fmt: skip
    return str(found[-1] or "") if found else ""


def _sections(data: object, path: str, prefix: str = "") -> list[tuple[str, Mapping[str, Any]]]:
    """(node, parameters) of a ROS parameter file, namespaces joined by slashes."""
    if not isinstance(data, Mapping):
        raise ConfigError(f"{path}: {prefix or 'its content'} must be a mapping, {{NODE: {{{ROS_PARAMETERS}: ...}}}}")
    found = []
    for key, value in data.items():
        if key == ROS_PARAMETERS:
            if not isinstance(value, Mapping):
                raise ConfigError(f"{path}: {prefix}: {ROS_PARAMETERS} must be a mapping, {{NAME: VALUE}}")
            found.append((prefix or "/**", value))
        else:
            found += _sections(value, path, f"{prefix}/{key}" if prefix else str(key))
    return found


def _missed(path: str, section: str, node: str) -> str:
    """That a section is of another namespace than `node`. Raises ConfigError where it names none: it was meant."""
    if "/" not in section.strip("/"):
        last = section.strip("/")
        raise ConfigError(f"{path}: section {section!r} does not reach {node}: write /**/{last}, or {node}")
    return f"{path}: section {section!r} does not count: this launch starts {node}"


def _reaches(section: str, node: str) -> bool:
    """Whether ROS gives a section's parameters to a node of that whole name: * is one word of it, ** any number."""
    words = (word for word in section.split("/") if word)
    pattern = "".join(r"(/\w+)*" if word == "**" else "/" + re.escape(word).replace(r"\*", r"\w+") for word in words)
    return re.fullmatch(pattern, node) is not None


def _matches(section: str, node: str) -> bool:
    last = section.rpartition("/")[2]
    return last == "**" or fnmatch.fnmatchcase(node, last)


def replay_command(
    bag: str,
    rate: str,
    checkpoint: str,
    namespace: str = "",
    renamed: Mapping[str, str] | None = None,
    more: Sequence[str] = (),
    ros2_bag: bool = False,
) -> list[str]:
    """The command that plays a bag to a live memory: `ros2 bag play` where it is installed, else this package's player.

    Only what `sensor_topics` names is played, and `more`: a recorded command on its live topic would move the robot.
    Raises ValueError as `sensor_topics`.
    """
    asked = [absolute(topic, namespace) for topic in more]
    topics = list(dict.fromkeys([*sensor_topics(checkpoint, namespace, renamed), *asked]))
    own = [absolute(name, namespace) for name in RECORDED]
    rules = [f"{name}:=/recorded{name}" for name in own if name in topics]
    file = _expanded(bag)
    command = ["ros2", "bag", "play", file]
    if not ros2_bag:
        command = [sys.executable, "-m", "trace_memory_ros.nodes.bag_player_node", file, "--wait-s", "5"]
    command += ["--rate", rate, "--topics", *topics]
    return [*command, "--remap", *rules] if rules else command
