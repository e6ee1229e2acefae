"""`trace-memory compare`: from folders to a table, refusals in one line."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from evidence.evidence_examples import decided, evaluation

from trace_memory_ros.cli.main import main
from trace_memory_ros.evidence.evaluation_file import FILE_NAME, read_evaluation, write_evaluation
from trace_memory_ros.evidence.results import Evaluation
from trace_memory_ros.measure.summary import read_summary


def made(writes: int = 3, task: str = "origin") -> Evaluation:
    episodes = tuple(replace(decided(f"bag_{i}", "left", "left", "right"), writes=writes + i) for i in range(4))
    return replace(evaluation(), episodes=episodes, figures={}, model=replace(evaluation().model, task=task))


def test_two_folders_are_compared(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write_evaluation(tmp_path / "a", made(3))
    write_evaluation(tmp_path / "b", made(5))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b" / FILE_NAME), "--out", str(tmp_path / "c")]) == 0
    said = capsys.readouterr().out
    assert "a: trace abababababab, 4 episodes of origin" in said
    assert "+2 +2 to +2" in said
    assert "4 episodes in both" in said
    summary = read_summary(tmp_path / "c")
    assert summary.command == "trace-memory compare a b"
    assert summary.figures["rows"]["writes"] == {
        "first": {"mean": 4.5, "ci95": summary.figures["rows"]["writes"]["first"]["ci95"], "episodes": 4},
        "second": {"mean": 6.5, "ci95": summary.figures["rows"]["writes"]["second"]["ci95"], "episodes": 4},
        "difference": {"mean": 2.0, "ci95": [2.0, 2.0], "episodes": 4},
    }


@pytest.mark.parametrize(
    ("spoil", "named"),
    [
        (lambda path: path.unlink(), "does not exist: give the folder that `trace-memory evaluate BAGS"),
        (lambda path: path.write_text("{"), "cannot be read as JSON"),
        (lambda path: path.write_text(json.dumps({"schema": 99})), "schema 99, this version reads 1: evaluate again"),
        (
            lambda path: write_evaluation(path.parent, made(task="colour")),
            "is of task 'origin', the second of 'colour'",
        ),
    ],
)
def test_what_cannot_be_compared_is_one_line(spoil, named: str, tmp_path: Path, capsys) -> None:  # type: ignore[no-untyped-def]
    write_evaluation(tmp_path / "a", made())
    spoil(write_evaluation(tmp_path / "b", made()))
    assert main(["compare", str(tmp_path / "a"), str(tmp_path / "b"), "--out", str(tmp_path / "c")]) == 1
    error = capsys.readouterr().err
    assert error.startswith("trace-memory compare: ") and error.count("\n") == 1
    assert named in error
    assert not (tmp_path / "c").exists()


def test_an_evaluation_comes_back_from_its_file(tmp_path: Path) -> None:
    assert read_evaluation(write_evaluation(tmp_path, made()).parent) == made()
