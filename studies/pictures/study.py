"""Which raw pictures arrive, by what the middleware is told and by their size, on a quiet and on a busy machine."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import NamedTuple

from rich.table import Table

from studies.busy import busy
from studies.grid import Figures, Store, cores, say
from studies.tables import table
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.transport import BUILTIN, RANGE, leave_loopback, loopback

SECONDS, QUICK_S = 5.0, 2.0
DRAIN_S = 1.0
"""For what is still on its way when the last picture has been sent."""
BUSY = 2


class Case(NamedTuple):
    """Cameras of one driver, the size of their pictures in pixels, and how often they come."""

    cameras: int
    width: int
    height: int
    rate_hz: float = 30.0


CASES = {
    "1 of 320x240": Case(1, 320, 240),
    "1 of 640x480": Case(1, 640, 480),
    "3 of 640x480": Case(3, 640, 480),
    "1 of 1920x1080": Case(1, 1920, 1080),
}
WAYS: dict[str, dict[str, str]] = {
    "nothing set": {RANGE: "SUBNET"},
    "LOCALHOST, LARGE_DATA": {RANGE: "LOCALHOST", BUILTIN: "LARGE_DATA"},
    "LARGE_DATA, room as on Jazzy": {RANGE: "SUBNET", BUILTIN: "LARGE_DATA?sockets_size=256KB"},
    "LARGE_DATA": {RANGE: "SUBNET", BUILTIN: "LARGE_DATA"},
    "LARGE_DATA?sockets_size=4MB": {RANGE: "SUBNET", BUILTIN: "LARGE_DATA?sockets_size=4MB"},
    "config/network/loopback.xml": loopback(),
}
"""Variables of both processes. A `sockets_size` gives shared memory twice as much: 512 kB is what Fast DDS 2 has."""


def run(out_dir: Path, quick: bool) -> Figures:
    """Every way and case, quiet and busy. quick: shorter."""
    seconds, store = QUICK_S if quick else SECONDS, Store(out_dir / "pictures")
    figures: Figures = {"cores": cores(), "busy_processes": BUSY, "seconds": seconds, "ways": {}}
    for way, variables in WAYS.items():
        for machine, loops in (("quiet", 0), ("busy", BUSY)):
            found: Figures = {}
            for name, case in CASES.items():
                part = f"{list(WAYS).index(way)} {machine} {name}"
                measure = partial(measured, variables, case, seconds, loops)
                found[name] = store.get(part, {**variables, "seconds": seconds}, measure)
            say(f"{way}, {machine}: " + ", ".join(_words(one) for one in found.values()))
            figures["ways"].setdefault(way, {})[machine] = found
    return figures


def measured(variables: Mapping[str, str], case: Case, seconds: float, loops: int) -> Figures:
    """Pictures that each camera sent, that came, and that the middleware lost. Raises RuntimeError where none could."""
    leave_loopback()
    sent_as = [str(part) for part in (*case, seconds)]
    with DomainClaim() as domain, busy(loops):
        own = {name: value for name, value in os.environ.items() if name != BUILTIN}
        environment = {**own, **variables, "ROS_DOMAIN_ID": str(domain)}
        with _end(environment, "hear", sent_as[0]) as ear, _end(environment, "send", *sent_as) as eye:
            assert eye.stdout is not None
            sent = eye.stdout.readline().strip()
            time.sleep(DRAIN_S)
            heard, _ = ear.communicate()
            eye.communicate()
    if not sent:
        raise RuntimeError(f"the driver ended with exit code {eye.returncode} and sent nothing")
    return {"sent": int(sent), **json.loads(heard)}


def _end(environment: Mapping[str, str], *words: str) -> subprocess.Popen[str]:
    command = [sys.executable, "-m", "studies.pictures.ends", *words]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment)


def tables(figures: Figures) -> Iterator[Table]:
    """Pictures that came of those sent, of all cameras together."""
    heads = ["pictures of all that were sent", "machine", *CASES]
    rows = [
        [way, machine, *(_words(found[name]) for name in CASES)]
        for way, machines in figures["ways"].items()
        for machine, found in machines.items()
    ]
    yield table(f"best effort, 30 Hz, {figures['seconds']:g} s", heads, rows)


def _words(found: Figures) -> str:
    return f"{sum(found['came'])} of {found['sent'] * len(found['came'])}"
