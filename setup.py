"""For pip users; the metadata is in pyproject.toml. colcon builds from CMakeLists.txt and never reads this."""

import shutil
from pathlib import Path

from setuptools import find_packages, setup
from setuptools.command.build_py import build_py

SHARED = ("config", "msg", "weights")
"""Folders that a ROS 2 installation keeps in its share folder, and a wheel in `trace_memory_ros/share`."""


class BuildWithShare(build_py):
    """Lays the shared folders into the package; an editable install finds them in the checkout."""

    def run(self) -> None:
        super().run()
        if self.editable_mode:
            return
        for folder in SHARED:
            target = Path(self.build_lib, "trace_memory_ros", "share", folder)
            shutil.copytree(Path(__file__).parent / folder, target, dirs_exist_ok=True)


setup(
    packages=find_packages(include=["trace_memory_ros", "trace_memory_ros.*"]),
    cmdclass={"build_py": BuildWithShare},
)
