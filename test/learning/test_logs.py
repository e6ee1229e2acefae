"""The log of a training: every line is in `progress.jsonl`, and in TensorBoard's files where that is installed."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from html_pages import parsed, words
from learning.synthetic import design, pair

from trace_memory_ros.learning import build
from trace_memory_ros.learning.fit import fit, fit_shown
from trace_memory_ros.learning.recipe import MemoryFirst, Recipe
from trace_memory_ros.learning.report import logs
from trace_memory_ros.learning.report.console import TrainingReport
from trace_memory_ros.learning.report.logs import RunLog
from trace_memory_ros.learning.report.page import write_page
from trace_memory_ros.learning.report.progress import JOINT, MEMORY, Progress, Reporters
from trace_memory_ros.learning.run_config import resolve
from trace_memory_ros.measure.accuracy import Accuracy

FIRST = MemoryFirst((2.0,), (), stage_steps=4, check_steps=2, settle_steps=0, attempts=1)
SHORT = Recipe(memory_first=FIRST, steps=3, reads=3, batch_pairs=2)


def line(step: int, phase: str = JOINT) -> Progress:
    right = Accuracy.of(3, 4)
    return Progress(phase, step, 1.0, {"chunk_l1": 0.5}, right, None, figures={"gate_rate": 0.25, "ticks_per_s": 9.0})


def test_both_phases_leave_their_lines(tmp_path: Path) -> None:
    plan = design("trace")
    data = build.prepare(plan, [pair(i) for i in range(3)], [pair(100)], [pair(200)])
    with RunLog(tmp_path) as log, TrainingReport(SHORT) as shown:
        fitted = fit(plan, data, SHORT, 0, report=Reporters(log, shown))
    lines = logs.read(tmp_path)
    assert [(found["phase"], found["step"]) for found in lines] == [(MEMORY, 2), (MEMORY, 4), (JOINT, 3)]
    for found in lines:
        assert found["losses"].keys() == {"chunk_l1", "balance", "entropy", "consistency"}
        assert found["train_branch_accuracy"]["count"] > 0 and "held_out_branch_accuracy" not in found
        told = found["figures"]
        assert told["gate_rate"] == told["write_rate"] == 1.0 and told["state_rms"] > 0 and told["ticks_per_s"] > 0
    assert lines[-1]["figures"]["learning_rate"] < SHORT.learning_rate
    stages = fitted.figures()["stages"]
    assert stages.keys() == {MEMORY, JOINT}
    for part in stages.values():
        assert sum(part["share"].values()) == pytest.approx(1.0) and 0 < part["in_torch"] <= 1
    json.dumps(fitted.figures())


def test_a_run_of_which_nothing_was_kept_leaves_no_lines_to_the_next(tmp_path: Path) -> None:
    """As of one that ended in a fault before its first save: a sweep always asks to go on."""
    with RunLog(tmp_path) as log:
        log.progress(replace(line(900, MEMORY), attempt=2))
    plan = design("gru")
    data = build.prepare(plan, [pair(i) for i in range(3)], [pair(100)])
    fit_shown(resolve({}, {}), plan, SHORT, data, tmp_path, resume=True)
    assert [(found["phase"], found["attempt"]) for found in logs.read(tmp_path)] == [(MEMORY, 1)] * 2 + [(JOINT, 1)]
    again = fit_shown(resolve({}, {}), plan, SHORT, data, tmp_path, resume=True)
    assert len(logs.read(tmp_path)) == 3
    page = write_page(tmp_path, "again", again.figures())
    assert page is not None and "minutes, since it was resumed" in words(page.read_text(encoding="utf-8"))


def test_a_log_that_goes_on_keeps_its_lines_and_a_new_one_does_not(tmp_path: Path) -> None:
    for resume, steps in ((False, (1, 2)), (True, (2, 3))):
        with RunLog(tmp_path, resume) as log:
            for step in steps:
                log.progress(line(step))
    with (tmp_path / logs.FILE).open("a") as file:
        file.write('{"phase": "joint", "st')
    assert [found["step"] for found in logs.read(tmp_path)] == [1, 2, 3]
    with RunLog(tmp_path) as log:
        log.progress(line(9))
    assert [found["step"] for found in logs.read(tmp_path)] == [9]
    assert logs.read(tmp_path / "nowhere") == []


def test_what_was_cut_off_costs_the_next_line_nothing(tmp_path: Path) -> None:
    with RunLog(tmp_path) as log:
        log.progress(line(1))
    with (tmp_path / logs.FILE).open("a") as file:
        file.write('{"phase": "joint", "st')
    with RunLog(tmp_path, resume=True) as log:
        log.progress(line(2))
    assert [found["step"] for found in logs.read(tmp_path)] == [1, 2]


def test_a_new_log_shows_no_curve_of_the_run_before(tmp_path: Path) -> None:
    events = tmp_path / logs.TENSORBOARD / "events.out.tfevents.1.host.2.0"
    events.parent.mkdir()
    events.write_bytes(b"of the run before")
    for resume in (True, False):
        with RunLog(tmp_path, resume) as log:
            log.progress(line(1))
        assert events.exists() is resume


def test_tensorboard_has_the_numbers_of_a_line(tmp_path: Path) -> None:
    reader = pytest.importorskip("tensorboard.backend.event_processing.event_accumulator")
    with RunLog(tmp_path) as log:
        for step in (1, 2):
            log.progress(line(step))
    found = reader.EventAccumulator(str(tmp_path / logs.TENSORBOARD)).Reload()
    assert [event.step for event in found.Scalars("joint/losses/chunk_l1")] == [1, 2]
    named = {"losses/chunk_l1", "figures/gate_rate", "figures/ticks_per_s", "train_branch_accuracy"}
    assert {f"joint/{name}" for name in named} <= set(found.Tags()["scalars"])
    assert found.Scalars("joint/train_branch_accuracy_count")[0].value == 4


def test_the_page_says_how_it_went(tmp_path: Path) -> None:
    assert write_page(tmp_path, "nothing", {}) is None
    with RunLog(tmp_path) as log:
        for phase in (MEMORY, JOINT):
            for step in (1, 2):
                log.progress(line(step, phase))
    share = dict.fromkeys(("wait", "augment", "forward", "backward", "optimiser"), 0.2)
    figures = {
        "held_out_branch_accuracy": Accuracy.of(30, 30).to_dict(),
        "parameters": {"memory": 1234},
        "stages": {MEMORY: {"step_ms": 12.0, "ticks_per_s": 1e4, "share": share, "in_torch": 0.8}},
    }
    path = write_page(tmp_path, "origin <trace>", figures)
    assert path is not None
    page = path.read_text(encoding="utf-8")
    parsed(page)
    for said in ("origin &lt;trace&gt;", "30 of 30 decisions right", "memory 1,234", "12.0 ms", "20%", "memory first"):
        assert said in words(page), said
    assert "mathdefault" not in page
    folded = {"cross_validation": {"folds": 5, "accuracy": Accuracy.of(30, 32).to_dict()}}
    page = str((write_page(tmp_path, "t", folded) or tmp_path).read_text(encoding="utf-8"))
    assert "30 of 32 decisions right in 5 folds" in words(page) and "No held-out" not in words(page)
    few = write_page(tmp_path, "t", {"held_out_branch_accuracy": Accuracy.of(3, 4).to_dict()})
    assert few is not None and "too few" in words(few.read_text(encoding="utf-8"))
