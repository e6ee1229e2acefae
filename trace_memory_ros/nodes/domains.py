"""ROS domain ids that nobody else on this machine takes, so that runs side by side never hear each other."""

from __future__ import annotations

import fcntl
import os
import random
import tempfile
from contextlib import suppress
from pathlib import Path
from types import TracebackType

DOMAINS = range(1, 102)
"""Beyond these the ports of DDS would lie in the range that Linux gives to outgoing connections."""


class DomainClaim:
    """One id of `DOMAINS`, held until `release`, the end of a `with`, or the end of this process, however it ends.

    Held by a lock on a file of the temporary folder, which the kernel drops with the process: a claim is never stale.
    A node outside these claims, with a `ROS_DOMAIN_ID` of its own, is not seen. Raises ValueError where all are taken.
    """

    def __init__(self) -> None:
        folder = Path(tempfile.gettempdir()) / "trace_memory_ros_domains"
        with suppress(FileExistsError):
            folder.mkdir()
            folder.chmod(0o1777)  # for every user of the machine
        for domain in random.SystemRandom().sample(DOMAINS, len(DOMAINS)):
            file = _locked(folder / str(domain))
            if file is not None:
                self.id, self._file = domain, file
                return
        raise ValueError(
            f"all {len(DOMAINS)} ROS domain ids are taken by locks in {folder}: end demos and tests that run there"
        )

    def release(self) -> None:
        """Let others take the id; a second call does nothing."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> int:
        return self.id

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.release()


def _locked(path: Path) -> int | None:
    """A descriptor that holds the lock of `path`, made if need be; None where another process holds it."""
    try:
        # Reading suffices for a lock; the file may be another user's.
        file = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    except FileNotFoundError:
        file = os.open(path, os.O_RDONLY | os.O_CREAT | os.O_CLOEXEC, 0o644)
        with suppress(PermissionError):  # another user's, made at this moment
            os.fchmod(file, 0o644)  # for every user, whatever this one's umask says
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(file)
        return None
    return file
