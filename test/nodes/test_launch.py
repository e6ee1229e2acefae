"""Launch files name what exists; where ROS's launch is installed, they build a description."""

import ast
import importlib.util
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "launch").glob("*.launch.py"))


def calls(tree: ast.AST, name: str) -> list[ast.Call]:
    found = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
    return [node for node in found if isinstance(node.func, ast.Name) and node.func.id == name]


def keywords(call: ast.Call) -> dict[str, ast.expr]:
    return {word.arg: word.value for word in call.keywords if word.arg}


@pytest.fixture(params=FILES, ids=lambda path: path.name)
def tree(request: pytest.FixtureRequest) -> ast.Module:
    return ast.parse(request.param.read_text())


def test_all_launch_files_are_there() -> None:
    assert [path.name for path in FILES] == ["demo.launch.py", "memory.launch.py", "replay.launch.py"]


def test_started_nodes_have_a_module_an_executable_and_a_config_file(tree: ast.Module) -> None:
    names = [ast.literal_eval(call.args[0]) for call in calls(tree, "managed")]
    cmake = (ROOT / "CMakeLists.txt").read_text()
    assert names
    for name in names:
        places = (ROOT / "trace_memory_ros" / door / f"{name}.py" for door in ("nodes", "arm/nodes"))
        assert any(place.is_file() for place in places)
        assert (ROOT / "config" / f"{name}.yaml").is_file()
        assert name in cmake


def test_files_and_modules_in_strings_exist(tree: ast.Module) -> None:
    texts = [node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)]
    for text in texts:
        if text.endswith(".rviz"):
            assert (ROOT / "config" / text).is_file()
        if text.startswith("trace_memory_ros."):
            assert (ROOT / Path(*text.split("."))).with_suffix(".py").is_file()


def test_every_argument_is_described_and_every_used_one_is_declared(tree: ast.Module) -> None:
    for call in calls(tree, "DeclareLaunchArgument"):
        assert "description" in keywords(call)
    declared = {ast.unparse(call.args[0]) for call in calls(tree, "DeclareLaunchArgument")}
    shared = ast.parse((ROOT / "trace_memory_ros" / "nodes" / "launching.py").read_text())
    used = {ast.unparse(call.args[0]) for part in (tree, shared) for call in calls(part, "LaunchConfiguration")}
    assert used == declared


def test_parameters_given_at_launch_are_declared_by_the_nodes(tree: ast.Module) -> None:
    from nodes.test_parameters import TABLES

    from trace_memory_ros.nodes.parameters import specs

    known = {name for table in TABLES.values() for name in specs(table)}
    assert {"autostart", "checkpoint", "reliability", "task", "mode"} <= known
    for call in calls(tree, "managed"):
        given = call.args[1]
        if isinstance(given, ast.Dict):
            table = TABLES[ast.literal_eval(call.args[0])]
            assert {ast.literal_eval(key) for key in given.keys if key} <= set(specs(table))


def test_nodes_end_with_the_launch_and_only_a_checked_rviz_is_started(tree: ast.Module) -> None:
    assert len(calls(tree, "surroundings")) == len(calls(tree, "rviz")) == 1
    assert "rviz2" not in ast.unparse(tree)
    shared = ast.parse((ROOT / "trace_memory_ros" / "nodes" / "launching.py").read_text())
    (start,) = (f for f in shared.body if isinstance(f, ast.FunctionDef) and "rviz2" in ast.unparse(f))
    assert len(calls(start, "rviz_missing")) == 1


@pytest.mark.skipif(
    importlib.util.find_spec("launch_ros") is None,
    reason="launch_ros is not installed: it comes with a ROS 2 installation, not from PyPI",
)
@pytest.mark.parametrize("path", FILES, ids=lambda path: path.name)
def test_launch_builds_the_description(path: Path) -> None:
    spec = importlib.util.spec_from_file_location(path.name.split(".")[0], path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    entities = module.generate_launch_description().entities
    assert len(entities) > 4
