"""Robots of 5 and of 50 Hz trained from bags and evaluated on them: what is learned near a branch takes as long."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from rated_bags import RatedRobot

from trace_memory_ros.cli.main import main
from trace_memory_ros.evidence.evaluation_file import read_evaluation
from trace_memory_ros.learning.bags.design import BagOptions
from trace_memory_ros.learning.bags.recordings import recordings_under
from trace_memory_ros.learning.bags.training import Prepared, prepare, read_bags
from trace_memory_ros.learning.data.reads import sample_reads
from trace_memory_ros.learning.recipe import ReadShares, Recipe
from trace_memory_ros.learning.run_config import FILE, read_file
from trace_memory_ros.runtime.checkpoint import load

SECONDS, BRANCH_S = 5.0, 2.6
SLOW = RatedRobot(200, {"front": 15.0, "top": 7.0}, joints_hz=50.0, commands_hz=5.0, branch_s=BRANCH_S)
FAST = RatedRobot(20, {"front": 30.0, "top": 7.0}, joints_hz=200.0, commands_hz=50.0, branch_s=BRANCH_S)
ROBOTS = pytest.mark.parametrize("robot", [SLOW, FAST], ids=["5 Hz", "50 Hz"])


def record(folder: Path, robot: RatedRobot, scenes: int = 3) -> Path:
    """Bags of both sides of every scene; returns the configuration's path."""
    for scene in range(scenes):
        for side in (0, 1):
            robot.write(folder / "bags" / f"{scene}_{side}", SECONDS, scene, side)
    path = folder / "observation.yaml"
    path.write_text(yaml.safe_dump(robot.recording.to_dict()), encoding="utf-8")
    return path


def prepared(folder: Path, robot: RatedRobot, **options: object) -> Prepared:
    record(folder, robot)
    data, failed = read_bags(recordings_under([folder / "bags"]), robot.recording, folder / "cache")
    assert not failed and not data.left_out
    return prepare(data, robot.recording, BagOptions(**options), Recipe(), 0.34)  # type: ignore[arg-type]


@pytest.mark.timeout(300)
@ROBOTS
def test_bags_are_trained_on_and_evaluated(
    tmp_path: Path, robot: RatedRobot, capsys: pytest.CaptureFixture[str]
) -> None:
    config, bags, out = record(tmp_path, robot), str(tmp_path / "bags"), tmp_path / "c"
    places = ["--config", str(config), "--cache", str(tmp_path / "cache")]
    short = ["--memory", "gru", "--steps", "3", "--held-out", "0.34"]
    short += ["--set", "bags.cross_validation=false"]
    for value in (
        "stage_steps=4",
        "check_steps=2",
        "settle_steps=0",
        "attempts=1",
        "clock_factors=[2.0,1.0]",
        "delay_factors=[2.0]",
    ):
        short += ["--set", f"recipe.memory_first.{value}"]
    assert main(["train", bags, *places, "--out", str(out), *short]) == 0
    said = capsys.readouterr().out
    chunk, reach = (10, 2) if robot is SLOW else (100, 25)
    assert f"ticks of {robot.tick_ms} ms: an action chunk is {chunk} of them (2 s)" in said
    policy = load(out).config.policy
    assert policy is not None
    assert policy.options["chunk"] == chunk
    assert policy.options["ensemble_decay"] == pytest.approx(0.1 if robot is SLOW else 0.01)
    values = read_file(out / FILE)
    assert (values["policy"]["chunk"], values["recipe"]["branch_reach"]) == (chunk, reach)
    pair = [f"{bags}/0_{side}" for side in (0, 1)]
    assert main(["evaluate", *pair, "--checkpoint", str(out), *places, "--out", str(tmp_path / "e")]) == 0
    evaluation = read_evaluation(tmp_path / "e")
    assert len(evaluation.episodes) == 2
    for episode in evaluation.episodes:
        assert (episode.ticks_stale, episode.ticks_invalid) == (0, 0)
        assert episode.ticks == pytest.approx(SECONDS * 1000 / robot.tick_ms, abs=2)
        assert episode.branches[0].decision in ("left", "right")
        assert len(episode.transforms) == 5


@ROBOTS
def test_reads_cover_the_same_seconds(tmp_path: Path, robot: RatedRobot) -> None:
    plan = prepared(tmp_path, robot)
    episode = plan.training.data.episodes[0]
    tick_s = robot.tick_ms / 1e3
    (decision,) = episode.demo.decision_ticks
    assert decision * tick_s == pytest.approx(BRANCH_S, abs=0.2)

    def read_s(shares: ReadShares) -> tuple[float, float]:
        reads = sample_reads(np.random.default_rng(0), episode, 500, shares, plan.recipe.branch_reach)
        return float(reads.min() * tick_s), float(reads.max() * tick_s)

    first, last = read_s(ReadShares(near_branch=1.0))
    assert first - decision * tick_s == pytest.approx(-0.2)
    assert last + tick_s - decision * tick_s == pytest.approx(0.5, abs=0.11)
    assert read_s(ReadShares(near_branch=0.0, start=1.0))[1] == pytest.approx(SECONDS, abs=0.3)


def test_commands_that_fast_ticks_hold_are_no_pause(tmp_path: Path) -> None:
    held = replace(FAST, tick_ms=10, commands_hz=20.0)
    for episode in prepared(tmp_path, held).training.data.episodes:
        repeated = (np.diff(episode.demo.actions, axis=0) == 0).all(axis=1)
        assert repeated.mean() > 0.7
        assert episode.pauses.size == 0


@ROBOTS
def test_a_diffusion_policy_executes_as_long_a_part_of_its_chunk(tmp_path: Path, robot: RatedRobot) -> None:
    pytest.importorskip("diffusers")
    options = prepared(tmp_path, robot, policy="diffusion").design.policy_options
    assert options == ({"execute": 4, "lead": 1} if robot is SLOW else {"execute": 40, "lead": 5})
    given = prepared(tmp_path / "given", robot, policy="diffusion", policy_options={"execute": 3})
    assert given.design.policy_options["execute"] == 3
