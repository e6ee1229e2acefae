"""The study of training: made-up episodes that take no room are trained on, and the tables say what holds."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from rich.console import Console

from studies.engine import show
from studies.train.scan import ticks_per_s
from studies.train.study import Clocked, _holds, tables
from studies.train.thousand import Sizes, train
from trace_memory_ros.learning.engine.hardware import Hardware
from trace_memory_ros.learning.engine.stage_times import STEP
from trace_memory_ros.learning.report.progress import JOINT, Progress
from trace_memory_ros.measure.accuracy import Accuracy

TINY = Sizes(
    episodes=8, seconds=6, image_px=32, thumbnail_px=8, depth=2, held_out=4, memory_steps=2, joint_steps=2
)  # fmt: skip


def task(minutes: float | None, right: int) -> dict[str, object]:
    stages = {"joint": {"step_ms": 9.0, "ticks_per_s": 1.0, "share": dict.fromkeys(STEP, 0.2), "in_torch": 0.95}}
    held = Accuracy.of(right, 40).to_dict()
    return {"task": "origin", "cpu_min_to_learned": minutes, "cpu_min": 2.0, "held_out_branch_accuracy": held,
            "stages": stages}  # fmt: skip


def test_made_up_episodes_are_trained_on_and_take_no_room(tmp_path: Path) -> None:
    found = train(TINY, tmp_path)
    assert found["stages"].keys() == {"memory", "joint"}
    assert found["peak"]["resident"] >= found["prepared"]["resident"] > 0 and found["peak"]["anonymous"] > 0
    held = sum(file.stat().st_blocks * 512 for file in tmp_path.iterdir())
    named = sum(file.stat().st_size for file in tmp_path.iterdir())
    rates = ticks_per_s("gru", repeats=1)
    assert rates["forward"] >= rates["forward_and_backward"] > 0
    assert held < named and np.isclose(found["pixels_gib"] * 2**30, 8 * 60 * 3 * 32 * 32 * 3)
    figures = {
        "hardware": Hardware().to_dict(),
        "scan_ticks_per_s": {"gru": rates},
        "thousand_episodes": found,
        "tasks": {"gru": task(1.5, 40), "trace": task(None, 30)},
        "holds": _holds(found, {"gru": task(1.5, 40)}),
    }
    console = Console(width=200, record=True, quiet=True)
    show(tables(figures), console)


def test_what_holds_is_what_was_asked_for() -> None:
    thousand = {"peak": {"resident": 5.0}, "stages": {"memory": {"in_torch": 0.91}}}
    assert all(_holds(thousand, {"gru": task(5.9, 40), "trace": task(5.9, 40)}).values())
    assert _holds({**thousand, "peak": {"resident": 6.1}}, {"gru": task(1.0, 40), "trace": task(None, 30)}) == {
        "memory": False, "in_torch": True, "cpu_minutes, gru": True, "held_out, gru": True,
        "cpu_minutes, trace": False, "held_out, trace": False,
    }  # fmt: skip
    late = _holds({**thousand, "stages": {"memory": {"in_torch": 0.89}}}, {"gru": task(6.1, 40)})
    assert not late["in_torch"] and not late["cpu_minutes, gru"] and late["held_out, gru"]


def test_a_line_is_noted_with_the_time_it_came() -> None:
    clocked = Clocked()
    clocked.progress(Progress(JOINT, 1, 1.0, {}, None, None))
    cpu_s, wall_s, line = clocked.lines[0]
    assert cpu_s >= 0.0 and wall_s >= 0.0 and line.step == 1
