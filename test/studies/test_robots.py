"""Robots that nobody here owns go through every command, in its short form, down to live commands on their topics."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from studies.robots import study
from studies.robots.robots import BEGIN_NS, ROBOTS, Entry, Play
from trace_memory_ros.bags.reader import BagReader
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


def test_no_two_robots_move_alike() -> None:
    """Six joints and a gripper, and a base and five joints, are seven numbers each."""
    arm, mobile = ROBOTS["six_axis_gripper"], ROBOTS["mobile_manipulator"]
    assert arm.joints == mobile.joints
    for scene in (0, 1, 1_000):
        plays = [Play(robot, scene, 8.0) for robot in (arm, mobile)]
        assert plays[0].cue_s != plays[1].cue_s
        assert not np.allclose(*(play.at(4.0, BEGIN_NS, False).pose for play in plays), atol=0.01)


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


def test_bags_of_other_numbers_and_lengths_are_not_learned_from(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The commands are given folders, and take whatever lies in there."""
    calls: list[tuple[str, ...]] = []
    monkeypatch.setattr(study, "_call", lambda *words: calls.append(tuple(map(str, words))))
    monkeypatch.setattr(study.Robot, "record", lambda self, bag, scene, seconds: written(bag, seconds))
    for episodes, seconds in ((6, 4.0), (12, 8.0), (9, 8.0)):
        plan = study.RobotsPlan(episodes, 3, seconds, tmp_path)
        study._record(plan, ROBOTS["mobile_manipulator"])
        with pytest.raises(FileNotFoundError):
            study._inspect(plan, ROBOTS["mobile_manipulator"])
        lengths = [(bag / "metadata.yaml").read_text(encoding="utf-8") for bag in Path(calls[-1][2]).iterdir()]
        assert lengths == [str(seconds)] * episodes


def test_a_recording_that_was_interrupted_is_made_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    robot, bag = ROBOTS["mobile_manipulator"], tmp_path / "0000"
    episode = list(robot.episode(0, 1.0))

    def cut(self: study.Robot, scene: int, seconds: float) -> Iterator[Entry]:
        yield from episode[: len(episode) // 2]
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(study.Robot, "episode", cut)
        with pytest.raises(KeyboardInterrupt):
            robot.recorded(bag, 0, 1.0)
    assert not bag.exists()
    # As of a call that was killed.
    bag.mkdir()
    (bag / "0000.mcap").write_bytes(b"cut")
    assert robot.recorded(bag, 0, 1.0) == bag
    with BagReader(bag) as reader:
        assert sum(1 for _ in reader.messages()) == len(episode)


def written(bag: Path, seconds: float) -> Path:
    bag.mkdir(parents=True)
    (bag / "metadata.yaml").write_text(str(seconds), encoding="utf-8")
    return bag
