"""Robots that the package describes: their files load, their limits are possible, their commands move what is seen."""

from __future__ import annotations

from math import isfinite, pi
from pathlib import Path

import pytest

from trace_memory_ros.bags.recording import RecordingConfig
from trace_memory_ros.runtime.limits import limits_of

FOLDER = Path(__file__).parents[2] / "config" / "robots"
FILES = sorted(FOLDER.glob("*.yaml"))
LIMITS = sorted((FOLDER / "limits").glob("*.yaml"))
PAGE = (FOLDER.parents[1] / "docs" / "how-to" / "describe_your_robot.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("file", FILES, ids=lambda file: file.stem)
def test_every_output_has_the_place_that_it_moves_and_every_robot_is_told_of(file: Path) -> None:
    robot = RecordingConfig.load(file)
    assert robot.actions is not None and file.name in PAGE
    for name, unit in zip(robot.actions.names, robot.actions.units, strict=True):
        places = robot.observation.channels_of(name)
        assert len(places) == 1 or unit in ("m/s", "rad/s"), (name, places)
        if places and unit:
            assert unit == robot.observation.state_units[robot.observation.state.index(places[0])]
    slowest_ms = max(stream.stale_after_ms for stream in robot.observation.inputs)
    assert robot.observation.tick_period_ms <= slowest_ms and robot.observation.deadline_ms <= 250


@pytest.mark.parametrize("file", LIMITS, ids=lambda file: file.stem)
def test_limits_are_of_every_output_and_such_as_an_arm_has(file: Path) -> None:
    robot = RecordingConfig.load(FOLDER / file.name)
    assert robot.actions is not None
    for limit in limits_of(robot.actions, str(file)):
        assert -2 * pi <= limit.min < limit.max <= 2 * pi
        assert isfinite(limit.max_velocity) and 0.1 <= limit.max_velocity <= 6.0
