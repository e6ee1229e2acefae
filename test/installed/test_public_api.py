"""The names that other people's programs import: they exist, cost nothing before they are used, and are explained."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

import trace_memory_ros

ROOT = Path(__file__).parents[2]
HEAVY = {"torch", "numpy", "numba", "rosbags", "mujoco", "rclpy"}


@pytest.mark.parametrize("name", trace_memory_ros.__all__)
def test_every_public_name_is_there(name: str) -> None:
    found = getattr(trace_memory_ros, name)
    module, _, attribute = trace_memory_ros._ORIGINS[name].partition(":")
    assert found is getattr(import_module(f"trace_memory_ros.{module}"), attribute)
    assert found.__doc__


def test_type_checkers_see_the_same_names_from_the_same_places() -> None:
    tree = ast.parse(Path(trace_memory_ros.__file__).read_text(encoding="utf-8"))
    (block,) = (node for node in tree.body if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING")
    typed = {
        alias.asname or alias.name: f"{line.module}:{alias.name}".removeprefix("trace_memory_ros.")
        for line in block.body
        if isinstance(line, ast.ImportFrom)
        for alias in line.names
    }
    assert typed == trace_memory_ros._ORIGINS
    assert sorted(typed) == sorted(trace_memory_ros.__all__)


def test_importing_the_package_loads_nothing_heavy() -> None:
    code = "import sys, trace_memory_ros; dir(trace_memory_ros); print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert HEAVY & set(done.stdout.split()) == set()


def test_an_unknown_name_is_refused_with_the_known_ones() -> None:
    with pytest.raises(AttributeError, match="no attribute 'MemoryRuntim'; its public names are .*MemoryRuntime"):
        trace_memory_ros.MemoryRuntim  # noqa: B018


def test_the_reference_explains_every_name_and_no_other() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    assert set(re.findall(r"^### `(\w+)", page, flags=re.MULTILINE)) == set(trace_memory_ros.__all__)


def test_the_reference_names_parameters_that_there_are() -> None:
    page = (ROOT / "docs" / "api.md").read_text(encoding="utf-8")
    said = re.findall(r"^### `(\w+)\((.*)\)`", page, flags=re.MULTILINE)
    assert len(said) > 5
    for name, parameters in said:
        shown = [part.partition("=")[0].strip() for part in parameters.split(",") if part]
        assert shown == list(inspect.signature(getattr(trace_memory_ros, name)).parameters)[: len(shown)], name
