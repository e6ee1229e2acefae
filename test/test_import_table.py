"""The rooms of the package import one another in one direction only, and ROS stays in `nodes/`."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "trace_memory_ros"
ROOT = Path(__file__).parents[1] / PACKAGE

# What a room may import besides itself; what those rooms import comes with them.
TABLE = {
    "signature": (),
    "memory": ("signature",),
    "policies": ("memory",),
    "observation": (),
    "runtime": ("observation", "memory", "signature"),
    "tasks": (),
    "bags": ("observation", "runtime"),
    "learning": ("runtime", "policies", "tasks", "bags"),
    "evaluation": ("runtime", "policies", "tasks", "bags"),
    "bench": ("learning", "evaluation"),
    "nodes": ("learning", "evaluation"),
    "cli": ("nodes", "bench", "learning", "evaluation"),
}
ROS_ROOM = "nodes"
ROS_MODULES = ("rclpy", "rosbag2_py", "launch", "launch_ros", "message_filters", "rosidl_runtime_py", "tf2_ros")
LIGHT_MODULES = ("torch", "numba", "mujoco", "matplotlib", "rclpy")

FILES = sorted(ROOT.rglob("*.py"))


def allowed(room: str) -> set[str]:
    """`room`, the rooms of its row, and everything those may import."""
    return {room}.union(*(allowed(other) for other in TABLE[room]))


def imported_modules(source: str, module: str) -> Iterator[tuple[int, str]]:
    """Line and absolute dotted name of every import in `source`, inside functions too."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node.lineno, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(module.split(".")[: -node.level]) + "." if node.level else ""
            origin = f"{base}{node.module or ''}".strip(".")
            yield from ((node.lineno, f"{origin}.{alias.name}") for alias in node.names)


def violations(source: str, module: str) -> list[str]:
    """What `source`, as `trace_memory_ros.<room>...`, imports against the table."""
    room = module.split(".")[1]
    found = []
    for line, name in imported_modules(source, module):
        parts = name.split(".")
        is_ros = parts[0] in ROS_MODULES or parts[0].endswith(("_msgs", "_srvs", "_interfaces"))
        if (is_ros or parts[:2] == [PACKAGE, "msg"]) and room != ROS_ROOM:
            found.append(f"line {line}: {name}: only {ROS_ROOM}/ may import ROS")
        elif parts[0] == PACKAGE and set(parts[1:2]) & set(TABLE) - allowed(room):
            found.append(f"line {line}: {name}: {room}/ may import {', '.join(sorted(allowed(room)))}")
    return found


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)


def test_every_room_has_a_row() -> None:
    rooms = {file.relative_to(ROOT).parts[0] for file in FILES if file.parent != ROOT}
    assert rooms == set(TABLE)
    assert [file.name for file in FILES if file.parent == ROOT] == ["__init__.py"]


@pytest.mark.parametrize("file", [f for f in FILES if f.parent != ROOT], ids=module_name)
def test_imports_follow_the_table(file: Path) -> None:
    assert violations(file.read_text(encoding="utf-8"), module_name(file)) == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import trace_memory_ros.memory.base", "trace_memory_ros.signature.x"),
        ("from trace_memory_ros import learning", "trace_memory_ros.evaluation.x"),
        ("from trace_memory_ros.learning.trainer import train", "trace_memory_ros.evaluation.x"),
        ("def f():\n    from ..policies import act", "trace_memory_ros.runtime.x"),
        ("import rclpy.node", "trace_memory_ros.cli.x"),
        ("from sensor_msgs.msg import Image", "trace_memory_ros.observation.x"),
        ("from trace_memory_ros.msg import MemoryCondition", "trace_memory_ros.runtime.x"),
    ],
)
def test_a_forbidden_import_is_found(source: str, module: str) -> None:
    assert len(violations(source, module)) == 1


def test_command_line_help_loads_nothing_heavy() -> None:
    code = f"import sys; from {PACKAGE}.cli.main import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert set(LIGHT_MODULES) & set(loaded.stdout.split()) == set()
