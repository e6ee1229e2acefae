"""Every run talks to itself alone: a ROS domain of its own on the loopback, whatever the shell around it says."""

import gc
import os
import time
from contextlib import suppress
from fcntl import LOCK_EX, LOCK_NB, flock
from pathlib import Path
from typing import Any

import pytest

from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.transport import private_environment

# Held until this process ends, so that no other run of the tests or of the demo takes it meanwhile.
DOMAIN = DomainClaim()
os.environ.update(private_environment(DOMAIN.id))
os.environ.setdefault("MUJOCO_GL", "egl")

# Folders whose session fixtures start node processes or install packages: dear, so made once.
TOGETHER = ("test/nodes/", "test/installed/")
# Where single tests take long: begun first, so that no worker is left alone with one at the end.
FIRST = (
    *TOGETHER,
    "test/servers/",
    "test/studies/",
    "test/cli/",
    "test/replay/",
    "test/arm/",
    "test/evidence/",
    "test/measure/",
)
# Of thousands of tests one fails now and then, each time another, where processes talk over DDS on a busy machine: it
# may run once more and is named. Where more of a run's tests than this needed it, something is broken.
AGAIN_AT_MOST = 3
YOUNG_S = 5.0


def pytest_configure(config: pytest.Config) -> None:
    """Keep xdist from beginning with the files that have the most tests, which are the quickest."""
    config.option.loadscopereorder = False
    # What is imported stays: to look through it for garbage costs each worker seconds. It is frozen once collected.
    gc.disable()


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """What takes long comes first; what starts processes runs again where it fails."""
    items.sort(key=lambda item: not item.nodeid.startswith(FIRST))
    for item in items:
        if item.nodeid.startswith(FIRST):
            item.add_marker(pytest.mark.flaky(reruns=1))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say why each test that ran again had failed: nobody sees it otherwise."""
    again = terminalreporter.getreports("rerun")
    for report in again:
        terminalreporter.write_sep("_", f"ran again: {report.nodeid}")
        terminalreporter.write_line(report.longreprtext)
    if len(again) > AGAIN_AT_MOST:
        terminalreporter.write_line(f"{len(again)} tests ran again, more than {AGAIN_AT_MOST}: the run fails")


def pytest_runtest_teardown(item: pytest.Item, nextitem: pytest.Item | None) -> None:
    """After each file that starts nodes, free what those that were killed left in shared memory."""
    if item.nodeid.startswith(TOGETHER) and (nextitem is None or nextitem.path != item.path):
        free_shared_memory()


def free_shared_memory() -> None:
    """Remove Fast DDS's segments whose processes are gone, 3 MiB each: a living one holds the lock beside it."""
    for lock in Path("/dev/shm").glob("fastdds_????????????????_el"):
        with suppress(FileNotFoundError, BlockingIOError), lock.open("rb") as file:
            # One that was just made may not be locked yet.
            if time.time() - os.fstat(file.fileno()).st_mtime > YOUNG_S:
                flock(file, LOCK_EX | LOCK_NB)
                lock.with_name(lock.name.removesuffix("_el")).unlink(missing_ok=True)
                lock.unlink()


def pytest_collection_finish() -> None:
    """Begin to look for garbage, in what comes from here on."""
    gc.freeze()
    gc.enable()


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Fail a run in which too many tests needed a second try."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    if reporter is not None and len(reporter.stats.get("rerun", ())) > AGAIN_AT_MOST:
        session.exitstatus = pytest.ExitCode.TESTS_FAILED


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: Any) -> Any:
    """Of several workers (`make test`) one runs all tests of a file, so that what they share is made once."""
    from xdist.scheduler import LoadScopeScheduling

    class ByFile(LoadScopeScheduling):
        def _split_scope(self, nodeid: str) -> str:
            file = nodeid.split("::", 1)[0]
            return next((folder for folder in TOGETHER if file.startswith(folder)), file)

    return ByFile(config, log)
