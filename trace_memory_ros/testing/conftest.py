"""The mechanisms under test: all that are registered, or those that `--memory` names."""

from __future__ import annotations

import pytest

from trace_memory_ros.memory.base import Memory
from trace_memory_ros.memory.gate import GatedMemory
from trace_memory_ros.memory.registry import CACHED
from trace_memory_ros.testing.inputs import Inputs, fresh, mechanisms, random_inputs


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    """Every mechanism, bare, before a cache and behind the gate, for `memory`; those behind the gate for `gated`."""
    bare, behind = mechanisms(metafunc.config.getoption("--memory", None))
    if "memory" in metafunc.fixturenames:
        cached = [name + CACHED for name in bare]
        metafunc.parametrize("memory", bare + cached + behind, indirect=True)
    if "gated" in metafunc.fixturenames:
        metafunc.parametrize("gated", behind, indirect=True)


@pytest.fixture
def memory(request: pytest.FixtureRequest) -> Memory:
    """A mechanism as deployed."""
    return fresh(request.param)


@pytest.fixture
def gated(request: pytest.FixtureRequest) -> GatedMemory:
    """A mechanism behind the write gate, as deployed."""
    built = fresh(request.param)
    assert isinstance(built, GatedMemory)
    return built


@pytest.fixture
def inputs() -> Inputs:
    """Random `(B, T, ...)` inputs."""
    return random_inputs
