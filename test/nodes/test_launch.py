"""Launch files start what exists; where ROS's launch is installed, they are run."""

from __future__ import annotations

import ast
import importlib.util
import inspect
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from fixtures import tiny_checkpoint
from learning.tiny_bags import TICKS, recording, write_bag
from nodes.test_parameters import TABLES

from trace_memory_ros.files.strict import ConfigError
from trace_memory_ros.msg import MemoryCondition
from trace_memory_ros.nodes import launch_arguments, qos
from trace_memory_ros.nodes.launch_arguments import DEMO, MEMORY, REPLAY, ROBOT, Argument
from trace_memory_ros.nodes.launch_plan import LaunchPlan, demo_plan, demo_player, replay_plan, robot_plan
from trace_memory_ros.nodes.node_client import NodeClient
from trace_memory_ros.nodes.parameters import specs

ROOT = Path(__file__).resolve().parents[2]
FILES = {path.name.split(".")[0]: path for path in sorted((ROOT / "launch").glob("*.launch.py"))}
ARGUMENTS = {"demo": DEMO, "memory": MEMORY, "replay": REPLAY, "robot": ROBOT}
KNOWN = {name: (*specs(table), "use_sim_time") for name, table in TABLES.items()}
REQUIRED = {"checkpoint": "origin_trace", "bag": "bag"}


def given(arguments: tuple[Argument, ...], **changes: str) -> dict[str, str]:
    """Launch arguments at their defaults, but for `changes`."""
    values = {one.name: REQUIRED[one.name] if one.default is None else one.default for one in arguments}
    assert set(changes) <= set(values)
    return values | changes


def plans() -> Iterator[LaunchPlan]:
    yield robot_plan(given(ROBOT, use_sim_time="true", frame="base", snapshot_dir="/tmp"), KNOWN, policy=True)
    yield robot_plan(given(MEMORY), KNOWN, policy=False)
    yield replay_plan(given(REPLAY))
    for mode in ("realtime", "lockstep"):
        yield demo_plan(given(DEMO, mode=mode), "robot.yaml")


def test_every_launch_file_has_its_arguments() -> None:
    assert set(FILES) == set(ARGUMENTS)
    for name, path in FILES.items():
        tree = ast.parse(path.read_text())
        taken = [ast.unparse(node.args[0]) for node in ast.walk(tree) if isinstance(node, ast.Call) and node.args]
        assert name.upper() in taken and getattr(launch_arguments, name.upper()) is ARGUMENTS[name]


@pytest.mark.parametrize("name", ARGUMENTS)
def test_every_argument_is_described_once_and_its_default_is_a_choice(name: str) -> None:
    arguments = ARGUMENTS[name]
    assert len({one.name for one in arguments}) == len(arguments)
    for one in arguments:
        assert one.description.endswith(".")
        assert not one.choices or one.default in one.choices


def test_started_nodes_have_a_module_an_executable_a_config_file_and_such_parameters() -> None:
    cmake = (ROOT / "CMakeLists.txt").read_text()
    for plan in plans():
        for node in plan.nodes:
            places = (ROOT / "trace_memory_ros" / door / f"{node.name}.py" for door in ("nodes", "arm/nodes"))
            assert any(place.is_file() for place in places) and node.name in cmake
            assert (ROOT / "config" / f"{node.name}.yaml").is_file()
            TABLES[node.name](**{name: value for name, value in node.parameters.items() if name != "use_sim_time"})


def test_a_demo_of_what_is_not_shipped_is_told_before_anything_starts() -> None:
    pairs = [(task, memory) for task in ("origin", "colour") for memory in ("trace", "gru", "first_frame", "none")]
    for task, memory in [*pairs, ("cups", "gru")]:
        nodes = {node.name: node.parameters for node in demo_plan(given(DEMO, task=task, memory=memory), "r").nodes}
        assert nodes["memory_node"]["checkpoint"] == f"{task}_{memory}" and nodes["arm_sim_node"]["task"] == task
    with pytest.raises(ConfigError, match="task = cups, memory = trace: checkpoint 'cups_trace' .* shipped are: .*gru"):
        demo_plan(given(DEMO, task="cups"), "r")


