"""Packages that bring policy families, really installed into a folder of their own."""

import subprocess
import sys
from pathlib import Path

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "linear_policy"

SLOW_SOURCE = '''
import time
import numpy as np
from trace_memory_ros.policies.adapters import ConditionShape
from trace_memory_ros.policies.receding import RecedingHorizon


class SlowPolicy:
    """Chunks that take `seconds` to compute; every action says how much of the memory it saw."""

    def __init__(self, options, tensors):
        self.action_names = tuple(options["action_names"])
        self.condition = ConditionShape(**options["condition"])
        self.ticks, self.seconds = options["ticks"], options["seconds"]
        self.horizon = RecedingHorizon(options["execute"], 1)

    def reset(self):
        self.horizon.reset()

    def chunk(self, observation, condition):
        time.sleep(self.seconds)
        return np.full((self.ticks, len(self.action_names)), condition.vector[0], np.float32)

    def act(self, observation, condition):
        return self.chunk(observation, condition)[0]


class OddPolicy:
    """Answers with what is no action where joint 0 is at 1, 2 or 3 rad, or always by option `always`."""

    def __init__(self, options, tensors):
        self.action_names = tuple(options["action_names"])
        self.condition = ConditionShape(**options["condition"])
        self.always = options["always"]

    def reset(self):
        pass

    def act(self, observation, condition):
        good = np.full(len(self.action_names), 0.1, np.float32)
        odd = {1: good[:-1].tolist(), 2: good[None], 3: "left"}
        return odd.get(self.always or round(observation.state[3]), good)


NOT_A_POLICY = 7


def fails(options, tensors):
    raise RuntimeError("never")
'''

SLOW_PROJECT = """
[build-system]
requires = ["setuptools>=68"]
build-backend = "setuptools.build_meta"

[project]
name = "slow_policy"
version = "1.0.0"

[project.entry-points."trace_memory_ros.policies"]
slow = "slow_policy:SlowPolicy"
odd = "slow_policy:OddPolicy"
number = "slow_policy:NOT_A_POLICY"
absent = "slow_policy_of_nobody:Policy"

[tool.setuptools]
py-modules = ["slow_policy"]
"""


def install(target: Path, *projects: Path) -> None:
    """`pip install` of project folders into `target`, without their dependencies."""
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
    command += ["--no-build-isolation", "--no-index", "--target", str(target), *map(str, projects)]
    subprocess.run(command, check=True, capture_output=True, text=True)


def slow_project(folder: Path) -> Path:
    """A project that brings the families `slow` and `odd`, and two that cannot be used."""
    folder.mkdir()
    (folder / "pyproject.toml").write_text(SLOW_PROJECT, encoding="utf-8")
    (folder / "slow_policy.py").write_text(SLOW_SOURCE, encoding="utf-8")
    return folder


def copy_of_example(folder: Path) -> Path:
    """The example of the documentation, copied: building a project leaves files beside it."""
    folder.mkdir()
    for name in ("pyproject.toml", "linear_policy.py"):
        (folder / name).write_bytes((EXAMPLE / name).read_bytes())
    return folder
