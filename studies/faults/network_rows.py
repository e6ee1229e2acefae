"""Rows: participants that go and come, a network that loses a fifth, and one that is cut."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from studies.faults.bench import MEMORY, BenchFailed
from studies.faults.judge import PROMISE
from studies.faults.lossy_link import TUN, LossyLink
from studies.faults.robot import EYE, NAMESPACE
from studies.faults.setting import Setting
from studies.faults.trial import Row, Trial
from studies.faults.watch import ERROR, WARN
from trace_memory_ros.nodes.node_client import NodeClient

THEME = "network"
HERE, THERE = "tm_faults_robot", "tm_faults_memory"
ADDRESSES = {HERE: "10.231.77.1/24", THERE: "10.231.77.2/24"}
CUT_S, LOSS_S = 4.0, 6.0
LOST, LEAST = 0.2, 1_000
"""Which share of packets is lost, and of how many at least, so that it is within a twentieth of that share."""
LINK = "tmf0"
FRAGMENTS_S = 3
"""How long the kernel keeps what came of a picture of many packets, as docs/how-to/plug_in_your_arm.md advises."""


def rows() -> Iterator[Row]:
    """By what the network does."""
    gone = "each stream is ERROR, commands cease; then ticks go on, the memory is kept"
    yield Row("drivers_restart", THEME, "the drivers' participant ends, another begins", gone, _drivers_restart)
    loss = "no old or wrong command; no tick lost unsaid; afterwards all is well"
    text, shipped = "a fifth of all packets between robot and memory_node is lost", Setting(transports="LARGE_DATA")
    yield Row("loss_20", THEME, text, loss, _loss, shipped, networks=True, link=lossy, lacks=no_loss)
    text, loss = f"{text}, by UDP", f"the first camera is ERROR; {loss}"
    yield Row("loss_20_udp", THEME, text, loss, _loss_udp, networks=True, link=lossy, lacks=no_loss)
    cut = "the policy names the silence, commands cease, nothing old after; healed, ticks go on and the gap is said"
    text = "the network between robot and memory_node is cut for 4 s, and heals"
    yield Row("network_cut", THEME, text, cut, _cut, networks=True, lacks=no_networks)


def _drivers_restart(trial: Trial) -> None:
    robot, bench = trial.robot, trial.bench
    robot.disconnect()
    trial.named(EYE, ERROR, "no message on")
    trial.commands_cease()
    with NodeClient(bench.domain_id, NAMESPACE, "other_drivers") as other:
        robot.node = other.node
        robot.connect()
        trial.recovers()
        robot.disconnect()
    robot.node = bench.client.node
    robot.connect()
    trial.recovers()


def _loss_udp(trial: Trial) -> None:
    for space in (HERE, THERE):
        _call(inside(space, "sh", "-c", f"echo {FRAGMENTS_S} > /proc/sys/net/ipv4/ipfrag_time"))
    trial.bench.link.lose(LOST)
    trial.named(EYE, ERROR, "no message on")
    _loss(trial)


def _loss(trial: Trial) -> None:
    trial.bench.link.lose(LOST)
    trial.bench.play(LOSS_S)
    passed = trial.bench.link.lose(0.0)
    trial.seen.append(f"{passed.dropped} of {passed.dropped + passed.carried} packets were lost")
    if passed.dropped < LOST * LEAST or abs(passed.share - LOST) > LOST / 4:
        raise BenchFailed(f"not a fifth of many packets: {trial.seen[-1]}")
    good = sum(one.status == "OK" for one in trial.watch.conditions)
    heard = f"{len(trial.watch.conditions)} conditions, {good} of them OK, {len(trial.watch.arm)} commands meanwhile"
    trial.seen.append(heard)
    trial.recovers()


def _cut(trial: Trial) -> None:
    _call(inside(THERE, "ip", "link", "set", LINK, "down"))
    trial.named("policy", WARN, "no condition for")
    trial.commands_cease()
    trial.bench.play(CUT_S)
    _link_up(THERE)
    trial.expect(PROMISE, "conditions come again", _more(trial), 60.0)
    if not trial.watch.health.get(f"{NAMESPACE}/{MEMORY}: memory"):
        trial.bench.play(2.0)
    trial.begins_anew()


def _more(trial: Trial) -> Callable[[], bool]:
    given = len(trial.watch.conditions)
    return lambda: len(trial.watch.conditions) > given


def inside(space: str, *command: str) -> list[str]:
    """A command in a network namespace."""
    return ["ip", "netns", "exec", space, *command]


@contextmanager
def networks() -> Iterator[None]:
    """Two network namespaces and a link between them. Raises CalledProcessError."""
    _remove()
    try:
        for space in (HERE, THERE):
            _call(["ip", "netns", "add", space])
            _call(inside(space, "ip", "link", "set", "lo", "up"))
        _call(["ip", "link", "add", LINK, "netns", HERE, "type", "veth", "peer", "name", LINK, "netns", THERE])
        _join()
        yield
    finally:
        _remove()


@contextmanager
def lossy() -> Iterator[LossyLink]:
    """A cable that loses packets on request in place of the one between the namespaces."""
    _call(inside(HERE, "ip", "link", "delete", LINK))
    with LossyLink((HERE, THERE), LINK) as link:
        _join()
        yield link


def no_networks() -> str:
    """Why there can be no network namespaces here; empty where there can."""
    if os.geteuid() or not shutil.which("ip"):
        return "network namespaces need root and iproute2"
    # Of this process alone: another that asks at the same time must not find the name taken.
    tried = f"{HERE}_try_{os.getpid()}"
    done = subprocess.run(["ip", "netns", "add", tried], capture_output=True, text=True, check=False)
    subprocess.run(["ip", "netns", "delete", tried], capture_output=True, check=False)
    return f"no network namespace: {done.stderr.strip()}" if done.returncode else ""


def no_loss() -> str:
    """Why no packets can be lost on request here; empty where they can."""
    if reason := no_networks():
        return reason
    return "" if TUN.exists() else f"losing packets needs {TUN}: modprobe tun"


def _join() -> None:
    for space, address in ADDRESSES.items():
        _call(inside(space, "ip", "addr", "add", address, "dev", LINK))
        _link_up(space)


def _link_up(space: str) -> None:
    _call(inside(space, "ip", "link", "set", LINK, "up"))
    # Discovery is multicast, and a link that went down has lost the way.
    _call(inside(space, "ip", "route", "replace", "224.0.0.0/4", "dev", LINK))


def _remove() -> None:
    for space in (HERE, THERE):
        subprocess.run(["ip", "netns", "delete", space], capture_output=True, check=False)


def _call(command: Sequence[str]) -> None:
    subprocess.run(list(command), check=True, capture_output=True, text=True)
