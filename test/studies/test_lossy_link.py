"""The cable that loses packets on request: none, a fifth, and none again, counted by it and by who listens."""

from __future__ import annotations

import os
import socket
import subprocess
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from time import monotonic

import pytest

from studies.faults.lossy_link import LossyLink, enter
from studies.faults.network_rows import no_loss

SENT, TOGETHER = 3_000, 500
PAUSE_S = 0.2
SO_RCVBUFFORCE = 33
PORT = 5_310
DEADLINE_S = 60.0

LACKING = no_loss()

pytestmark = pytest.mark.skipif(bool(LACKING), reason=LACKING)


@pytest.fixture
def ends() -> Iterator[dict[str, str]]:
    """Namespaces by address."""
    made = {f"10.231.78.{k}": f"tm_test_{os.getpid()}_{k}" for k in (1, 2)}
    try:
        for space in made.values():
            subprocess.run(["ip", "netns", "add", space], check=True)
        yield made
    finally:
        for space in made.values():
            subprocess.run(["ip", "netns", "delete", space], check=False)


def opened(space: str, address: str) -> socket.socket:
    """A socket of UDP in a namespace, opened by a thread that ends there."""

    def there() -> socket.socket:
        enter(space)
        made = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        made.bind((address, PORT))
        made.setsockopt(socket.SOL_SOCKET, SO_RCVBUFFORCE, 2**23)
        made.settimeout(PAUSE_S)
        return made

    with ThreadPoolExecutor(1) as pool:
        return pool.submit(there).result()


def came(listening: socket.socket) -> int:
    """How many datagrams come before there is a pause."""
    heard = 0
    with suppress(TimeoutError):
        while True:
            listening.recv(64)
            heard += 1
    return heard


def test_a_fifth_of_udp_is_lost_while_told_to_and_nothing_else(ends: dict[str, str]) -> None:
    (here, one), (there, other) = ends.items()
    with LossyLink((one, other), "cable") as link:
        for address, space in ends.items():
            for words in (f"addr add {address}/24 dev cable", "link set cable up"):
                subprocess.run(["ip", "-n", space, *words.split()], check=True)
        with opened(one, here) as sender, opened(other, there) as listening:
            deadline = monotonic() + DEADLINE_S
            while not came(listening):  # until each end knows where the other is
                assert monotonic() < deadline
                sender.sendto(b"first", (there, PORT))
            for share in (0.0, 0.2, 0.0):
                link.lose(share)
                carried = dropped = heard = 0
                for sent in range(TOGETHER, SENT + 1, TOGETHER):
                    for _ in range(TOGETHER):
                        sender.sendto(b"word", (there, PORT))
                    while carried + dropped < sent:  # no more than the devices' queues hold
                        assert monotonic() < deadline
                        passed = link.lose(share)
                        carried, dropped = carried + passed.carried, dropped + passed.dropped
                    heard += came(listening)
                lost = SENT - heard
                # The kernel says a word of its own now and then.
                assert dropped - 20 <= lost <= dropped
                assert abs(lost / SENT - share) < 0.03


def test_a_namespace_that_is_not_there_is_named() -> None:
    with pytest.raises(RuntimeError, match="root and /dev/net/tun"), LossyLink(("tm_none", "tm_none"), "cable"):
        pass
