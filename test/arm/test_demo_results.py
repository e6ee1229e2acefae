"""Figures of a demo: their names, their values, and the lines that judge them."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest

from trace_memory_ros.arm.demo.acceptance import chance, criteria
from trace_memory_ros.arm.demo.console import episode_line
from trace_memory_ros.arm.demo.results import Cell, DemoResult, Mode
from trace_memory_ros.measure.statistics import wilson_interval
from trace_memory_ros.measure.summary import read_summary, write_summary


def test_figures_have_the_promised_names_and_survive_the_summary(made: SimpleNamespace, tmp_path: Path) -> None:
    figures = read_summary(write_summary(tmp_path, "trace-memory demo", made.demo().figures())).figures
    cell = figures["tasks"]["colour"]["none"]
    assert cell["branch_success"] == 0.5
    assert cell["episodes"] == 20
    assert cell["ci95"] == pytest.approx(wilson_interval(10, 20))
    assert cell["progress"] == pytest.approx((1 + 5 / 7) / 2)
    assert cell["seeds"] == list(range(200_000, 200_010))
    assert cell["pause"] is None
    assert figures["tasks"]["origin"]["trace"]["pause"]["branch_success"] == 1.0
    assert figures["tasks"]["origin"]["trace"]["pause"]["pause_s"] == 60.0
    assert figures["pause"]["branch_success"] == 1.0
    assert figures["pause"]["episodes"] == 4
    assert figures["condition_latency_ms"] == pytest.approx({"p50": 9.0, "p99": 9.98, "max": 10.0, "conditions": 201})
    assert figures["ticks"] == {"expected": 260, "published": 260, "not_ok": 0, "episodes": 1}
    assert figures["wall_time_s"] == 330.0


def test_an_undecided_episode_is_a_failure(made: SimpleNamespace) -> None:
    cell = Cell((made.episode(branch=0), made.episode(branch=-1)))
    assert cell.branch_success == 0.5
    assert cell.undecided == 1


@pytest.mark.parametrize(("task", "cues"), [("colour", 2), ("cups", 3), ("match", 5), ("count", 6), ("put_back", 6)])
def test_a_guess_is_right_once_in_as_many_episodes_as_there_are_cues(task: str, cues: int) -> None:
    assert chance(task) == 1 / cues


def test_cue_and_branch_are_told_in_the_tasks_words(made: SimpleNamespace) -> None:
    assert "cue middle, went right: WRONG" in episode_line(made.episode("cups", cue=1, branch=2))
    put_back = replace(made.episode("put_back", cue=3, branch=1), success=True)
    assert "cue middle, right, left, went middle first: right" in episode_line(put_back)
    undecided = made.episode("count", cue=1, branch=-1)
    assert "cue press, press, pass, pass, pass, pass, went none: WRONG" in episode_line(undecided)


def test_real_time_and_paused_episodes_stay_out_of_the_plain_cell(made: SimpleNamespace) -> None:
    plain, paused = made.episode(), made.episode(branch=1, pause_s=60.0)
    real = made.episode(branch=1, mode=Mode.REALTIME)
    result = DemoResult(("origin",), ("trace",), (plain, paused, real))
    plain_cell, paused_cell = result.cell("origin", "trace"), result.cell("origin", "trace", paused=True)
    assert plain_cell is not None
    assert paused_cell is not None
    assert plain_cell.episodes == (plain,)
    assert paused_cell.episodes == (paused,)
    assert result.in_mode(Mode.REALTIME) == (real,)
    assert result.cell("colour", "trace") is None


def test_what_was_not_measured_is_none_not_zero(made: SimpleNamespace) -> None:
    result = DemoResult(("origin",), ("gru",), (made.episode(memory="gru"),))
    figures = json.loads(json.dumps(result.figures()))
    assert figures["pause"] is None
    assert figures["condition_latency_ms"] is None
    assert figures["ticks"] is None
    assert [line.met for line in criteria(result)] == [True, None, None]


def test_every_line_is_met_where_it_should_be(made: SimpleNamespace) -> None:
    lines = criteria(made.demo())
    assert len(lines) == 8
    assert [line.met for line in lines] == [True] * 8


@pytest.mark.parametrize(
    ("changed", "name"),
    [
        ({"none_successes": 14}, "origin: none"),
        ({"latency_ms": 34.0}, "condition latency"),
        ({"ticks_published": 259}, "control ticks in real time"),
    ],
)
def test_a_missed_line_is_named_with_its_numbers(made: SimpleNamespace, changed: dict, name: str) -> None:
    missed = [line for line in criteria(made.demo(**changed)) if line.met is False]
    assert name in [line.name for line in missed]
    assert all(any(character.isdigit() for character in line.evidence) for line in missed)


def test_a_pause_that_the_arm_ignored_proves_nothing(made: SimpleNamespace) -> None:
    paused = replace(made.episode(pause_s=60.0), duration_s=25.0)
    (line, *_) = criteria(DemoResult(("origin",), ("trace",), (paused,)))
    assert line.met is False
    assert "an episode lasted 25 s: the arm did not wait" in line.evidence


@pytest.mark.parametrize("memory", ["trace", "gru"])
def test_the_first_memory_below_its_limit_is_missed(made: SimpleNamespace, memory: str) -> None:
    episodes = tuple(replace(made.episode(cue=i % 2, branch=i % 2 if i else 1), memory=memory) for i in range(18))
    (line, *_) = criteria(DemoResult(("origin",), (memory, "none"), episodes))
    assert (line.name, line.met) == (f"origin: {memory}", False)
    assert "0.94 (17 of 18" in line.evidence
    assert "20 episodes make the proof" in line.evidence


def test_a_demo_without_a_memory_need_not_remember(made: SimpleNamespace) -> None:
    episodes = tuple(replace(made.episode(cue=i % 2, branch=0), memory="none") for i in range(20))
    found = criteria(DemoResult(("origin",), ("none",), episodes))
    assert [line.met for line in found if line.met is not None] == [True]
