"""One way of finding one another: robot and memory_node in one network namespace, policy_node in another."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from rclpy.serialization import serialize_message

from studies.faults.bench import MEMORY, POLICY, Bench, BenchFailed
from studies.faults.network_rows import ADDRESSES, HERE, LINK, THERE, inside
from studies.faults.robot import RATES
from studies.faults.trial import Trial
from studies.grid import Figures
from trace_memory_ros.nodes.domains import DomainClaim
from trace_memory_ros.nodes.node_client import EpisodeFailed
from trace_memory_ros.nodes.processes import NodeFailed
from trace_memory_ros.nodes.transport import large_data, leave_loopback, open_environment

PEERS = "ROS_STATIC_PEERS"
OWN = (PEERS, "ROS_DOMAIN_ID")
IP = {space: address.partition("/")[0] for space, address in ADDRESSES.items()}


@dataclass(frozen=True)
class Way:
    """Variables of all processes. peers: each side is told the other's address, and multicast finds no way."""

    variables: Mapping[str, str]
    peers: bool = False


PROFILE = Path(__file__).parents[2] / "config" / "network" / "two_machines.env"


def profile() -> dict[str, str]:
    """The shipped variables, without those that belong to one network."""
    lines = [line for line in PROFILE.read_text(encoding="utf-8").splitlines() if line and not line.startswith("#")]
    return {name: value for name, _, value in (line.partition("=") for line in lines) if name not in OWN}


UDP = {"FASTDDS_BUILTIN_TRANSPORTS": "UDPv4"}
WAYS = {
    "shipped": Way(profile(), True),
    "peers_udp": Way({**profile(), **UDP}, True),
    "multicast_large_data": Way(profile()),
    "multicast_udp": Way({**profile(), **UDP}),
}


def measured(name: str, folder: Path, seconds: float) -> Figures:
    """Begin, wait until commands come, then count for a while. `missed` says why, where they do not."""
    way = WAYS[name]
    if way.peers:
        for space in (HERE, THERE):
            subprocess.run(inside(space, "ip", "route", "delete", "224.0.0.0/4", "dev", LINK), check=True)
    with DomainClaim() as domain:
        own = {PEERS: IP[THERE]} if way.peers else {}
        environment = {**open_environment(domain, large_data()), **way.variables, **own}
        leave_loopback()
        os.environ.update(environment)
        with Bench(folder, domain, environment, None, {POLICY: inside(THERE)}) as bench:
            return _counted(bench, {PEERS: IP[HERE]} if way.peers else {}, seconds)


def _counted(bench: Bench, there: Mapping[str, str], seconds: float) -> Figures:
    trial, begun = Trial(bench), time.monotonic()
    try:
        bench.start(MEMORY)
        bench.start(POLICY, environment=there)
        bench.ready(MEMORY, POLICY)
        ready_s = time.monotonic() - begun
        trial.healthy()
    except (BenchFailed, EpisodeFailed, NodeFailed) as error:
        return {"missed": f"{type(error).__name__}: {error}"[:500]}
    found_s = time.monotonic() - begun - ready_s
    bench.watch.clear()
    before, start = link_bytes(), time.monotonic()
    bench.play(seconds)
    took_s = time.monotonic() - start
    after = link_bytes()
    return {
        "missed": "",
        "ready_s": ready_s,
        "well_after_s": found_s,
        "seconds": took_s,
        **told(trial),
        "link_mbit_s": {way: 8e-6 * (after[way] - before[way]) / took_s for way in after},
        "stream_mbit_s": streams(bench, took_s),
    }


def told(trial: Trial) -> Figures:
    """Conditions, commands, and how old commands were when they came."""
    watch = trial.watch
    ages = [(one.got_ns - one.stamp_ns) / 1e6 for one in watch.arm]
    waits = [(one.got_ns - one.stamp_ns) / 1e6 for one in watch.conditions]
    return {
        "conditions": len(watch.conditions),
        "conditions_ok": sum(one.status == "OK" for one in watch.conditions),
        "commands": len(watch.arm),
        "condition_age_ms": quantiles(waits),
        "command_age_ms": quantiles(ages),
        "wrong": [text for faults in trial.finish().values() for text in faults][:5],
    }


def quantiles(values: list[float]) -> list[float] | None:
    """p50, p99 and the largest; None of none."""
    return [float(value) for value in (*np.percentile(values, (50, 99)), max(values))] if values else None


def streams(bench: Bench, seconds: float) -> dict[str, float]:
    """What the messages of each topic to the policy come to without any protocol, Mbit/s."""
    sizes = {name: len(serialize_message(bench.robot.message(name, time.time_ns()))) * RATES[name] for name in RATES}
    newest = bench.watch.sizes
    sizes["memory/condition"] = sum(newest) / seconds
    return {name: 8e-6 * size for name, size in sizes.items()}


def link_bytes() -> dict[str, int]:
    """Bytes that left this namespace over the link, and that came."""
    shown = subprocess.run(["ip", "-s", "-j", "link", "show", LINK], check=True, capture_output=True, text=True).stdout
    counted: dict[str, Any] = json.loads(shown)[0]["stats64"]
    return {"to the policy": counted["tx"]["bytes"], "from the policy": counted["rx"]["bytes"]}


def main(name: str, folder: Path, seconds: float) -> None:
    """Within the robot's namespace; figures go into `folder`."""
    (folder / "figures.json").write_text(json.dumps(measured(name, folder, seconds)), encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), float(sys.argv[3]))
