"""Variables that say how ROS 2 carries messages: pictures whole, and within one machine where that is asked for."""

from __future__ import annotations

import os
from collections.abc import Mapping

from trace_memory_ros.runtime.shipped import shipped_file

DISTRO, JAZZY = "ROS_DISTRO", "jazzy"
RANGE = "ROS_AUTOMATIC_DISCOVERY_RANGE"
BUILTIN = "FASTDDS_BUILTIN_TRANSPORTS"
PROFILES = ("FASTDDS_DEFAULT_PROFILES_FILE", "FASTRTPS_DEFAULT_PROFILES_FILE")
"""Of Fast DDS 3 and of 2, as Jazzy has it; each reads its own."""


def large_data(own: Mapping[str, str] = os.environ) -> str:
    """The value of FASTDDS_BUILTIN_TRANSPORTS under which raw pictures arrive. own: the environment, with ROS's distro.

    Fast DDS 2, as Jazzy has it, gives LARGE_DATA 512 kB of shared memory, Fast DDS 3.2 17 times as much; sockets_size
    asks for half of what is wanted.
    """
    return "LARGE_DATA?sockets_size=4MB" if own.get(DISTRO) == JAZZY else "LARGE_DATA"


def room(own: Mapping[str, str] = os.environ) -> str:
    """What helps where messages of a stream are lost on the way: a remedy in words."""
    return f"start its driver with {BUILTIN}='{large_data(own)}', and without {RANGE}=LOCALHOST"


def loopback(own: Mapping[str, str] = os.environ) -> dict[str, str]:
    """Variables that keep messages on this machine. own: the environment, which may name another middleware.

    LOCALHOST is not among them for Fast DDS, since it takes shared memory's size away: see config/network/loopback.xml.
    """
    if "fastrtps" not in own.get("RMW_IMPLEMENTATION", "rmw_fastrtps_cpp"):
        return {RANGE: "LOCALHOST"}
    profiles = PROFILES[1 if own.get(DISTRO) == JAZZY else 0]
    return {RANGE: "SYSTEM_DEFAULT", profiles: str(shipped_file("config/network/loopback.xml"))}


def private_environment(domain_id: int) -> dict[str, str]:
    """Variables that keep a group of nodes, and whoever talks to them, apart from all other ROS traffic.

    A domain of its own on the loopback, one compute thread per process.
    """
    return {"ROS_DOMAIN_ID": str(domain_id), **loopback(), "OMP_NUM_THREADS": "1"}


def open_environment(domain_id: int, transports: str) -> dict[str, str]:
    """Variables of a group of nodes on all networks, by these built-in transports of Fast DDS."""
    return {"ROS_DOMAIN_ID": str(domain_id), RANGE: "SUBNET", BUILTIN: transports, "OMP_NUM_THREADS": "1"}


def leave_loopback() -> None:
    """Take `loopback` out of this process's environment, which its children have too: profiles go before the rest."""
    for name in (RANGE, *PROFILES):
        os.environ.pop(name, None)
