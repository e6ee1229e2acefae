"""Robots that nobody here owns go through every command, in its short form, down to live commands on their topics."""

from __future__ import annotations

from pathlib import Path

import pytest

from studies.robots import study
from studies.robots.robots import ROBOTS
from trace_memory_ros.bags.recording import RecordingConfig

LIVE = ("two_arms_wrench",)
"""The strangest; `trace-memory bench robots --quick` takes all of them through."""
CONFIGS = Path(__file__).parents[2] / "config" / "robots"


@pytest.mark.timeout(400)
@pytest.mark.parametrize("name", LIVE)
def test_a_strangers_robot_from_its_bags_to_live_commands(
    name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    figures = study.run(tmp_path, True, (name,), ("default",), 6, 2)
    found = figures["robots"][name]
    shipped = RecordingConfig.load(CONFIGS / f"{name}.yaml")
    inspected, done = found["inspect"], found["default"]
    assert inspected["tick_period_ms"] == shipped.observation.tick_period_ms == ROBOTS[name].tick_ms
    assert inspected["cameras"] == {camera.topic: camera.transport for camera in shipped.observation.cameras}
    assert len(inspected["state"]) == shipped.observation.state_dim
    assert shipped.actions is not None and len(inspected["actions"]) == len(shipped.actions.names)
    assert done["decisions"] == figures["fresh"] == 2
    received = [part.topic for part in shipped.actions.parts if part.stamp == "received"]
    printed = capsys.readouterr().out
    assert all(f"/{topic}" in printed.split("without stamps of their own")[-1] for topic in received)
    assert ("without stamps of their own" in printed) == bool(received)
    ticks = int(figures["seconds"] * 1e3) // ROBOTS[name].tick_ms
    assert done["replay"]["statuses"]["OK"] > 0.9 * ticks
    live = done["live"]
    # A busy machine brings images after the deadline of a tick, which is then stale and says so.
    assert live["conditions"] > 0.9 * ticks and live["ok"] > 0.5 * ticks
    assert set(live["commands"]) == {shipped.topic(part.topic) for part in shipped.actions.parts}
    assert min(live["commands"].values()) > 0.8 * live["ok"]
    assert live["replay"]["identical"], live["replay"]


def test_a_table_shows_what_was_found() -> None:
    done = {
        "right": 15,
        "decisions": 20,
        "ci95": [0.53, 0.89],
        "live": {"conditions": 80, "ticks": 80, "commands": {"/a": 79, "/b": 80}, "replay": {"max_abs": 0.0}},
    }
    robots = {"arm": {"inspect": {}, "gru": done}}
    decided, live = study.tables({"episodes": 48, "fresh": 20, "seconds": 8.0, "robots": robots})
    assert [list(column.cells) for column in decided.columns] == [["arm"], ["15/20 (0.53 to 0.89)"]]
    assert [next(iter(column.cells)) for column in live.columns] == ["arm", "gru", "80", "80", "79, 80", "0"]
