"""The study of latency keeps cores busy for as long as it measures, and tables every case."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from studies.busy import busy
from studies.latency import study
from studies.latency.listener import spread


def computed_s(pid: int) -> float:
    """Processor time that a process has taken, s."""
    after_name = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
    return (int(after_name[11]) + int(after_name[12])) / os.sysconf("SC_CLK_TCK")


def test_busy_processes_end_with_the_measuring() -> None:
    with busy(2) as loops:
        assert [loop.poll() for loop in loops] == [None, None]
        deadline = time.monotonic() + 30
        while not all(computed_s(loop.pid) > 0.1 for loop in loops):
            assert time.monotonic() < deadline, "processes that should be busy do not compute"
            time.sleep(0.02)
    assert all(loop.returncode for loop in loops)


def test_every_case_has_a_row() -> None:
    one = {"load_before": 0.1, "ticks": 3, "lost": 0, "received_ms": spread([1.0, 2.0, 3.0])}
    one |= {"published_ms": spread([1.0]), "stages_ms": {"encode": spread([0.5]), "all": spread([2.0])}}
    eyes = {**one, "ok": 2, "pictures": {"eye": [80, 90], "wrist": [90, 90]}}
    whole, stages, pictures = study.tables({"arm": {"quiet": one, "busy": one}, "cameras": {"busy": eyes}})
    assert whole.row_count == stages.row_count == 2
    assert list(whole.columns[1].cells) == ["2.0 / 3.0 / 3.0"] * 2
    assert [column.header for column in stages.columns] == ["machine", "encode", "all"]
    assert list(pictures.columns[1].cells) == ["80 of 90"] and list(pictures.columns[3].cells) == ["2 of 3"]


def test_what_a_quick_run_measured_is_in_no_whole_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(study, "_of_case", lambda case, measure: {"published_ms": [1.0, 2.0, 3.0]})
    assert len(study.run(tmp_path, True, ("arm", "cameras"))["cameras"]) == 2 * len(study.CASES)
    whole = study.run(tmp_path, False, ("arm",))
    assert (len(whole["arm"]), len(whole["cameras"])) == (len(study.CASES), 0)
    assert len(study.run(tmp_path, False, ("cameras",))["arm"]) == len(study.CASES)
