"""Raw pictures are counted at both ends, and shown as those that came of those sent."""

from __future__ import annotations

import pytest

from studies.pictures import study
from trace_memory_ros.nodes.transport import PROFILES

LOOPBACK = study.WAYS["config/network/loopback.xml"]


@pytest.mark.timeout(120)
def test_small_pictures_of_two_cameras_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("ROS_AUTOMATIC_DISCOVERY_RANGE", *PROFILES):  # which the measurement forgets
        monkeypatch.setenv(name, "")
    found = study.measured(LOOPBACK, study.Case(2, 32, 24), 1.0, 0)
    assert found["sent"] == 30 and min(found["came"]) >= 25
    assert [came + lost <= 30 for came, lost in zip(found["came"], found["lost"], strict=True)] == [True, True]


@pytest.mark.timeout(120)
def test_raw_pictures_of_three_cameras_arrive() -> None:
    found = study.measured(LOOPBACK, study.Case(3, 640, 480, rate_hz=10.0), 2.0, 0)
    # By LOCALHOST and Fast DDS's own 512 kB next to none arrive; a machine that stands still may cost one or two.
    assert found["sent"] == 20 and min(found["came"]) >= 18


def test_all_cameras_of_a_case_are_one_figure() -> None:
    one = {"sent": 10, "came": [10, 7, 0], "lost": [0, 3, 10]}
    ways = {"a way": {"quiet": dict.fromkeys(study.CASES, one)}}
    (shown,) = study.tables({"ways": ways, "seconds": 5.0})
    assert [list(column.cells) for column in shown.columns][2:] == [["17 of 30"]] * len(study.CASES)
