"""The study of the arm's tasks: what is counted, what the expert gets, what the tables say."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from learning.synthetic import design, pair

from studies.arm_tasks import study
from studies.grid import Run, Store
from studies.writes import writes_per_s
from trace_memory_ros.arm.sim.names import WATCHED_TASKS
from trace_memory_ros.arm.sim.scenario import Scenario
from trace_memory_ros.learning import build
from trace_memory_ros.learning.decisions.candidates import Trial
from trace_memory_ros.learning.fit import new_agent
from trace_memory_ros.measure.accuracy import Accuracy

CALL = {"scenes": 2, "held_out": 1, "seeds": 1, "workers": 0, "demos": Path("nowhere")}


def test_expert_is_right_and_is_not_asked_twice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    figures = study.run(tmp_path, True, ("when",), (study.ORACLE,), **CALL)
    found = figures["tasks"]["when"][study.ORACLE]
    assert (found["decisions"]["right"], found["decisions"]["count"]) == (2, 2)
    assert not figures["failed"]

    def never(*_: object) -> None:
        raise AssertionError("driven again")

    monkeypatch.setattr(study, "drive", never)
    assert study.run(tmp_path, True, ("when",), (study.ORACLE,), **CALL) == figures


def test_decisions_at_which_nothing_is_asked_are_left_out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"right": [[None, 1, 1], [None, 0, 1]], "steps": 5, "writes_per_s": 0.25}
    monkeypatch.setattr(study, "measure", lambda plan, run: kept)
    figures = study.run(tmp_path, True, ("count", "match"), ("gru",), **CALL)
    found = figures["tasks"]["count"]["gru"]
    assert [found[name]["right"] for name in ("decisions", "whole")] == [3, 1]
    assert [found[name]["count"] for name in ("decisions", "whole")] == [4, 2]
    decisions, whole, writes = study.tables(figures)
    assert list(writes.columns[1].cells) == ["0.25"]
    assert list(decisions.columns[1].cells) == ["0.70", "0.75 (3/4), 0.30 to 0.95"]
    assert next(iter(decisions.columns[2].cells)) == "0.20"
    assert next(iter(whole.columns[1].cells)) == "0.17"
    assert next(iter(whole.columns[2].cells)) == "0.20"


def test_scenes_that_several_trainings_decide_are_no_more_scenes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = {"right": [[1], [1], [1], [0]], "steps": 5, "writes_per_s": 0.25}
    monkeypatch.setattr(study, "measure", lambda plan, run: kept)
    once, thrice = (
        study.run(tmp_path, False, ("when",), ("gru",), **CALL | {"seeds": seeds})["tasks"]["when"]["gru"]
        for seeds in (1, 3)
    )
    assert [found["decisions"]["count"] for found in (once, thrice)] == [4, 12]
    for name in ("decisions", "whole"):
        assert thrice[name]["ci95"] == pytest.approx(once[name]["ci95"])


def test_memories_may_be_asked_after_longer_delays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept = {"right": [[1], [1]], "steps": 5, "writes_per_s": 0.5, "delayed": {"4": [[1], [1]], "16": [[1], [0]]}}
    monkeypatch.setattr(study, "measure", lambda plan, run: kept)
    figures = study.run(tmp_path, False, ("when",), ("gru",), delays=True, **CALL)
    found = figures["tasks"]["when"]["gru"]
    assert [found[delay]["decisions"]["right"] for delay in ("4x", "16x")] == [2, 1]
    *_, short, long, _ = study.tables(figures)
    assert (short.title, long.title) == tuple(f"right decisions after {n}x the trained delay" for n in (4, 16))
    assert list(long.columns[1].cells) == ["0.50 (1/2), 0.09 to 0.91"]


def test_auto_is_the_simplest_candidate_that_no_other_outdoes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    on_validation = {"none": 1, "first_frame": 3, "gru+gate": 2, "gru": 3, "gru+cache": 2}
    measured: list[str] = []

    def measure(_: study.TasksPlan, run: Run) -> dict[str, object]:
        measured.append(run.row)
        trial = Trial(None, Accuracy.of(on_validation[run.row], 4))
        return {"right": [[int(run.row == "first_frame")]], "steps": 5, "writes_per_s": 1.0, "trial": trial.to_plain()}

    monkeypatch.setattr(study, "measure", measure)
    figures = study.run(tmp_path, True, ("when",), ("gru", "auto"), **CALL)
    assert measured == ["gru", "none", "first_frame", "gru+gate", "gru+cache"], "each once"
    found = figures["tasks"]["when"]
    assert (found["auto"]["decisions"]["right"], found["gru"]["decisions"]["right"]) == (1, 0)
    assert list(study.tables(figures))[-1] == "when: auto took first_frame (1)"


@pytest.mark.parametrize(("gated", "taken"), [(38, "gru+gate"), (37, "gru")])
def test_a_gate_that_is_hardly_behind_is_taken(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, gated: int, taken: str
) -> None:
    on_validation = {"none": 20, "first_frame": 24, "gru+gate": gated, "gru": 40}

    def measure(_: study.TasksPlan, run: Run) -> dict[str, object]:
        trial = Trial(None, Accuracy.of(on_validation[run.row], 40))
        return {"right": [[1]], "steps": 5, "writes_per_s": 1.0, "trial": trial.to_plain()}

    monkeypatch.setattr(study, "measure", measure)
    figures = study.run(tmp_path, True, ("when",), ("auto",), **CALL)
    assert list(study.tables(figures))[-1] == f"when: auto took {taken} (1)"


@pytest.mark.parametrize(("memory", "options", "refused"), [("gru", {}, 0), ("gru+gate", {"gate_bias": -100.0}, 1)])
def test_writes_are_those_that_the_clock_asks_for_and_no_gate_refuses(
    memory: str, options: dict[str, float], refused: int
) -> None:
    asked = replace(design(memory), options=options)
    data = build.prepare(asked, [pair(0)], (), [pair(1), pair(2), pair(3)])
    assert data.held_out is not None
    episodes = data.held_out.data.episodes[:4]
    seconds = sum(float(np.ptp(episode.demo.stamps_ns)) for episode in episodes) / 1e9
    due = sum(int(episode.write_mask(data.held_out.clock).sum()) for episode in episodes)
    found = writes_per_s(new_agent(asked, data, 0).eval(), data.held_out, ([0, 1], [2, 3]))
    assert found == pytest.approx((1 - refused) * due / seconds) and due > 4


def test_memories_are_asked_about_held_out_scenes_with_more_laps(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan = study.TasksPlan(
        tasks=("when",), rows=("gru",), seeds=(0,), pairs=9, scenes=1, out_dir=tmp_path, demos=tmp_path, delays=True
    )

    def asked(task: str, seeds: Sequence[int], *_: object, scenario_of: Callable[..., Scenario]) -> list[Scenario]:
        return [scenario_of(task, seed, 0) for seed in seeds]

    monkeypatch.setattr(study, "collect", asked)
    longer = study.delayed_scenes(plan, "when", study.row_design("gru"), 16)
    assert [(scenario.seed, scenario.laps) for scenario in longer] == [
        (seed, 16) for seed in plan.recipe_of("when").held_out_seeds[: study.DELAYED]
    ]


def test_rows_and_tasks_of_a_run_have_folders_of_their_own(tmp_path: Path) -> None:
    plan = study.TasksPlan(
        tasks=WATCHED_TASKS,
        rows=(*study.CONTROLS, study.ORACLE),
        seeds=(0,),
        pairs=1,
        scenes=5,
        out_dir=tmp_path,
        demos=tmp_path,
    )
    folders = {plan.run_folder(run) for run in plan.runs()}
    assert len(folders) == len(plan.runs()) == len(WATCHED_TASKS) * 5
    assert plan.recipe_of("cups").memory_first.reads < plan.recipe_of("colour").memory_first.reads
    assert Store(plan.run_folder(Run("cups", "gru", 0))).read("figures") is None
