"""A cable between two network namespaces that loses packets on request, in user space: kernels may lack netem."""

from __future__ import annotations

import ctypes
import fcntl
import json
import os
import random
import selectors
import struct
import subprocess
import sys
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

TUN = Path("/dev/net/tun")
SPACES = Path("/run/netns")
TUNSETIFF, IFF_TAP, IFF_NO_PI = 0x400454CA, 0x0002, 0x1000
CLONE_NEWNET = 0x40000000
FRAME_BYTES = 65_536
AT_ONCE = 64
"""Frames of one end before the other has its turn."""
SEED = 11


@dataclass(frozen=True)
class Passed:
    """Frames of both ways. A fifth of 1000 is lost with a standard deviation of 13."""

    carried: int
    dropped: int

    @property
    def share(self) -> float:
        """Of all that was sent, how much was lost; 0 of nothing."""
        return self.dropped / max(1, self.carried + self.dropped)


class LossyLink:
    """A context manager: a device `name` in either of two namespaces, and a process that carries frames between them.

    Addresses are the caller's to give. Raises RuntimeError where the devices cannot be made.
    """

    def __init__(self, spaces: Sequence[str], name: str) -> None:
        command = [sys.executable, "-m", "studies.faults.lossy_link", *spaces, name]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> LossyLink:
        try:
            self.lose(0.0)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the devices go with it."""
        self._process.kill()
        self._process.communicate()

    def lose(self, share: float) -> Passed:
        """From now on lose so many at random; returns what passed since the last word. Raises RuntimeError."""
        assert self._process.stdin is not None and self._process.stdout is not None
        with suppress(BrokenPipeError):
            self._process.stdin.write(f"{share}\n")
            self._process.stdin.flush()
        answer = self._process.stdout.readline()
        if not answer:
            raise RuntimeError(f"the lossy link ended with exit code {self._process.wait()}; it needs root and {TUN}")
        return Passed(**json.loads(answer))


def enter(space: str) -> None:
    """Let this thread be in a network namespace; what it opens stays there. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)  # os.setns came with Python 3.12
    descriptor = os.open(SPACES / space, os.O_RDONLY)
    try:
        if libc.setns(descriptor, CLONE_NEWNET):
            raise OSError(ctypes.get_errno(), f"setns to network namespace {space}")
    finally:
        os.close(descriptor)


def _device(space: str, name: str) -> int:
    enter(space)
    descriptor = os.open(TUN, os.O_RDWR | os.O_NONBLOCK)
    fcntl.ioctl(descriptor, TUNSETIFF, struct.pack("16sH22x", name.encode(), IFF_TAP | IFF_NO_PI))
    return descriptor


class _Carrier:
    """Carries until its standard input ends; a line there is the share to lose from now on."""

    def __init__(self, spaces: Sequence[str], name: str) -> None:
        one, other = (_device(space, name) for space in spaces)
        self._across = {one: other, other: one}
        self._rng = random.Random(SEED)
        self._share = 0.0
        self._carried = self._dropped = 0

    def run(self) -> None:
        with selectors.DefaultSelector() as ready:
            for descriptor in (*self._across, sys.stdin.fileno()):
                ready.register(descriptor, selectors.EVENT_READ)
            while True:
                for key, _ in ready.select():
                    if key.fd in self._across:
                        self._carry(key.fd)
                    elif not self._told():
                        return

    def _carry(self, descriptor: int) -> None:
        for _ in range(AT_ONCE):
            try:
                frame = os.read(descriptor, FRAME_BYTES)
            except BlockingIOError:
                return
            if self._rng.random() < self._share:
                self._dropped += 1
                continue
            with suppress(OSError):  # the other end is down, or its queue is full
                os.write(self._across[descriptor], frame)
                self._carried += 1

    def _told(self) -> bool:
        line = os.read(sys.stdin.fileno(), 100).decode()
        if line:
            self._share = float(line.split()[-1])
            print(json.dumps({"carried": self._carried, "dropped": self._dropped}), flush=True)
            self._carried = self._dropped = 0
        return bool(line)


if __name__ == "__main__":
    _Carrier(sys.argv[1:3], sys.argv[3]).run()