def test_the_demos_player_takes_what_it_is_given() -> None:
    from trace_memory_ros.arm.nodes import episode_player

    words = demo_player(given(DEMO))
    assert words[2] == episode_player.__name__
    source = inspect.getsource(episode_player)
    assert all(f'"{word}"' in source for word in words if word.startswith("--"))


needs_launch = pytest.mark.skipif(
    importlib.util.find_spec("launch_ros") is None,
    reason="launch_ros is not installed: it comes with a ROS 2 installation, not from PyPI",
)
LAUNCH = """
import sys
from launch import LaunchDescription, LaunchService
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import PythonLaunchDescriptionSource
file, *words = sys.argv[1:]
arguments = [tuple(word.split(":=", 1)) for word in words]
service = LaunchService(argv=words)
source = PythonLaunchDescriptionSource(file)
service.include_launch_description(LaunchDescription([IncludeLaunchDescription(source, launch_arguments=arguments)]))
sys.exit(service.run())
"""
"""What `ros2 launch FILE NAME:=VALUE ...` does, without its command line."""


@contextmanager
def launched(name: str, folder: Path, **given: str) -> Iterator[subprocess.Popen[bytes]]:
    """A launch under way, its log in `folder`; ended as by ^C."""
    command = [sys.executable, "-c", LAUNCH, str(FILES[name]), *(f"{key}:={value}" for key, value in given.items())]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "ROS_LOG_DIR": str(folder)})
        try:
            yield process
        finally:
            process.send_signal(signal.SIGINT)
            process.wait(60.0)


@needs_launch
@pytest.mark.parametrize("name", FILES)
def test_launch_builds_the_description(name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, FILES[name])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    assert len(entities) == len(ARGUMENTS[name]) + 3


@needs_launch
@pytest.mark.timeout(200)
def test_replay_launch_plays_a_bag_into_a_memory_once_it_is_active(tmp_path: Path, domain_id: int) -> None:
    write_bag(tmp_path / "bag", 0, 0, recording())
    tiny_checkpoint(tmp_path / "checkpoint", observation=recording().observation)
    conditions: list[MemoryCondition] = []
    with NodeClient(domain_id) as client:
        client.node.create_subscription(MemoryCondition, "memory/condition", conditions.append, qos.CONDITION)
        places = {"bag": str(tmp_path / "bag"), "checkpoint": str(tmp_path / "checkpoint")}
        with launched("replay", tmp_path, **places, rviz="false"):
            heard = client.spin_until(lambda: len(conditions) >= TICKS - 1, 120.0)
    assert heard, (tmp_path / "log").read_text()[-3000:]
    assert [one.tick for one in conditions] == list(range(len(conditions)))
    assert all(one.status == MemoryCondition.OK for one in conditions)


@needs_launch
@pytest.mark.timeout(300)
@pytest.mark.parametrize("mode", ["lockstep", "realtime"])
def test_the_demos_launch_drives_the_arm_through_its_controllers_and_ends(tmp_path: Path, mode: str) -> None:
    pytest.importorskip("mujoco", reason="the extra [sim] brings the simulated arm")
    words = {"task": "colour", "memory": "gru", "episodes": "1", "mode": mode, "rviz": "false"}
    with launched("demo", tmp_path, **words) as process:
        assert process.wait(240.0) == 0, (tmp_path / "log").read_text()[-3000:]
    log = (tmp_path / "log").read_text()
    assert f"episode 0: colour seed 300000 cue 0, {mode}" in log
    # In real time a busy machine comes too late for the branch.
    took = "took left: right branch" if mode == "lockstep" else ""
    assert f"colour seed 300000, gru memory: cue left, {took}" in log
    assert "[controller_node" in log and "refused" not in log
