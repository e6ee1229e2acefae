"""The study of few demonstrations: quick, resumed, tabulated."""

from pathlib import Path

import pytest

from studies.few_demonstrations import sources as of_bags
from studies.few_demonstrations import study
from studies.few_demonstrations.sources import FRESH, GUIDED, TRAIN, data_of, sources
from studies.robots.robots import Robot
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.bags.layout import METADATA
from trace_memory_ros.learning.sizes import LADDER

CALL = {"seeds": 1, "fresh": 40, "fewest": False, "folds": True, "delays": True, "report": False}


def test_a_quick_run_is_kept_and_not_done_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    chosen = ("mobile_manipulator",), ("gru", "trace_window_noise_10", "auto")
    figures = study.run(tmp_path, True, *chosen, **CALL)
    (cell,) = figures["cells"].values()
    assert [found["count"] for found in cell.values()] == [figures["fresh"]] * 3 == [2, 2, 2]
    assert not cell["gru"]["claimed"]

    def never(*_: object) -> None:
        raise AssertionError("trained again")

    monkeypatch.setattr(study, "measure", never)
    monkeypatch.setattr(study, "cross_validated", never)
    assert study.run(tmp_path, True, *chosen, **CALL) == figures
    shown, rates, folded = study.tables(figures)
    assert [row for row, *_ in (list(column.cells) for column in rates.columns)][1:] != ["0.00", "0.00", "0.00"]
    assert [column.header for column in shown.columns] == ["trained on", "gru", "trace_window_noise_10", "auto"]
    (counted,) = (list(column.cells) for column in folded.columns if column.header == "cross-validated")
    assert [count.split(" ")[0].endswith("/4") for count in counted] == [True, True]
    (run,) = cell["auto"]["seeds"]
    assert run["cross_validation"]["memory"] in LADDER


def test_bags_that_several_trainings_decide_are_no_more_bags() -> None:
    jobs = [study.Job("origin", 75, "gru", seed) for seed in range(3)]
    one = {"right": 11, "count": 12, "writes_per_s": 1.0}
    (cell,) = study._cells({"origin": (75,)}, ("gru",), dict.fromkeys(jobs, one)).values()
    (alone,) = study._cells({"origin": (75,)}, ("gru",), {jobs[0]: one}).values()
    found = cell["gru"]
    assert (found["right"], found["count"], found["claimed"]) == (33, 36, False)
    assert found["ci95"] == pytest.approx(alone["gru"]["ci95"])


def test_a_longer_delay_is_as_many_laps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Scenario] = []
    monkeypatch.setattr(of_bags, "record_bags", lambda scenarios, folder: asked.extend(scenarios) or [folder])
    for name in ("origin", "origin_x4", "colour_x16"):
        list(sources(1.0)[name].bags(tmp_path, FRESH, 2))
    assert [(one.task, one.laps, one.cue) for one in asked] == [
        (task, laps, cue) for task, laps in (("origin", 1), ("origin", 4), ("colour", 16)) for cue in (0, 1)
    ]


def test_episodes_of_a_quick_run_are_not_taken_for_whole_ones(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def record(robot: Robot, bag: Path, scene: int, seconds: float) -> Path:
        bag.mkdir(parents=True)
        (bag / METADATA).write_text(str(seconds), encoding="utf-8")
        return bag

    monkeypatch.setattr(Robot, "record", record)
    for seconds in (4.0, 8.0, 4.0):
        bags = sources(seconds)["two_arms_wrench"].bags(tmp_path, TRAIN, 3)
        assert [(bag / METADATA).read_text(encoding="utf-8") for bag in bags] == [str(seconds)] * 3


def test_robots_that_were_guided_by_hand_are_learned_from_as_inspect_proposes(tmp_path: Path) -> None:
    for name, robot in GUIDED.items():
        actions = sources(1.0)[name].recording.actions
        assert actions is not None and {f"/{part.topic}" for part in actions.parts} <= {t.name for t in robot.topics}
        assert min(part.ahead_ms for part in actions.parts) > 0
    data = data_of("mobile_manipulator_guided", tmp_path, tmp_path / "cache", TRAIN, 2, 4.0)
    assert len(data.episodes) == 2 and data.action_names[-1] == "odom.angular.z"


def test_no_bag_to_be_judged_by_is_trained_on_and_answers_take_turns(tmp_path: Path) -> None:
    for name, source in sources(1.0).items():
        seen: list[int] = []
        recorded = study.replace(source, record=lambda folder, scene, seen=seen: seen.append(scene) or folder)
        list(recorded.bags(tmp_path, TRAIN, 75)), list(recorded.bags(tmp_path, FRESH, 40))
        assert len(set(seen)) == 115, name
        assert sum(scene % 2 for scene in seen[75:]) == 20
