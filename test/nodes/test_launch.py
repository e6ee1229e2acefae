"""Launch files start what exists; where ROS's launch is installed, they are run."""

from __future__ import annotations

import ast
import importlib.util
import inspect
from collections.abc import Iterator
from pathlib import Path

import pytest
from nodes.test_parameters import TABLES

from trace_memory_ros.nodes import launch_arguments
from trace_memory_ros.nodes.launch_arguments import DEMO, MEMORY, REPLAY, ROBOT, Argument
from trace_memory_ros.nodes.launch_plan import LaunchPlan, demo_plan, demo_player, replay_plan, robot_plan
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
    yield demo_plan(given(DEMO))


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


def test_the_demos_player_takes_what_it_is_given() -> None:
    from trace_memory_ros.arm.nodes import episode_player

    words = demo_player(given(DEMO))
    assert words[2] == episode_player.__name__
    source = inspect.getsource(episode_player)
    assert all(f'"{word}"' in source for word in words if word.startswith("--"))


@pytest.mark.skipif(
    importlib.util.find_spec("launch_ros") is None,
    reason="launch_ros is not installed: it comes with a ROS 2 installation, not from PyPI",
)
@pytest.mark.parametrize("name", FILES)
def test_launch_builds_the_description(name: str) -> None:
    spec = importlib.util.spec_from_file_location(name, FILES[name])
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    assert len(entities) == len(ARGUMENTS[name]) + 3
