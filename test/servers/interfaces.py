"""The interface packages in test/interfaces, built where the machine has none of their name."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import shutil
import subprocess
import sys
from fcntl import LOCK_EX, flock
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = ROOT / "test" / "interfaces"
BUILT = ROOT / "build" / "test_interfaces"
BUILD_S = 300


def environment_with(package: str) -> dict[str, str]:
    """Variables of a process that imports `package`; empty where this one can. Skips the test without colcon."""
    if importlib.util.find_spec(package) is not None:
        return {}
    if shutil.which("colcon") is None:
        pytest.skip(f"{package} is not installed, and colcon is not there to build its stand-in")
    prefix = _built(package)
    python = prefix / "lib" / f"python{sys.version_info.major}.{sys.version_info.minor}" / "site-packages"
    first = {"AMENT_PREFIX_PATH": prefix, "LD_LIBRARY_PATH": prefix / "lib", "PYTHONPATH": python}
    return {name: f"{path}:{os.environ.get(name, '')}" for name, path in first.items()}


def _built(package: str) -> Path:
    """Where it is installed; other workers of this run wait for the one that builds."""
    files = sorted(file for file in (SOURCES / package).rglob("*") if file.is_file())
    key = hashlib.sha256(b"".join(file.read_bytes() for file in files) + sys.prefix.encode()).hexdigest()[:16]
    folder = BUILT / key
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / "lock").open("w") as lock:
        flock(lock, LOCK_EX)
        done = folder / "done"
        if not done.exists():
            command = ["colcon", "--log-base", str(folder / "log"), "build", "--base-paths", str(SOURCES / package)]
            command += ["--build-base", str(folder / "build"), "--install-base", str(folder / "install")]
            ran = subprocess.run(command, check=False, capture_output=True, text=True, timeout=BUILD_S, cwd=folder)
            assert ran.returncode == 0, ran.stdout + ran.stderr
            done.touch()
    return folder / "install" / package
