"""The rooms of the package import one another in one direction only, ROS stays in the nodes, nothing needs a study."""

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

PACKAGE = "trace_memory_ros"
STUDIES = "studies"
ROOT = Path(__file__).parents[1] / PACKAGE

# What a room may import besides itself; what those rooms import comes with them.
TABLE: dict[str, tuple[str, ...]] = {
    "files": (),
    "signature": (),
    "memory": ("files", "signature"),
    "testing": ("memory",),
    "vision": ("files",),
    "policies": ("memory", "observation", "vision"),
    "streams": ("files",),
    "observation": ("streams",),
    "runtime": ("observation", "memory", "signature", "vision"),
    "bags": ("observation", "runtime"),
    "measure": ("runtime",),
    "moments": ("measure", "bags"),
    "learning": ("policies", "moments"),
    "replay": ("bags",),
    "evidence": ("measure", "policies", "bags"),
    "nodes": ("policies", "bags"),
    "arm.sim": (),
    "arm": ("arm.sim", "nodes", "learning", "measure"),
    "cli": ("nodes", "learning", "replay", "evidence"),
}
ON_REQUEST = {"cli": {"arm", "arm.sim"}}
"""Rooms that may be imported too, but only inside the function that needs them: they bring a simulator."""
ROS_PLACES = ("nodes.", "arm.nodes.", "arm.demo.")
ROS_MODULES = ("rclpy", "rosbag2_py", "launch", "launch_ros", "message_filters", "rosidl_runtime_py", "tf2_ros")
LIGHT_MODULES = ("torch", "numba", "mujoco", "matplotlib", "rclpy")

FILES = sorted(ROOT.rglob("*.py"))


def allowed(room: str) -> set[str]:
    """`room`, the rooms of its row, and everything those may import."""
    return {room}.union(*(allowed(other) for other in TABLE[room]))


def room_of(name: str) -> str:
    """The room of a dotted name below the package: the longest key of the table that it begins with; empty for none."""
    return max((room for room in TABLE if f"{name}.".startswith(f"{room}.")), key=len, default="")


def imported_modules(source: str, module: str) -> Iterator[tuple[ast.stmt, str]]:
    """Every import statement in `source`, inside functions too, with each absolute dotted name it imports."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from ((node, alias.name) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = ".".join(module.split(".")[: -node.level]) + "." if node.level else ""
            origin = f"{base}{node.module or ''}".strip(".")
            yield from ((node, f"{origin}.{alias.name}") for alias in node.names)


def violations(source: str, module: str) -> list[str]:
    """What `source`, as `trace_memory_ros.<room>...`, imports against the table."""
    inner = module.removeprefix(f"{PACKAGE}.")
    room = room_of(inner)
    found = []
    for node, name in imported_modules(source, module):
        first, _, rest = name.partition(".")
        is_ros = first in ROS_MODULES or first.endswith(("_msgs", "_srvs", "_interfaces"))
        target = room_of(rest) if first == PACKAGE else ""
        on_request = ON_REQUEST.get(room, set()) if node.col_offset else set()
        if (is_ros or name.startswith(f"{PACKAGE}.msg")) and not inner.startswith(ROS_PLACES):
            found.append(f"line {node.lineno}: {name}: only {', '.join(ROS_PLACES)} may import ROS")
        elif first == STUDIES:
            found.append(f"line {node.lineno}: {name}: {STUDIES}/ is not installed")
        elif target and target not in allowed(room) | on_request:
            found.append(f"line {node.lineno}: {name}: {room}/ may import {', '.join(sorted(allowed(room)))}")
    return found


def module_name(file: Path) -> str:
    return ".".join(file.relative_to(ROOT.parent).with_suffix("").parts)


def test_every_room_has_a_row() -> None:
    rooms = {file.relative_to(ROOT).parts[0] for file in FILES if file.parent != ROOT}
    assert rooms == {room.partition(".")[0] for room in TABLE}
    assert [file.name for file in FILES if file.parent == ROOT] == ["__init__.py"]


@pytest.mark.parametrize("file", [f for f in FILES if f.parent != ROOT], ids=module_name)
def test_imports_follow_the_table(file: Path) -> None:
    assert violations(file.read_text(encoding="utf-8"), module_name(file)) == []


@pytest.mark.parametrize(
    ("source", "module"),
    [
        ("import trace_memory_ros.memory.base", "trace_memory_ros.signature.x"),
        ("from trace_memory_ros import learning", "trace_memory_ros.evidence.x"),
        ("from trace_memory_ros.learning.trainer import train", "trace_memory_ros.evidence.x"),
        ("def f():\n    from ..policies import act", "trace_memory_ros.runtime.x"),
        ("import rclpy.node", "trace_memory_ros.cli.x"),
        ("import rclpy.node", "trace_memory_ros.arm.sim.x"),
        ("from trace_memory_ros.arm.sim.env import ArmEnv", "trace_memory_ros.cli.x"),
        ("def f():\n    from trace_memory_ros.arm.sim.env import ArmEnv", "trace_memory_ros.learning.x"),
        ("def f():\n    import studies.engine", "trace_memory_ros.cli.x"),
        ("from sensor_msgs.msg import Image", "trace_memory_ros.observation.x"),
        ("from trace_memory_ros.msg import MemoryCondition", "trace_memory_ros.runtime.x"),
    ],
)
def test_a_forbidden_import_is_found(source: str, module: str) -> None:
    assert len(violations(source, module)) == 1


def test_a_command_may_import_the_simulator_when_it_runs() -> None:
    source = "def run():\n    from trace_memory_ros.arm.sim.env import ArmEnv"
    assert violations(source, "trace_memory_ros.cli.x") == []


def test_command_line_help_loads_nothing_heavy() -> None:
    code = f"import sys; from {PACKAGE}.cli.main import parser; parser(); print(*sys.modules)"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, cwd=ROOT.parent)
    assert set(LIGHT_MODULES) & set(loaded.stdout.split()) == set()
