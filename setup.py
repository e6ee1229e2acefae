"""For pip users; the metadata is in pyproject.toml. colcon builds from CMakeLists.txt and never reads this."""

from setuptools import find_packages, setup

setup(packages=find_packages(include=["trace_memory_ros", "trace_memory_ros.*"]))
