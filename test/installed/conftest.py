"""The wheel of this checkout, unpacked where neither the checkout nor ROS, the simulator or an extra can be seen."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ("trace_memory_ros", "config", "msg", "weights")
FILES = ("pyproject.toml", "setup.py", "MANIFEST.in", "README.md", "LICENSE", "CHANGELOG.rst")
ABSENT = (
    "ament_index_python", "diffusers", "huggingface_hub", "launch", "lerobot", "mujoco", "ray", "rclpy", "rosbag2_py",
    "studies", "trace_memory_ros.msg", "transforms3d",
)  # fmt: skip
PATIENCE_S = 500

# Run by Python itself before anything else: what an environment without ROS and without extras does not have.
BLOCKER = f"""
import sys
from importlib.abc import MetaPathFinder

class Absent(MetaPathFinder):
    def find_spec(self, name, path=None, target=None):
        if name in {ABSENT!r} or name.endswith(("_msgs", "_srvs", "_interfaces")):
            raise ModuleNotFoundError(f"No module named {{name!r}}", name=name)

sys.meta_path.insert(0, Absent())
"""

Run = Callable[[Sequence[str | Path]], subprocess.CompletedProcess[str]]


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Built from a copy, since setuptools leaves a build folder behind and packs again what lies in it."""
    folder = tmp_path_factory.mktemp("wheel")
    sources = folder / "sources"
    for name in SOURCES:
        shutil.copytree(ROOT / name, sources / name, ignore=shutil.ignore_patterns("__pycache__"))
    for name in FILES:
        shutil.copy(ROOT / name, sources / name)
    options = ["--no-deps", "--no-build-isolation", "--no-index", "--quiet"]
    pip([*options, "--wheel-dir", str(folder), str(sources)], "wheel")
    (built,) = folder.glob("*.whl")
    return built


@pytest.fixture(scope="session")
def site(wheel: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel installed into a folder of its own."""
    folder = tmp_path_factory.mktemp("site")
    pip(["--no-deps", "--no-index", "--quiet", "--target", str(folder), str(wheel)], "install")
    return folder


def pip(arguments: list[str], command: str) -> None:
    words = [sys.executable, "-m", "pip", command, *arguments]
    done = subprocess.run(words, check=False, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


@pytest.fixture(scope="session")
def run(site: Path, tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Runs Python with arguments beside the installed wheel, in an empty folder."""
    blocker = tmp_path_factory.mktemp("blocker")
    (blocker / "sitecustomize.py").write_text(BLOCKER)
    unset = ("AMENT_PREFIX_PATH", "CMAKE_PREFIX_PATH", "COLCON_PREFIX_PATH", "ROS_DISTRO", "LD_LIBRARY_PATH")
    environment = {name: value for name, value in os.environ.items() if name not in unset}
    environment["PYTHONPATH"] = os.pathsep.join([str(blocker), str(site)])
    work = tmp_path_factory.mktemp("work")

    def started(arguments: Sequence[str | Path]) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, *map(str, arguments)]
        return subprocess.run(
            command, check=False, capture_output=True, text=True, env=environment, cwd=work, timeout=PATIENCE_S
        )

    return started
