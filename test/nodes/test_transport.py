"""The variables that say how messages are carried, in Python and in the checkout's shell."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from trace_memory_ros.nodes.transport import (
    BUILTIN,
    DISTRO,
    JAZZY,
    PROFILES,
    RANGE,
    large_data,
    leave_loopback,
    loopback,
    open_environment,
)

ROOT = Path(__file__).resolve().parents[2]


def in_a_shell(**own: str) -> dict[str, str]:
    """The variables of transport that `. scripts/env.sh` leaves a shell which has these of its own, and ROS's."""
    kept = {"HOME": os.environ["HOME"], "PATH": os.environ["PATH"], **own}
    command = ["bash", "-c", ". scripts/env.sh && env -0"]
    done = subprocess.run(command, cwd=ROOT, env=kept, capture_output=True, text=True, check=True, timeout=60)
    found = dict(line.partition("=")[::2] for line in done.stdout.split("\0"))
    return {name: found[name] for name in (RANGE, BUILTIN, *PROFILES) if name in found}


@pytest.mark.parametrize("own", [{DISTRO: "kilted"}, {DISTRO: JAZZY}, {"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}])
def test_the_checkouts_shell_says_the_same(own: dict[str, str]) -> None:
    assert in_a_shell(**own) == {**loopback(own), BUILTIN: large_data(own)}


def test_what_a_shell_says_itself_stays() -> None:
    assert in_a_shell(**{RANGE: "SUBNET"}) == {RANGE: "SUBNET", BUILTIN: large_data()}
    own = {BUILTIN: "UDPv4", PROFILES[0]: "mine.xml"}
    assert in_a_shell(**own) == own


def test_the_loopback_is_a_profile_of_fast_dds_and_a_range_of_others() -> None:
    for own, name in (({}, PROFILES[0]), ({"ROS_DISTRO": "jazzy"}, PROFILES[1])):
        found = loopback(own)
        assert found.keys() == {RANGE, name} and found[RANGE] == "SYSTEM_DEFAULT"
        assert Path(found[name]).name == "loopback.xml" and Path(found[name]).is_file()
    assert loopback({"RMW_IMPLEMENTATION": "rmw_cyclonedds_cpp"}) == {RANGE: "LOCALHOST"}


def test_an_open_network_forgets_the_loopback(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in loopback({}).items():
        monkeypatch.setenv(name, value)
    leave_loopback()
    assert not {RANGE, *PROFILES} & set(os.environ)
    assert open_environment(3, "UDPv4")[RANGE] == "SUBNET" and open_environment(3, "UDPv4")[BUILTIN] == "UDPv4"


def test_jazzy_has_to_ask_for_room() -> None:
    assert large_data({"ROS_DISTRO": "jazzy"}) == "LARGE_DATA?sockets_size=4MB"
    assert large_data({"ROS_DISTRO": "kilted"}) == large_data({}) == "LARGE_DATA"
