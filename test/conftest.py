"""Every run talks to itself alone: a ROS domain of its own on the loopback, whatever the shell around it says."""

import os
from pathlib import Path

import pytest

from trace_memory_ros.nodes.domains import DomainClaim

# Held until this process ends, so that no other run of the tests or of the demo takes it meanwhile.
DOMAIN = DomainClaim()
os.environ["ROS_DOMAIN_ID"] = str(DOMAIN.id)
os.environ["ROS_AUTOMATIC_DISCOVERY_RANGE"] = "LOCALHOST"
os.environ["FASTDDS_BUILTIN_TRANSPORTS"] = "LARGE_DATA"
os.environ.setdefault("MUJOCO_GL", "egl")
os.environ.setdefault("OMP_NUM_THREADS", "1")

TESTS = Path(__file__).parent
# Folders whose session fixtures start node processes or install packages: dear, so made once.
TOGETHER = ("nodes", "installed")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of several workers (`make test`) one runs all tests of a file, so that what they share is made once."""
    if not config.pluginmanager.hasplugin("xdist"):
        return
    for item in items:
        folder, *_ = item.path.relative_to(TESTS).parts if item.path.is_relative_to(TESTS) else (str(item.path.parent),)
        item.add_marker(pytest.mark.xdist_group(folder if folder in TOGETHER else str(item.path)))
