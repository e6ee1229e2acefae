"""The study of two machines takes the variables that are shipped, and tables what it measured or missed."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.two_machines import study
from studies.two_machines.link import WAYS, profile, quantiles
from trace_memory_ros.measure.summary import read_summary

RESULT = Path(__file__).parents[2] / "docs" / "results" / "two_machines.json"


def test_the_shipped_profile_is_measured_without_the_addresses_of_one_network() -> None:
    assert profile() == {"ROS_AUTOMATIC_DISCOVERY_RANGE": "SUBNET", "FASTDDS_BUILTIN_TRANSPORTS": "LARGE_DATA"}
    assert WAYS["shipped"].variables == profile() and WAYS["shipped"].peers


def test_a_way_that_was_missed_is_shown_as_such() -> None:
    figures = dict(read_summary(RESULT).figures)
    figures["ways"] = {**figures["ways"], "peers_udp": {"missed": "no commands"}}
    ways, topics = study.tables(figures)
    assert ways.row_count == len(WAYS) and topics.row_count == 5
    assert list(ways.columns[1].cells)[1] == "missed"


def test_ages_of_none_are_none() -> None:
    assert quantiles([]) is None
    assert quantiles([1.0, 2.0, 3.0]) == pytest.approx([2.0, 2.98, 3.0])
